"""Options of standard errors, and the kinds of covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._checks import check_n_jobs, check_number, check_option
from .inferred_losses import LIKELIHOODS, QUANTILES

COMMON_DENSITY = ("fisher", "HC0", "HC1", "bootstrap")
LEVERED = {"HC2": 1.0, "HC3": 2.0}
_KINDS = ("auto", "fisher", "HC0", "HC1", *LEVERED, "cluster", "powell", "bootstrap")


@dataclass(frozen=True)
class ErrorOptions:
    """The options of ``standard_errors`` besides the model and its data."""

    kind: str = "auto"
    groups: Any = None
    offset: Any = None
    dispersion: float | str | None = None
    weights: str = "precision"
    reference: Any = None
    feature_names: Any = None
    n_resamples: int = 200
    n_jobs: int | None = None
    random_state: Any = None


def kind_of(name: str, options: ErrorOptions) -> str:
    """Return the kind of covariance, resolving "auto"."""
    check_option("kind", options.kind, _KINDS)
    kind = options.kind
    if kind == "auto":
        if options.groups is not None:
            return "cluster"
        if name in QUANTILES:
            return "powell"
        return "fisher" if name in LIKELIHOODS else "HC0"
    if kind == "powell" and name not in QUANTILES:
        raise ValueError("kind='powell' is for quantiles; take 'HC0' or 'HC1'.")
    if kind == "fisher" and name not in (*LIKELIHOODS, *QUANTILES):
        known = ", ".join(map(repr, LIKELIHOODS))
        raise ValueError(
            "kind='fisher' needs a loss that is a likelihood, as those of "
            f"{known} are; take 'HC0' or 'HC1'."
        )
    if kind in LEVERED and name in QUANTILES:
        raise ValueError(f"kind={kind!r} is not for quantiles; take 'powell' or 'HC1'.")
    if options.groups is not None and kind not in ("cluster", "bootstrap"):
        raise ValueError(f"groups are for kind='cluster' or 'bootstrap'; got {kind!r}.")
    if kind == "cluster" and options.groups is None:
        raise ValueError("kind='cluster' needs groups, one name for each sample.")
    return kind


def check_options(options: ErrorOptions, kind: str, name: str) -> None:
    """Raise for options that are invalid or have no effect."""
    check_option("weights", options.weights, ("precision", "frequency"))
    check_number("n_resamples", options.n_resamples, low=2, integer=True)
    check_n_jobs("n_jobs", options.n_jobs)
    if options.dispersion is None:
        return
    if kind != "fisher" or name in QUANTILES:
        raise ValueError(
            "dispersion is for kind='fisher' of losses that are likelihoods; got "
            f"{options.dispersion!r} with kind={kind!r}, loss={name!r}."
        )
    if isinstance(options.dispersion, str):
        check_option("dispersion", options.dispersion, ("X2",))
    else:
        check_number("dispersion", options.dispersion, low=0.0, low_included=False)
