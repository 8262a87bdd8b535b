"""From covariances of each problem to estimates by the names of features."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from .._checks.callers import user_level
from .._core.arrays import Array, Floats
from .._core.names import listed
from .covariances import Covariance
from .estimates import CoefficientErrors
from .moments import Spec

# Relative tolerance for the rounding errors of weighted sums of zeros and ones.
_ROUNDED = 1e-9


class Names(NamedTuple):
    """The names of estimates.

    Attributes
    ----------
    features : list of shape (q,)
        Names of the intercept or thresholds, and of the features.
    outputs : ndarray or None
        Classes, quantiles or numbers of targets, if there are several.
    output_name : str or None
        The kind of outputs, such as "class".
    reference : int or None
        Index of the class from which differences are taken.
    """

    features: list[Any]
    outputs: Array | None
    output_name: str | None
    reference: int | None


def theta(spec: Spec, problem: int) -> Floats:
    """Return the parameters of a problem for shifted features, intercepts last."""
    coef, intercept = spec.coef, spec.intercept
    if spec.joint:
        coef, intercept = coef[1:] - coef[0], intercept[1:] - intercept[0]
    else:
        coef, intercept = coef[[problem]], intercept[[problem]]
    if not spec.fit_intercept:
        return coef.ravel()
    shifted = intercept + coef @ spec.shift
    if spec.ordinal:
        return np.append(coef, spec.intercept + coef @ spec.shift)
    return np.column_stack([coef, shifted]).ravel()


def between_classes(spec: Spec) -> Floats:
    """Return the matrix by which the penalty couples the scores of a problem.

    Coefficients that sum to zero over classes are M times their differences from the
    coefficients of the first class, so their squared norm has the matrix Mᵀ M.
    """
    if not spec.joint:
        return np.ones((1, 1))
    k = len(spec.coef)
    M = np.vstack([np.zeros(k - 1), np.eye(k - 1)]) - 1.0 / k
    return np.asarray(M.T @ M)


def by_feature(spec: Spec, names: Names) -> Floats:
    """Return the matrix from parameters of a problem to its estimates.

    Parameters belong to shifted features and come with the intercepts last; estimates
    belong to the features themselves and come with the intercept or thresholds first.
    """
    d, n = spec.coef.shape[1], spec.n_intercepts
    matrix = np.eye(d + n)
    matrix[d:, :d] = -spec.shift
    if spec.ordinal:
        matrix[d:] *= -1.0
    matrix = np.roll(matrix, n, axis=0)
    if not spec.joint:
        return matrix
    k = len(spec.coef)
    # Differences from the first class are converted to differences from the mean, or
    # from the reference class.
    whole: Floats = np.vstack([np.zeros(k - 1), np.eye(k - 1)])
    if names.reference is None:
        whole = whole - 1.0 / k
    else:
        whole = np.delete(whole - whole[names.reference], names.reference, axis=0)
    return np.asarray(np.kron(whole, matrix))


def estimated(spec: Spec, names: Names, found: list[Covariance]) -> Floats:
    """Return the estimates of all problems; dropped features have zeros."""
    matrix = by_feature(spec, names)
    return np.concatenate(
        [matrix @ each.recombine @ theta(spec, i) for i, each in enumerate(found)]
    )


def left_out(spec: Spec, names: Names, found: list[Covariance]) -> Array:
    """Return the mask of estimates that are not determined."""
    matrix = by_feature(spec, names) != 0.0
    # Intercepts precede all features in the elimination, so they are determined.
    n = spec.n_intercepts
    matrix[np.arange(len(matrix)) % (spec.coef.shape[1] + n) < n] = False
    return np.concatenate(
        [matrix @ np.logical_not(each.determined) for each in found]
    ).astype(bool)


def without_variance(spec: Spec, names: Names, found: list[Covariance]) -> Array:
    """Return the mask of estimates without a variance."""
    n = spec.n_intercepts
    masks = [
        np.roll(each.fixed.reshape(-1, spec.coef.shape[1] + n), n, axis=1)
        for each in found
    ]
    if spec.joint and names.outputs is not None:
        # An estimate is a difference between classes, so all classes have the same
        # mask.
        masks = [np.tile(masks[0].any(axis=0), (len(names.outputs), 1))]
    return np.concatenate(masks).ravel()


def factors_of(spec: Spec, names: Names, gram: Floats) -> dict[str, list[Any]]:
    """Return the dummies of each factor by its name, which precedes an underscore.

    Names are matched with and without the prefix of a ColumnTransformer. The dummies
    are all features whose names start with the factor's name. Their sums and products
    must be the sums and products of features of zeros and ones with at most one 1 in a
    row. Sums are only available with an intercept.
    """
    d, shift, n = spec.coef.shape[1], spec.shift, spec.n_intercepts
    if not n:
        return {}
    centered = gram[d, :d]
    sums = centered + gram[d, d] * shift
    # The Gram matrix of ordered classes counts each row once for each threshold.
    products = gram[:d, :d] / n + np.outer(shift, sums) + np.outer(centered, shift)
    sizes = np.sqrt(np.maximum(sums, 0.0))
    wrong = np.abs(products - np.diag(sums)) > _ROUNDED * np.outer(sizes, sizes)
    found: dict[str, list[int]] = {}
    for j, name in enumerate(map(str, names.features[n:])):
        for end in (i for i, letter in enumerate(name) if letter == "_"):
            for factor in dict.fromkeys((name[:end], name[:end].split("__")[-1])):
                found.setdefault(factor, []).append(j)
    return {
        name: [names.features[n + j] for j in places]
        for name, places in found.items()
        if not wrong[np.ix_(places, places)].any()
    }


def assembled(
    spec: Spec,
    names: Names,
    found: list[Covariance],
    kind: str,
    uses_t: bool,
    resamples: Floats | None = None,
    factors: dict[str, list[Any]] | None = None,
) -> CoefficientErrors:
    """Return estimates and covariances by name, intercepts first.

    Parameters
    ----------
    spec : Spec
    names : Names
    found : list of Covariance
        The covariance of each problem.
    kind : str
        Name of the kind of covariance.
    uses_t : bool
        Whether statistics have Student's distribution.
    resamples : ndarray of shape (n_resamples, p) or None
        Estimates of refits, from which the covariance is computed.
    factors : dict or None
        Dummies of each factor.
    """
    n_outputs = 1 if names.outputs is None else len(names.outputs)
    outputs = names.outputs
    if outputs is not None:
        outputs = np.repeat(outputs, len(names.features))
    features = names.features * n_outputs
    p = len(features)
    if resamples is None:
        matrix = by_feature(spec, names)
        covariance, m = np.full((p, p), np.nan), len(matrix)
        for i, each in enumerate(found):
            places = slice(i * m, (i + 1) * m)
            known = np.nan_to_num(each.covariance)
            covariance[places, places] = matrix @ known @ matrix.T
    else:
        covariance = np.atleast_2d(np.cov(resamples.T))
    values, unknown = estimated(spec, names, found), left_out(spec, names, found)
    values[unknown] = np.nan
    fixed = without_variance(spec, names, found) & ~unknown
    for mask in (unknown, fixed):
        covariance[mask], covariance[:, mask] = np.nan, np.nan
    dropped, endless = (
        list(dict.fromkeys(features[i] for i in np.flatnonzero(mask)))
        for mask in (unknown, fixed)
    )
    if dropped:
        _warn(
            "Features that are combinations of those before them have no estimates, "
            f"and the others have those of the model without them: {listed(dropped)}."
        )
    if endless:
        _warn(
            "These samples do not say how large the coefficients of "
            f"{listed(endless)} are: the loss falls, or stays the same, however large "
            "they become. They have no standard errors, and the others have those of "
            "a model in which they are given."
        )
    dispersions = np.array([each.dispersion for each in found])
    return CoefficientErrors(
        np.array(features, dtype=object),
        outputs,
        names.output_name,
        values,
        covariance,
        kind,
        dispersions if len(found) > 1 else float(dispersions[0]),
        found[0].df_resid,
        uses_t,
        dropped,
        resamples,
        factors or {},
    )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=user_level())
