"""Warnings about models that do not use the features, and about missing offsets."""


class ConstantModelWarning(UserWarning):
    """The optimum does not use the features.

    Issued if the objective is proven to be about as small with all coefficients zero,
    or if a bound of a measure such as precision at k has its optimum at zero.

    See Also
    --------
    BMRMClassifier : Other losses and class weights may help.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn_subqn import SubLBFGSLinearSVC
    >>> X, y = np.random.default_rng(0).normal(size=(100, 2)), [0] * 99 + [1]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     clf = SubLBFGSLinearSVC(alpha=10.0).fit(X, y)
    >>> caught[0].category.__name__
    'ConstantModelWarning'
    """


class MissingOffsetWarning(UserWarning):
    """A model that was fitted with an offset is used without one, as if it were zero.

    If the offset is the logarithm of an exposure, predictions are for one unit of it.

    See Also
    --------
    BMRMRegressor : Takes an ``offset`` in ``fit``, ``predict`` and ``score``.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn_subqn import BMRMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, years = rng.normal(size=(100, 2)), rng.uniform(0.5, 2.0, size=100)
    >>> events = rng.poisson(years)
    >>> model = BMRMRegressor(0.1, loss="poisson")
    >>> model = model.fit(X, events, offset=np.log(years))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     yearly = model.predict(X)
    >>> caught[0].category.__name__
    'MissingOffsetWarning'
    """
