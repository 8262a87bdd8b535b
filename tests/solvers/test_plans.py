"""Each row of the table of plans is chosen where it should be."""

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    PLANS,
    Design,
    Objective,
    Risk,
    without_compiled_loop,
)
from _followed import followed
from scipy import sparse
from sklearn.datasets import make_classification

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._core.driver import Options, Start, Stopping
from sklearn_subqn._core.solvers.facts import WORDS, Facts
from sklearn_subqn._problems.features import ALL_COLUMNS, Rows
from sklearn_subqn.linear_model import HuberRegressor


def classes(n, d, k=2, unit=1.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, k)) / np.sqrt(d) + rng.normal(size=(n, k))
    return unit * X, scores.argmax(axis=1)


def labels(n, d):
    X, y = classes(n, d, 4)
    return X, np.stack([y > 0, y % 2 == 0, X[:, 0] > 0.0], axis=1).astype(int)


def words(n, d):
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, d), density=0.008, format="csr", rng=rng)
    return X, np.asarray(X @ rng.normal(size=d) > 0.0).astype(int)


def indicators(n, n_columns, n_categories):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_categories, (n, n_columns))
    X = np.eye(n_categories)[codes].reshape(n, -1)
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=n) > 0.0
    return sparse.csr_array(X), y.astype(int)


def several(data, n, d):
    X, y = data(n, d)
    return X, y + 2 * (np.arange(n) % 2)


def targets(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


HUBER = {"loss": "huber", "epsilon": 1e-3}
PENALTY = {"penalty": "l1"}

CASES = [
    ("smaller units", MulticlassHingeClassifier(1e-2), classes(100, 5, 3, 1e9)),
    (
        "smaller units",
        BMRMRegressor(1e-12, loss="quantile", penalty="l1"),
        targets(600, 101),
    ),
    ("span of the rows", MulticlassHingeClassifier(1e-2), classes(30, 80, 3)),
    ("larger alphas", SubLBFGSLinearSVC(1e-8), classes(100, 40)),
    ("larger alphas", MulticlassHingeClassifier(1e-7), classes(100, 60, 3)),
    ("larger alphas", SubLBFGSLinearSVC(1e-8), words(200, 900)),
    (
        "larger alphas",
        SubLBFGSLinearSVC(1e-6, loss="squared_hinge"),
        words(200, 900),
    ),
    ("dual ascent", SubLBFGSLinearSVC(1e-3), words(200, 900)),
    ("dual ascent", SubLBFGSLinearSVC(loss="squared_hinge"), words(200, 900)),
    (
        "sample, proximal method of multipliers",
        MulticlassHingeClassifier(1e-5),
        classes(4000, 3, 3),
    ),
    (
        "sample, proximal method of multipliers",
        SubLBFGSLinearSVC(1e-3),
        classes(6000, 3),
    ),
    (
        "sample, proximal method of multipliers",
        SubLBFGSLinearSVC(1e-8),
        classes(6000, 3, unit=1e3),
    ),
    (
        "proximal method of multipliers",
        SubLBFGSLinearSVC(1e-2),
        classes(60, 300),
    ),
    (
        "dual ascent",
        MulticlassHingeClassifier(1e-2),
        classes(500, 20, 3),
    ),
    (
        "dual ascent",
        MultilabelHingeClassifier(1e-2, reduction="max"),
        labels(500, 20),
    ),
    ("proximal method of multipliers", SubLBFGSLinearSVC(), classes(300, 5)),
    (
        "proximal method of multipliers",
        MulticlassHingeClassifier(1e-2, rescaling="slack"),
        classes(300, 20, 3),
    ),
    (
        "larger alphas",
        SubLBFGSLinearSVC(1e-6, loss="squared_hinge"),
        classes(60, 300),
    ),
    (
        "Newton's method",
        SubLBFGSLinearSVC(loss="squared_hinge"),
        classes(300, 5),
    ),
    (
        "coordinate descent",
        BMRMRegressor(1e-2, **HUBER, **PENALTY),
        targets(300, 5),
    ),
    (
        "larger alphas",
        BMRMClassifier(1e-4, loss="squared_hinge", **PENALTY),
        classes(60, 100),
    ),
    (
        "proximal Newton method",
        BMRMClassifier(1e-5, loss="squared_hinge", **PENALTY),
        indicators(9000, 4, 5),
    ),
    ("coordinate descent", L1LogisticOWLQN(1e-3), classes(9000, 4)),
    ("coordinate descent", L1LogisticOWLQN(1e-3), classes(300, 5)),
    (
        "proximal Newton method",
        BMRMClassifier(1e-3, loss="ordinal_all_threshold", **PENALTY),
        classes(300, 5, 4),
    ),
    (
        "proximal Newton method",
        BMRMClassifier(1e-3, loss="roc_area_squared", **PENALTY),
        classes(300, 5),
    ),
    (
        "proximal Newton method",
        BMRMClassifier(0.2, loss="roc_area_squared", **PENALTY),
        classes(60, 2100),
    ),
    (
        "OWL-QN",
        BMRMClassifier(0.2, loss="ordinal_all_threshold", **PENALTY),
        classes(60, 2100, 4),
    ),
    (
        "larger alphas",
        BMRMClassifier(1e-4, loss="hinge", **PENALTY),
        classes(60, 100),
    ),
    (
        "proximal method of multipliers",
        BMRMClassifier(1e-2, loss="hinge", **PENALTY),
        classes(300, 5),
    ),
    (
        "Newton's method on smooth losses that approach the hinge",
        BMRMClassifier(1e-2, loss="roc_area"),
        classes(5000, 5),
    ),
    (
        "Newton's method on faces",
        BMRMRegressor(1e-2, loss="poisson", positive=True),
        (targets(60, 5)[0], np.abs(targets(60, 5)[1])),
    ),
    (
        "proximal method of multipliers",
        BMRMRegressor(1e-2, loss="absolute_error", positive=True),
        targets(60, 5),
    ),
    (
        "block coordinate descent",
        BMRMRegressor(1e-2, penalty="group", groups=np.arange(5) // 2),
        targets(60, 5),
    ),
    (
        "accelerated proximal gradient",
        BMRMClassifier(1e-2, loss="multinomial", penalty="group"),
        several(words, 400, 2000),
    ),
    ("bundle method", BMRMClassifier(1e-2, loss="f_beta_bound"), classes(100, 5)),
]


@pytest.fixture
def no_loop(monkeypatch):
    """Other rows of the table are chosen for few rows of data, too."""
    without_compiled_loop(monkeypatch)


@pytest.mark.parametrize(("name", "model", "data"), CASES)
@pytest.mark.usefixtures("no_loop")
def test_chosen(name, model, data):
    assert model.fit(*data).plan_ == name


SMALL = [
    (SubLBFGSLinearSVC(), classes(300, 5)),
    (SubLBFGSLinearSVC(loss="squared_hinge"), classes(3000, 50)),
    (L1LogisticOWLQN(1e-3, l1_ratio=0), classes(300, 5)),
    (BMRMRegressor(1e-3, loss="quantile"), targets(300, 5)),
    (BMRMRegressor(1e-3, loss="epsilon_insensitive"), targets(60, 80)),
    (BMRMRegressor(1e-4, **HUBER), targets(300, 5)),
    (HuberRegressor(), targets(300, 5)),
]


@pytest.mark.parametrize(("model", "data"), SMALL)
def test_few_rows_are_for_the_compiled_loop(model, data):
    assert model.fit(*data).plan_ == "one compiled loop"


@pytest.mark.parametrize(
    ("alpha", "plan"), [(1e-3, "one compiled loop"), (1e-6, "Newton's method")]
)
def test_small_alphas_on_text_are_for_newton(alpha, plan):
    model = L1LogisticOWLQN(alpha, l1_ratio=0).fit(*several(words, 400, 1500))
    assert model.plan_ == plan


def test_the_loop_of_classes_counts_its_passes():
    easy, hard = (
        L1LogisticOWLQN(alpha, l1_ratio=0).fit(*classes(300, 5, 3))
        for alpha in (10.0, 1e-4)
    )
    assert hard.plan_ == "one compiled loop"
    assert hard.history_[0].passes[-1] > easy.history_[0].passes[-1] + 4.0


@pytest.mark.usefixtures("no_loop")
def test_a_start_with_a_dual_point():
    X, y = classes(300, 5)
    model = SubLBFGSLinearSVC(warm_start=True).fit(X, y)
    model.set_params(alpha=1e-5).fit(X, y)
    assert model.plan_ == "proximal method of multipliers"


def test_every_row_has_a_name_and_a_test():
    names = sorted({name for name, *_ in CASES} | {"one compiled loop"})
    assert names == sorted(plan.name for plan in PLANS)


#: Files, functions and depth of calls that fits of all rows of the table take at most,
#: in the median and for each. Whoever shortens the way lowers these.
MEDIAN, MOST = (60, 352, 25), (70, 466, 31)


@pytest.mark.usefixtures("no_loop")
def test_the_way_of_a_fit_is_no_longer_than_it_was():
    """Printed by ``pytest -s tests/solvers/test_plans.py -k way``."""
    ways = {}
    for name, model, data in CASES:
        if name in ways:
            continue
        # The first fit finds libraries, and fills tables that are kept.
        model.fit(*data)
        files, functions, deepest = followed(model, *data)
        ways[name] = len(files), len(functions), deepest
        print(*ways[name], name)
    counts = np.array(list(ways.values()))
    print(*np.median(counts, axis=0), "median")
    assert np.all(np.median(counts, axis=0) <= MEDIAN)
    assert np.all(counts.max(axis=0) <= MOST)


def counts(n, d, k):
    """Return counts of words, by topics, in texts of very different lengths."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(d, 0.005), size=k)
    common = rng.dirichlet(np.full(d, 0.01))
    y = rng.integers(0, k, n)
    lengths = 5 + (20.0 * rng.lognormal(sigma=2.0, size=n)).astype(int)
    pairs = zip(lengths, y, strict=True)
    X = [rng.multinomial(m, 0.15 * topics[c] + 0.85 * common) for m, c in pairs]
    return sparse.csr_array(np.stack(X).astype(float)), y


def test_few_long_rows_do_not_make_ascent_slow(monkeypatch):
    """Without a proximal term that gets weaker it takes 2,529 passes, mostly of alm.

    With the columns that have entries alone, rows are not as sparse as text.
    """
    monkeypatch.setattr(Rows, "of_own_columns", lambda rows: (ALL_COLUMNS, rows))
    X, y = counts(600, 20_000, 6)
    model = MulticlassHingeClassifier(1e-3).fit(X, y)
    assert model.history_[0].passes[-1] < 2000


def test_topics_with_words_of_their_own_need_no_proximal_term():
    """With a proximal term from the beginning on it takes 428 passes."""
    rng = np.random.default_rng(0)
    n, d, k, length = 600, 8000, 20, 40
    y = rng.integers(k, size=n)
    own = rng.integers(d, size=(k, 30))[
        y[:, np.newaxis], rng.integers(30, size=(n, length))
    ]
    drawn = np.where(
        rng.random((n, length)) < 0.3, own, rng.integers(d, size=(n, length))
    )
    X = sparse.csr_array(
        (np.ones(n * length), (np.repeat(np.arange(n), length), drawn.ravel())),
        shape=(n, d),
    )
    X.sum_duplicates()
    model = MulticlassHingeClassifier(3e-4, fit_intercept=False).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.history_[0].passes[-1] < 80


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_text_without_words(fit_intercept):
    X, y = sparse.csr_array((30, 500)), np.arange(30) % 3
    model = MulticlassHingeClassifier(1e-2, fit_intercept=fit_intercept).fit(X, y)
    assert model.objective_ == pytest.approx(1.0)
    assert model.dual_gap_ <= 1e-3


def test_fits_say_why_their_plan_was_chosen(capsys):
    X, y = make_classification(3000, 150, random_state=0)
    # The compiled loop would have to convert so many numbers.
    X = X.astype(np.float32)
    model = SubLBFGSLinearSVC(1e-3, tol=1e-2, verbose=2).fit(X, y)
    lines = [
        line.partition(": ")[2]
        for line in capsys.readouterr().out.splitlines()
        if not line.startswith("SubLBFGSLinearSVC: iteration")
    ]
    taken = next(line for line in lines if line.startswith("taken: "))
    assert taken.startswith(f"taken: {model.plan_}. The loss has kinks,")
    skipped = lines[: lines.index(taken)]
    names = [plan.name for plan in PLANS]
    assert len(skipped) == names.index(model.plan_)
    for line, name in zip(skipped, names, strict=False):
        assert line.startswith(f"not {name}: it is false that ")


def told(model, data, name, capsys):
    """Return what a fit says of a row of the table."""
    model.fit(*data)
    lines = capsys.readouterr().out.splitlines()
    return next(line for line in lines if f"not {name}: " in line)


@pytest.mark.usefixtures("no_loop")
def test_rows_that_are_skipped_tell_numbers_with_limits(capsys):
    """The lines also say which parts of the conditions are false."""
    model = SubLBFGSLinearSVC(1e-3, verbose=2)
    line = told(model, classes(300, 40), "larger alphas", capsys)
    words = "(X is not like text, rows have one score, rows = 300 < 4100, curvature = "
    assert words in line
    assert line.endswith(" <= 20000, the loss is not one whose slope alone has kinks).")
    line = told(model, classes(300, 40), "span of the rows", capsys)
    numbers = "(features = 40 < 600, rows = 300 <= 2000, rows have one score)."
    assert line.endswith(numbers)
    line = told(model, classes(300, 700), "span of the rows", capsys)
    assert "(features = 700 >= 600, rows = 300 <= 2000, " in line


def test_conditions_that_are_true_tell_numbers_only(capsys):
    SubLBFGSLinearSVC(1e-3, verbose=2).fit(*classes(300, 40))
    lines = capsys.readouterr().out.splitlines()
    taken = next(line for line in lines if "taken: one compiled loop. " in line)
    assert "(parameters of a score = 41 <= 300)." in taken
    assert all(" = " in part for part in taken.rpartition("(")[2].split(", "))


def test_every_fact_has_words():
    X, y = classes(60, 3)
    signs = np.where(y, 1.0, -1.0)
    risk = Risk(Design(X), BINARY_LOSSES["log_loss"], signs, np.full(60, 1 / 60))
    objective = Objective(risk, L2(3), 0.1)
    facts = Facts(objective, Start(np.zeros(4)), Options(stopping=Stopping(1e-3)))
    names = [name for name in dir(facts) if name[0] != "_"]
    known = {name for name in names if isinstance(getattr(facts, name), int | float)}
    assert known == set(WORDS)


def test_every_condition_has_a_sentence_of_its_own():
    from sklearn_subqn._core.solvers.plans import sentence

    conditions = {each for plan in PLANS for each in plan.when}
    sentences = {sentence(each) for each in conditions}
    assert len(sentences) == len(conditions)
    assert all(text.endswith(".") for text in sentences)
