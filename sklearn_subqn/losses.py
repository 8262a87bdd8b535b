"""What a loss of one's own is made of; see the user guide, "A loss of one's own"."""

from ._core.losses import FirstOrderLoss, Loss

__all__ = ["FirstOrderLoss", "Loss"]
