"""Categories of warnings about models that are proven, but of little use."""


class ConstantModelWarning(UserWarning):
    """The optimum makes no use of the features.

    Raised where the objective is proven to be about as small with all coefficients
    zero.
    """


class UnderfittingWarning(UserWarning):
    """The penalty is so strong that the model plainly underfits.

    Raised where the same coefficients, all multiplied by one number, would have a much
    smaller loss on the training data.
    """
