"""Categories of warnings about models that are proven, but of little use."""


class ConstantModelWarning(UserWarning):
    """The optimum makes no use of the features.

    Raised where the objective is proven to be about as small with all coefficients
    zero.

    See Also
    --------
    UnderfittingWarning : The penalty is too strong for the features to count much.

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


class UnderfittingWarning(UserWarning):
    """The penalty is so strong that the model plainly underfits.

    Raised where the same coefficients, all multiplied by one number, would have a much
    smaller loss on the training data.

    See Also
    --------
    ConstantModelWarning : The features do not count at all.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import L1LogisticOWLQN
    >>> X, y = load_iris(return_X_y=True)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     clf = L1LogisticOWLQN(alpha=0.3).fit(X[:100], y[:100])
    >>> caught[0].category.__name__
    'UnderfittingWarning'
    """
