"""The losses whose models have standard errors or likelihoods."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._core.losses import BINARY_LOSSES, AnyLoss, DualLoss, regression_losses
from .classification_losses import LOSSES, SMOOTH
from .regression_losses import loss_of

# Standard errors are available for smooth losses, and for two losses of quantiles.
ORDINAL = ("ordinal_all_threshold", "ordinal_immediate_threshold", "ordinal_logit")
QUANTILES = ("quantile", "absolute_error")
_OF_LABELS = (*SMOOTH, *ORDINAL)
OF_NUMBERS = (
    *(name for name, loss in regression_losses().items() if loss.smooth),
    *QUANTILES,
)
LIKELIHOODS = (
    *("squared_error", "log_loss", "ordinal_logit", "poisson", "gamma", "tweedie"),
)
# Likelihoods without a dispersion.
WITHOUT_DISPERSION = ("log_loss", "ordinal_logit", "poisson")
LOG_LOSSES = ("log_loss", "multinomial")


def loss_name(own: Any) -> str:
    """Return the name of a loss with standard errors, "" for a user's own loss.

    The log loss has one name, whether for two classes or for the softmax of several.
    """
    # Classifiers without ``loss`` have probabilities only if they minimize the log
    # loss.
    only = "log_loss" if hasattr(own, "predict_proba") else None
    loss = getattr(own, "loss", only)
    known = _OF_LABELS if is_classifier(own) else OF_NUMBERS
    if isinstance(loss, AnyLoss):
        whole = DualLoss.of(loss)
        if whole.smooth and not (whole.joint or whole.ranks or whole.counts_rows):
            return ""
    if isinstance(loss, str) and loss in LOG_LOSSES:
        return "log_loss"
    if isinstance(loss, str) and loss in known and getattr(own, "metric", None) is None:
        return loss
    raise ValueError(
        f"{type(own).__name__}(loss={loss!r}) has no standard errors. Losses that have "
        f"are {', '.join(map(repr, known))}, and smooth ones of one's own of one score "
        "per sample; for others take the spread of refits to resampled rows."
    )


def loss_of_model(own: Any, name: str) -> DualLoss:
    """Return the loss of a model by its name."""
    if not name:
        return DualLoss.of(own.loss)
    if name in QUANTILES:
        # The terms of each level are computed from the absolute error.
        return regression_losses()["absolute_error"]
    if name in ORDINAL:
        return DualLoss.of(LOSSES[name](own))
    return BINARY_LOSSES[name] if is_classifier(own) else loss_of(own)


def levels_of(own: Any, name: str, k: int) -> tuple[float, ...]:
    """Return the levels of a model's quantiles, empty for other losses."""
    if name not in QUANTILES:
        return ()
    levels = own.quantile if name == "quantile" else 0.5
    return tuple(np.broadcast_to(levels, k).astype(np.float64).tolist())
