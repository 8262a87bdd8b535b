import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC

from sklearn_subqn import (
    BMRMRegressor,
    CoefficientPathDisplay,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    MulticlassHingeClassifier,
    PathScoreDisplay,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
)
from sklearn_subqn.exceptions import ConstantModelWarning

pytest.importorskip("matplotlib").use("Agg")

ALPHAS = [1e-3, 1e-1, 1e-2]


@pytest.fixture(autouse=True)
def plt():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=200, n_features=12, random_state=0)


@pytest.fixture(scope="module")
def searched(data):
    return SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=4).fit(*data)


def test_scores_are_means_over_folds_with_their_deviation(searched):
    display = PathScoreDisplay.from_estimator(searched)
    scores = searched.scores_path_
    np.testing.assert_array_equal(display.line_.get_xdata(), searched.alphas_)
    np.testing.assert_allclose(display.line_.get_ydata(), scores.mean(axis=0))
    (path,) = display.area_.get_paths()
    upper = {(x, y) for x, y in path.vertices}
    for alpha, column in zip(searched.alphas_, scores.T, strict=True):
        for end in (column.mean() - column.std(), column.mean() + column.std()):
            assert any(np.allclose((alpha, end), vertex) for vertex in upper)
    np.testing.assert_allclose(display.alpha_line_.get_xdata(), searched.alpha_)
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_ylabel() == "accuracy"
    (text,) = display.ax_.get_legend().get_texts()
    assert text.get_text() == "SubLBFGSLinearSVCCV"


def test_scores_have_the_name_of_the_scorer(data, searched):
    clf = L1LogisticOWLQNCV(alphas=3, cv=3, scoring="neg_log_loss").fit(*data)
    assert PathScoreDisplay.from_estimator(clf).ax_.get_ylabel() == "neg_log_loss"
    clf.scoring = lambda estimator, X, y: 0.0
    assert PathScoreDisplay.from_estimator(clf).ax_.get_ylabel() == "Score"
    display = PathScoreDisplay.from_estimator(searched, score_name="share right")
    assert display.ax_.get_ylabel() == "share right"


def test_scores_use_the_axes_and_styles_given(plt, searched):
    _, ax = plt.subplots()
    styles = {"line_kw": {"color": "red"}, "fill_kw": {"alpha": 0.5}}
    display = PathScoreDisplay.from_estimator(searched, ax=ax, name="mine", **styles)
    assert display.ax_ is ax
    assert display.line_.get_color() == "red"
    assert display.area_.get_alpha() == 0.5
    assert display.line_.get_label() == "mine"
    bare = PathScoreDisplay(alphas=[1, 2], scores=[[1, 2]]).plot()
    assert bare.alpha_line_ is None
    assert bare.ax_.get_legend() is None


def test_coefficients_are_those_of_separate_fits(data):
    X, y = data
    estimator = SubLBFGSLinearSVC(tol=1e-8, loss="squared_hinge")
    display = CoefficientPathDisplay.from_estimator(estimator, X, y, ALPHAS)
    np.testing.assert_array_equal(display.alphas, np.sort(ALPHAS)[::-1])
    for alpha, coef in zip(display.alphas, display.coefs, strict=True):
        separate = SubLBFGSLinearSVC(alpha, tol=1e-8, loss="squared_hinge").fit(X, y)
        np.testing.assert_allclose(coef, separate.coef_[0], atol=1e-3)
    assert not hasattr(estimator, "coef_")
    assert not estimator.warm_start


def test_coefficients_start_where_the_last_fit_ended(data):
    X, y = data
    iterations = []

    class Counted(L1LogisticOWLQN):
        def fit(self, X, y):
            super().fit(X, y)
            iterations.append(self.n_iter_)
            return self

    estimator, grid = Counted(solver="owlqn"), [1e-2] * 3
    CoefficientPathDisplay.from_estimator(estimator, X, y, grid)
    assert iterations[0] > 1
    assert iterations[1:] == [1, 1]


def test_largest_coefficients_are_named(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)])
    clf = L1LogisticOWLQN()
    alphas = clf.alpha_max(X, y) * np.geomspace(1, 0.03, 5)
    display = CoefficientPathDisplay.from_estimator(clf, frame, y, alphas, n_named=2)
    largest = np.abs(display.coefs).max(axis=0)
    order = np.argsort(-largest)
    assert [line.get_label() for line in display.lines_] == [f"f{j}" for j in order[:2]]
    for line, j in zip(display.lines_, order[:2], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), display.coefs[:, j])
    # Zeros have no lines.
    assert len(display.other_lines_) == np.count_nonzero(largest) - 2
    display.plot(n_named=0)
    assert display.ax_.get_legend() is None
    assert len(display.other_lines_) == np.count_nonzero(largest)


def test_unnamed_features_have_numbers(data):
    display = CoefficientPathDisplay.from_estimator(
        SubLBFGSLinearSVC(), *data, 0.1, n_named=12, line_kw={"marker": "x"}
    )
    assert {line.get_label() for line in display.lines_} == {f"x{j}" for j in range(12)}
    assert {line.get_marker() for line in display.lines_} == {"x"}
    assert display.other_lines_ == []


def test_target_is_a_row_of_the_coefficients():
    X, y = make_classification(n_informative=5, n_classes=3, random_state=0)
    clf = MulticlassHingeClassifier(tol=1e-2)
    display = CoefficientPathDisplay.from_estimator(clf, X, y, [0.1], target=2)
    expected = clf.set_params(alpha=0.1).fit(X, y).coef_[2]
    np.testing.assert_allclose(display.coefs[0], expected)
    for target in (None, 3, -1, 1.5, 1.0, True):
        with pytest.raises(ValueError, match="target must be one of 0 to 2, the"):
            CoefficientPathDisplay.from_estimator(clf, X, y, [0.1], target=target)


def test_sparse_coefficients_and_arguments_of_fit(data):
    X, y = data

    class Sparsified(L1LogisticOWLQN):
        def fit(self, X, y, sample_weight=None):
            self.densify() if hasattr(self, "coef_") else None
            return super().fit(X, y, sample_weight).sparsify()

    weights = np.linspace(0.5, 1.5, len(y))
    display = CoefficientPathDisplay.from_estimator(
        Sparsified(tol=1e-8), sparse.csr_array(X), y, [1e-2], sample_weight=weights
    )
    expected = L1LogisticOWLQN(1e-2, tol=1e-8).fit(X, y, weights).coef_[0]
    np.testing.assert_allclose(display.coefs[0], expected, atol=1e-6)


def test_regressors_have_paths_too(data):
    X, y = data
    display = CoefficientPathDisplay.from_estimator(
        BMRMRegressor(penalty="l1"), X, y.astype(float), [1e-2, 1e-1]
    )
    assert display.coefs.shape == (2, 12)


@pytest.mark.parametrize("alphas", [[], [[1.0]], [0.0], [-1.0, 1.0]])
def test_grids_that_make_no_sense(data, alphas):
    with pytest.raises(ValueError, match="alphas must be"):
        CoefficientPathDisplay.from_estimator(SubLBFGSLinearSVC(), *data, alphas)


def test_other_estimators_are_refused(data):
    with pytest.raises(ValueError, match="parameters alpha and warm_start; LinearSVC"):
        CoefficientPathDisplay.from_estimator(LinearSVC(), *data, ALPHAS)
    with pytest.raises(NotFittedError):
        PathScoreDisplay.from_estimator(SubLBFGSLinearSVCCV())


@pytest.mark.parametrize("n_named", [-1, 1.5])
def test_number_of_names_is_checked(data, n_named):
    with pytest.raises((ValueError, TypeError), match="n_named must be"):
        CoefficientPathDisplay.from_estimator(
            SubLBFGSLinearSVC(), *data, ALPHAS, n_named=n_named
        )


def test_missing_matplotlib_is_named(data, searched, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="PathScoreDisplay needs matplotlib"):
        PathScoreDisplay.from_estimator(searched)
    with pytest.raises(ImportError, match="CoefficientPathDisplay needs matplotlib"):
        CoefficientPathDisplay.from_estimator(SubLBFGSLinearSVC(), *data, ALPHAS)


def test_paths_of_estimators_without_coefficients():
    X, y = make_classification(40, 5, random_state=0)
    with pytest.raises(ValueError, match="LinearSVC has not"):
        CoefficientPathDisplay.from_estimator(LinearSVC(), X, y, [0.1])
    network = MLPClassifier((2,), solver="lbfgs", max_iter=100_000)
    with pytest.raises(ValueError, match="coef_ once it is fitted; MLPClassifier has"):
        CoefficientPathDisplay.from_estimator(network, X, y, [0.1])


def test_paths_from_zero_do_not_warn(data):
    X, y = data
    model = L1LogisticOWLQN()
    alphas = model.alpha_max(X, y) * np.array([1.0, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConstantModelWarning)
        CoefficientPathDisplay.from_estimator(model, X, y, alphas)
