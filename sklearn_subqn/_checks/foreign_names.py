"""Names of parameters and losses in other packages, with their names here."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Any

from .._core.losses import BINARY_LOSSES, regression_losses

#: Address of the documentation.
SITE = "https://sklearn-subqn.github.io/sklearn-subqn/"

# Parameters that a migration page translates, with the name of the page.
_PAGES: dict[str, str] = {
    "dual": "linear_svc",
    "intercept_scaling": "linear_svc",
    "multi_class": "linear_svc",
    "random_state": "linear_svc",
    "c1": "crfsuite",
    "c2": "crfsuite",
    "algorithm": "crfsuite",
    "max_iterations": "crfsuite",
    "objective": "lightgbm_ranker",
    "n_estimators": "lightgbm_ranker",
    "reg_lambda": "lightgbm_ranker",
    "lambda_l2": "lightgbm_ranker",
    "learning_rate": "sgd",
    "q": "statsmodels_quantreg",
}

# Messages for unknown parameters without a migration page, or with a translation that
# depends on the class. The message is the first entry that needs no parameter, or whose
# parameter the class has.
_PARAMETERS: dict[str, list[tuple[str | None, str]]] = {
    "C": [
        (
            "alpha",
            "Its strength of regularization is alpha, against the mean of the loss "
            "instead of the sum: alpha = 1 / (C * n_samples).",
        ),
        (
            "alphas",
            "Its values of alpha are alphas, against the mean of the loss instead of "
            "the sum: alpha = 1 / (C * n_samples).",
        ),
        ("Cs", "Its values of C are Cs."),
    ],
    "Cs": [
        (
            "alphas",
            "Its grid is alphas, against the mean of the loss instead of the sum: "
            "alpha = 1 / (C * n_samples).",
        ),
        (
            "alpha",
            "It takes one strength of regularization: alpha = 1 / (C * n_samples).",
        ),
        ("C", "It takes one C."),
    ],
    "alpha": [
        ("C", "Its factor on the sum of the losses is C = 1 / (alpha * n_samples)."),
        ("c2", "Its strength of regularization is c2 = alpha * n_sequences / 2."),
        ("alphas", "Its values of alpha are alphas."),
        ("Cs", "Its values of C are Cs; C = 1 / (alpha * n_samples)."),
    ],
    "alphas": [("Cs", "Its grid is Cs; C = 1 / (alpha * n_samples).")],
    "penalty": [
        ("l1_ratio", "l1_ratio=1 means L1 and l1_ratio=0 means L2."),
        (None, "Its penalty is L2. BMRMClassifier and BMRMRegressor have others."),
    ],
    "positive": [
        (None, "BMRMRegressor and BMRMClassifier take bounds of coefficients.")
    ],
    "lambda_": [
        ("alpha", "Its strength of regularization is alpha."),
        ("alphas", "Its strengths of regularization are alphas."),
        ("C", "Its factor on the sum of the losses is C = 1 / (lambda * n_samples)."),
    ],
    "method": [("solver", "Its method is solver.")],
    "num_iterations": [("max_iter", "Its limit on iterations is max_iter.")],
    "loss": [
        (None, "Its loss is fixed. BMRMClassifier and BMRMRegressor have a choice.")
    ],
    "kernel": [
        (
            None,
            "The model is linear. Kernels are approximated by a transformer in a "
            "pipeline before it, such as sklearn.kernel_approximation.Nystroem.",
        )
    ],
    "normalize": [
        (None, "Scale features before, for example by a StandardScaler in a pipeline.")
    ],
}

_PARAMETERS |= {
    "lamda": _PARAMETERS["lambda_"],
    "n_iter": _PARAMETERS["num_iterations"],
}

# Translations of the names of losses in other packages. The first name that the class
# has is used.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "mae": ("absolute_error", "quantile"),
    "l1": ("absolute_error",),
    "lad": ("absolute_error",),
    "reg:absoluteerror": ("absolute_error",),
    "mse": ("squared_error",),
    "l2": ("squared_error",),
    "least_squares": ("squared_error",),
    "reg:squarederror": ("squared_error",),
    "pinball": ("quantile",),
    "check": ("quantile",),
    "reg:quantileerror": ("quantile",),
    "svr": ("epsilon_insensitive",),
    "count:poisson": ("poisson",),
    "reg:gamma": ("gamma",),
    "reg:tweedie": ("tweedie",),
    "log": ("log_loss", "pairwise-log"),
    "logistic": ("log_loss", "pairwise-log"),
    "deviance": ("log_loss",),
    "cross_entropy": ("log_loss",),
    "binary": ("log_loss",),
    "binary_crossentropy": ("log_loss",),
    "binary:logistic": ("log_loss",),
    "softmax": ("log_loss",),
    "svm": ("hinge", "pairwise"),
    "perceptron": ("hinge",),
    "auc": ("roc_area", "pairwise"),
    "roc_auc": ("roc_area", "pairwise"),
    "f1": ("f_beta",),
    "lambdarank": ("ndcg", "roc_area"),
    "rank_xendcg": ("ndcg",),
    "rank:ndcg": ("ndcg",),
    "map": ("ndcg", "roc_area"),
    "rank:map": ("ndcg",),
    "average_precision": ("ndcg", "roc_area"),
    "ranknet": ("pairwise-log",),
    "rank:pairwise": ("pairwise-log",),
    "ranksvm": ("pairwise",),
    "ridge": ("l2",),
    "lasso": ("l1",),
    "elastic_net": ("elasticnet",),
    "elastic-net": ("elasticnet",),
}

# Losses of one score per sample, by the classes that take them.
_LOSSES: dict[str, Collection[str]] = {
    "BMRMClassifier": BINARY_LOSSES,
    "BMRMRegressor": regression_losses(),
}


def instead_of(name: str, known: Collection[str], of_fit: Collection[str]) -> str:
    """Return a sentence with advice on an unknown parameter.

    Parameters
    ----------
    name : str
    known, of_fit : collection of str
        Parameters of the class, and of its method ``fit``.
    """
    if name in of_fit:
        return f" It is given to fit: fit(X, y, {name}={name})."
    for needed, text in _PARAMETERS.get(name, ()):
        if needed is None or needed in known:
            return f" {text}"
    if name in _PAGES:
        return f" {SITE}migration/{_PAGES[name]}.html says what takes its place."
    return did_you_mean(name, known)


# Messages for data arguments that methods do not have.
_DATA: dict[str, list[tuple[str | None, str]]] = {
    "exposure": [
        (
            "offset",
            "Give its logarithm, which is added to the linear predictor: "
            "offset=np.log(exposure), in fit and predict.",
        ),
        (
            None,
            "Rates make the same Poisson model: fit(X, y / exposure, "
            "sample_weight=exposure). BMRMRegressor(loss='poisson') takes counts with "
            "offset=np.log(exposure).",
        ),
    ],
}


def check_data(method: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for data that a method takes under another name."""
    for name in given:
        for needed, text in _DATA.get(name, ()) if name not in known else ():
            if needed is None or needed in known:
                raise TypeError(f"{method}() takes no {name}. {text}")


def did_you_mean(name: Any, known: Iterable[str], *, of_losses: bool = False) -> str:
    """Return a sentence that proposes the known name closest to an unknown one.

    With ``of_losses`` the sentence may also propose an estimator with the loss.
    """
    options, given = {option.lower(): option for option in known}, str(name).lower()
    near = [option for option in _OPTIONS.get(given, ()) if option in options]
    if of_losses and not near:
        for loss in (given, *_OPTIONS.get(given, ())):
            for estimator, losses in _LOSSES.items():
                if loss in losses:
                    return f" {estimator} has loss={loss!r}."
    near = near or difflib.get_close_matches(given, options, n=1)
    return f" Did you mean {options[near[0]]!r}?" if near else ""
