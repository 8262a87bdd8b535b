"""LinearChainCRF: optima, predictions, rules of transitions, scikit-learn's ways."""

import copy
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest
from _door import CHAIN_SOLVERS, CHAIN_STREAMS
from _sequences import all_labelings, as_matrices, attributes_of, random_sequences
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from sklearn_subqn import ConvergenceDisplay, LinearChainCRF
from sklearn_subqn._chains import design, loss
from sklearn_subqn._chains.stream import Seen
from sklearn_subqn.crf import CRF

EXACT = {"tol": 1e-10, "max_iter": 5000}


def problem(seed=0, **options):
    return random_sequences(np.random.default_rng(seed), **options)


def weights(crf):
    return {**crf.state_features_, **crf.transition_features_}


def assert_same_model(a, b, **tolerance):
    assert_array_equal(a.classes_, b.classes_)
    assert weights(a) == pytest.approx(weights(b), **tolerance)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-8)


# Optima


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
@pytest.mark.parametrize("all_possible", [False, True])
def test_optimum_is_that_of_crfsuite(alpha, all_possible):
    sklearn_crfsuite = pytest.importorskip("sklearn_crfsuite")
    X, y = problem(n=30)
    options = {
        "all_possible_states": all_possible,
        "all_possible_transitions": all_possible,
    }
    c2 = alpha * len(X) / 2
    theirs = sklearn_crfsuite.CRF(
        c2=c2, max_iterations=3000, epsilon=1e-9, delta=1e-14, period=100, **options
    ).fit(X, y)
    crf = LinearChainCRF.from_crfsuite(c2=c2, n_sequences=len(X), **options, **EXACT)
    assert crf.alpha == pytest.approx(alpha)
    crf.fit(X, y)
    found = {**theirs.state_features_, **theirs.transition_features_}
    # They leave weights near zero out, and print six digits.
    for pair in {**found, **weights(crf)}:
        assert weights(crf).get(pair, 0.0) == pytest.approx(
            found.get(pair, 0.0), abs=2e-3
        )
    assert crf.predict(X) == [list(labels) for labels in theirs.predict(X)]
    ours = [list(p.values()) for x in crf.predict_marginals(X) for p in x]
    probabilities = theirs.predict_marginals(X)
    others = [[p[c] for c in crf.classes_] for x in probabilities for p in x]
    assert_allclose(ours, others, atol=1e-3)
    assert crf.score(X, y) == pytest.approx(
        np.mean(np.concatenate(crf.predict(X)) == np.concatenate(y))
    )


def test_rare_pairs_are_those_of_crfsuite():
    sklearn_crfsuite = pytest.importorskip("sklearn_crfsuite")
    X, y = problem(n=15)
    # Their frequencies are sums of values, ours numbers of tokens.
    X = [[{"word": token["word"]} for token in x] for x in X]
    for min_freq in (1, 2, 3, 5):
        theirs = sklearn_crfsuite.CRF(c2=0.5, min_freq=min_freq).fit(X, y)
        crf = LinearChainCRF(1e-2, min_freq=min_freq, tol=1e-6).fit(X, y)
        assert set(crf.state_features_) == set(theirs.state_features_)
        assert set(crf.transition_features_) == set(theirs.transition_features_)


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "hinge"}, {"loss": "hinge", "rescaling": "slack"}],
    ids=["log_loss", "margin", "slack"],
)
def test_objective_and_bound_are_those_of_an_enumeration(options):
    X, y = problem(n=8, longest=4)
    s = np.arange(1.0, 9.0)
    alpha = 1e-2
    crf = LinearChainCRF(alpha, **options, tol=1e-3).fit(X, y, s)
    risk = 0.0
    for x, labels, weight in zip(X, y, s, strict=True):
        found = all_labelings(crf, x)
        own = next(score for score, labeling in found if labeling == labels)
        scores = np.array([score for score, _ in found])
        wrong = np.array([np.not_equal(some, labels).sum() for _, some in found])
        if not options:
            value = np.logaddexp.reduce(scores) - own
        elif "rescaling" in options:
            value = np.max(wrong * (1.0 + scores - own))
        else:
            value = np.max(wrong + scores - own)
        risk += weight * value / s.sum()
    squares = sum(w * w for w in weights(crf).values())
    assert crf.objective_ == pytest.approx(alpha / 2 * squares + risk, rel=1e-9)
    assert 0.0 <= crf.dual_gap_ <= 1e-3 * crf.objective_
    better = LinearChainCRF(alpha, **options, tol=1e-6).fit(X, y, s)
    assert crf.objective_ - crf.dual_gap_ <= better.objective_ * (1 + 1e-12)


SCHEMES = {
    "BIO": ["O", "B-x", "I-x", "B-y", "I-y"],
    "BIOES": ["O", "B-x", "I-x", "E-x", "S-x"],
}


def makes_chunks(scheme, labels):
    """Whether labels are those of chunks, from the first token to the last one."""
    text = "".join(f"{label[0]}{label[-1]}" for label in labels)
    chunk = {"BIO": "B{0}(I{0})*", "BIOES": "S{0}|B{0}(I{0})*E{0}"}[scheme]
    chunks = "|".join(chunk.format(kind) for kind in "xy")
    return re.fullmatch(f"(OO|{chunks})*", text) is not None


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_training_is_that_of_the_labelings_of_a_scheme(scheme, loss):
    """Also at the ends, and what is predicted has the probabilities of training."""
    X, y = problem(n=400, labels=SCHEMES[scheme], longest=4)
    kept = [i for i, labels in enumerate(y) if makes_chunks(scheme, labels)]
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    assert len(X) > 30
    alpha = 1e-2
    crf = LinearChainCRF(
        alpha,
        loss=loss,
        transition_constraints=scheme,
        all_possible_transitions=True,
        tol=1e-6 if loss == "log_loss" else 1e-2,
    ).fit(X, y)
    risk = 0.0
    for x, labels in zip(X, y, strict=True):
        found = all_labelings(crf, x, lambda some: makes_chunks(scheme, some))
        scores = np.array([score for score, _ in found])
        own = next(score for score, labeling in found if labeling == labels)
        if loss == "hinge":
            wrong = [np.count_nonzero(np.array(some) != labels) for _, some in found]
            risk += np.max(scores + wrong) - own
        else:
            risk += np.logaddexp.reduce(scores) - own
    squares = sum(w * w for w in weights(crf).values())
    objective = alpha / 2 * squares + risk / len(X)
    assert crf.objective_ == pytest.approx(objective, rel=1e-9)
    for solver in ("lbfgs", "ls-bmrm") if loss == "log_loss" else ("ls-bmrm",):
        other = clone(crf).set_params(solver=solver).fit(X, y)
        for one, two in ((crf, other), (other, crf)):
            lower = one.objective_ - one.dual_gap_
            assert lower <= two.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("solver", CHAIN_SOLVERS)
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_a_model_without_weights(solver, loss, l1_ratio):
    """Where all pairs are rare, labelings are equally likely; warm starts go on."""
    X, y = [[{"a": 1.0}], [{"b": 1.0}, {"a": 2.0}]], [["x"], ["y", "x"]]
    crf = LinearChainCRF(
        1e-1, solver=solver, loss=loss, l1_ratio=l1_ratio, min_freq=5, warm_start=True
    )
    smooth = ("lbfgs", "owlqn", *CHAIN_STREAMS)
    if (loss == "hinge" and solver in smooth) or (
        solver in ("lbfgs", *CHAIN_STREAMS) if l1_ratio else solver == "owlqn"
    ):
        pytest.skip("the solver does not support this")
    crf.fit(X, y)
    assert not crf.state_features_
    constant = 1.5 * np.log(2.0) if loss == "log_loss" else 1.5
    assert crf.objective_ == pytest.approx(constant, rel=1e-12)
    assert crf.dual_gap_ <= 1e-12
    assert [len(labels) for labels in crf.predict(X)] == [1, 2]
    warm = clone(crf.set_params(min_freq=0).fit(X, y)).fit(X, y)
    assert abs(crf.objective_ - warm.objective_) <= max(crf.dual_gap_, warm.dual_gap_)
    crf.set_params(min_freq=5).fit(X, y).partial_fit(X, y)
    assert not crf.state_features_


def test_weights_are_repetitions():
    X, y = problem()
    s = np.random.default_rng(1).integers(0, 4, size=len(X))
    repeated = np.repeat(np.arange(len(X)), s)
    for options in ({}, {"min_freq": 4}, {"class_weight": {"a": 3.0, "b": 0.5}}):
        a = LinearChainCRF(1e-2, **options, **EXACT).fit(X, y, s)
        b = LinearChainCRF(1e-2, **options, **EXACT).fit(
            [X[i] for i in repeated], [y[i] for i in repeated]
        )
        assert_same_model(a, b, abs=1e-5)
    scaled = LinearChainCRF(1e-2, **EXACT).fit(X, y, s / 7)
    a = LinearChainCRF(1e-2, **EXACT).fit(X, y, s)
    assert_same_model(a, scaled, abs=1e-5)
    assert a.score(X, y, s) == pytest.approx(
        a.score([X[i] for i in repeated], [y[i] for i in repeated])
    )


def test_sequences_of_weight_zero_are_missing():
    X, y = problem(n=12)
    other = [[{"elsewhere": "x"}, {"elsewhere": "y"}]]
    s = np.append(np.ones(12), 0.0)
    a = LinearChainCRF(1e-2, **EXACT).fit(X + other, [*y, ["d", "e"]], s)
    b = LinearChainCRF(1e-2, **EXACT).fit(X, y)
    assert_same_model(a, b, abs=1e-7)


def test_class_weights_are_means_over_tokens():
    X, y = problem()
    factors = {"a": 3.0, "b": 0.5}
    s = [np.mean([factors.get(label, 1.0) for label in labels]) for labels in y]
    a = LinearChainCRF(1e-2, class_weight=factors, **EXACT).fit(X, y)
    assert_same_model(a, LinearChainCRF(1e-2, **EXACT).fit(X, y, s), abs=1e-6)
    flat = list(itertools.chain(*y))
    factors = {c: len(flat) / (3 * flat.count(c)) for c in "abc"}
    a = LinearChainCRF(1e-2, class_weight="balanced", **EXACT).fit(X, y)
    b = LinearChainCRF(1e-2, class_weight=factors, **EXACT).fit(X, y)
    assert_same_model(a, b, abs=1e-6)
    with pytest.raises(ValueError, match="class_weight"):
        LinearChainCRF(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match="no sequence"):
        LinearChainCRF(class_weight=dict.fromkeys("abc", 0.0)).fit(X, y)


def test_one_token_sequences_are_softmax_regression():
    from sklearn.linear_model import LogisticRegression

    X, y = problem(longest=1, n=40)
    crf = LinearChainCRF(1e-2, all_possible_states=True, **EXACT).fit(X, y)
    rows = np.vstack(as_matrices(X, crf.attributes_))
    labels = np.concatenate(y)
    clf = LogisticRegression(C=1 / (1e-2 * 40), fit_intercept=False, tol=1e-10)
    clf.set_params(max_iter=10_000).fit(rows, labels)
    found = {
        (name, c): clf.coef_[i, j]
        for i, c in enumerate(clf.classes_)
        for j, name in enumerate(crf.attributes_)
    }
    assert dict(crf.state_features_) == pytest.approx(found, abs=1e-5)
    assert crf.transition_features_ == {}


def test_l1_leaves_weights_out():
    X, y = problem(n=40)
    crf = LinearChainCRF(3e-2, l1_ratio=0.8, all_possible_states=True).fit(X, y)
    n_all = len(crf.attributes_) * 3
    assert 0 < len(crf.state_features_) < n_all / 2
    assert crf.dual_gap_ <= 1e-3 * crf.objective_
    pair, weight = next(iter(crf.state_features_.items()))
    assert weight != 0.0
    assert crf.state_features_[pair] == weight
    left_out = set(itertools.product(crf.attributes_, "abc")) - set(crf.state_features_)
    for pair in [*left_out, ("new", "a"), ("even", "new"), "even", ("even", "a", "b")]:
        assert pair not in crf.state_features_


# Predictions


@pytest.fixture(scope="module", params=[None, "BIO", "pairs", "matrix"])
def constrained(request):
    """A model, what it allows, and sequences."""
    X, y = problem(n=20, labels=["O", "B-x", "I-x"], longest=4)
    allowed = dict.fromkeys(itertools.product(("O", "B-x", "I-x"), repeat=2), True)
    first = {"O", "B-x", "I-x"}
    constraints = request.param
    if constraints == "BIO":
        allowed["O", "I-x"] = False
        first.remove("I-x")
    if constraints in ("pairs", "matrix"):
        allowed["B-x", "O"] = allowed["I-x", "I-x"] = False
    if constraints == "pairs":
        constraints = [("B-x", "O"), ("I-x", "I-x")]
    if constraints == "matrix":
        labels = sorted(first)
        constraints = [[allowed[a, b] for b in labels] for a in labels]

    def fits(labels):
        return labels[0] in first and all(map(allowed.get, itertools.pairwise(labels)))

    kept = [i for i, labels in enumerate(y) if fits(labels)]
    crf = LinearChainCRF(
        1e-2, transition_constraints=constraints, all_possible_transitions=True
    ).fit([X[i] for i in kept], [y[i] for i in kept])
    assert len(kept) > 5
    return crf, fits, X


def test_predictions_are_those_of_an_enumeration(constrained):
    crf, fits, X = constrained
    n = 5
    edges = crf.predict_edge_marginals(X)
    for x, best, marginals, pairs, ranked in zip(
        X,
        crf.predict(X),
        crf.predict_marginals(X),
        edges,
        crf.predict_n_best(X, n),
        strict=True,
    ):
        labelings = all_labelings(crf, x, fits)
        assert best == labelings[0][1]
        scores = np.array([score for score, _ in labelings])
        log_z = np.logaddexp.reduce(scores)
        assert [labels for labels, _ in ranked] == [la for _, la in labelings[:n]]
        assert_allclose([p for _, p in ranked], scores[:n] - log_z, atol=1e-10)
        p = np.exp(scores - log_z)
        for t, found in enumerate(marginals):
            for label, probability in found.items():
                mask = [labels[t] == label for _, labels in labelings]
                assert probability == pytest.approx(p[mask].sum(), abs=1e-10)
        assert pairs.shape == (len(x) - 1, 3, 3)
        for t, i, j in np.ndindex(*pairs.shape):
            two = [crf.classes_[i], crf.classes_[j]]
            mask = [labels[t : t + 2] == two for _, labels in labelings]
            assert pairs[t, i, j] == pytest.approx(p[mask].sum(), abs=1e-10)
    assert crf.predict_single(X[0]) == crf.predict(X)[0]
    assert crf.predict_marginals_single(X[0]) == crf.predict_marginals(X)[0]


def test_predictions_are_the_same_at_every_batch_size(constrained):
    crf, _, X = constrained
    marginals, best = crf.predict_marginals(X), crf.predict(X)
    for size in (1, 3, 7):
        parts = [X[i : i + size] for i in range(0, len(X), size)]
        assert list(itertools.chain(*map(crf.predict_marginals, parts))) == marginals
        assert list(itertools.chain(*map(crf.predict, parts))) == best


def test_predictions_obey_the_rules_on_any_input(constrained):
    crf, fits, _ = constrained
    X, _ = problem(5, n=50, longest=12)
    assert all(map(fits, crf.predict(X)))
    assert all(fits(labels) for x in crf.predict_n_best(X, 4) for labels, _ in x)
    transitions = crf.transition_features_
    assert all(fits(["B-x", *pair][1:]) for pair in transitions if pair[0] != "I-x")


def test_bioes():
    scheme = ["O", "B-x", "I-x", "E-x", "S-x", "B-y", "E-y", "S-y"]
    good = [
        ["O", "B-x", "I-x", "E-x", "S-y"],
        ["S-x", "B-x", "E-x", "B-y", "E-y", "O"],
        ["S-x"],
    ]
    X = [[{"label": label} for label in labels] for labels in good]
    crf = LinearChainCRF(1e-2, transition_constraints="BIOES").fit(X, good)
    assert crf.predict(X) == good
    rng = np.random.default_rng(0)
    for _ in range(30):
        x = [{"label": scheme[i]} for i in rng.integers(8, size=6)]
        labels = crf.predict_single(x)
        # Each chunk begins, goes on and ends as it should.
        kind = None
        for label in labels:
            prefix, _, this = label.partition("-")
            assert (prefix in "IE") == (kind is not None)
            assert kind is None or kind == this
            kind = this if prefix in "BI" else None
        assert kind is None
    for bad, message in [
        (["O", "I-x", "E-x"], "Sequence 3 has 'I-x' after 'O' at token 1"),
        (["E-x", "O"], "Sequence 3 begins with 'E-x'"),
        (["O", "B-x"], "Sequence 3 ends with 'B-x'"),
        (["B-x", "E-y"], "Sequence 3 has 'E-y' after 'B-x'"),
        (["B-x", "O"], "Sequence 3 has 'O' after 'B-x'"),
    ]:
        x = [{"label": label} for label in bad]
        with pytest.raises(ValueError, match=f"{message}.*BIOES' forbids"):
            crf.fit([*X, x], [*good, bad])
        # By the number that the user knows.
        s = [1.0, 0.0, 1.0, 1.0]
        with pytest.raises(ValueError, match=message):
            crf.fit([*X, x], [*good, bad], s)
    assert crf.predict(X) == good


def test_what_is_no_rule_is_refused():
    X, y = problem()
    for constraints, message in [
        ("IOB", "'BIO', 'IOB2', 'IOB1', 'BIOES', 'BILOU'"),
        ([("a", "b"), ("a", "d")], r"'d' is not among the labels \['a', 'b', 'c'\]"),
        ("BIO", "needs labels 'O', 'B-...', 'I-...', or 'B', 'I' .*; got 'a'"),
        (np.ones((2, 2), dtype=bool), r"shape \(3, 3\)"),
        (["ab"], "pairs of labels"),
        ([("a", "b", "c")], "pairs of labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            LinearChainCRF(transition_constraints=constraints).fit(X, y)
    with pytest.raises(TypeError, match="transition_constraints"):
        LinearChainCRF(transition_constraints=3).fit(X, y)


def test_hinge_has_no_probabilities():
    X, y = problem()
    crf = LinearChainCRF(1e-2, loss="hinge", tol=1e-2).fit(X, y)
    for name in ("predict_marginals", "predict_marginals_single"):
        with pytest.raises(AttributeError):
            getattr(crf, name)
    for x, best, ranked in zip(
        X, crf.predict(X), crf.predict_n_best(X, 3), strict=True
    ):
        labelings = all_labelings(crf, x)
        assert best == ranked[0][0]
        found = [score for _, score in ranked]
        assert_allclose(found, [score for score, _ in labelings[:3]], atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "lbfgs"},
        {"solver": "owlqn", "l1_ratio": 0.5},
        {"loss": "hinge", "rescaling": "slack", "tol": 1e-1},
    ],
)
def test_threads_do_not_change_results(options, monkeypatch):
    monkeypatch.setattr(loss, "_BLOCK", 20)
    monkeypatch.setattr(design, "PART_SIZE", 30)
    X, y = problem(n=40)
    a, *others = [
        LinearChainCRF(1e-2, n_jobs=n, **options).fit(X, y) for n in (None, 2, 3)
    ]
    probable = "loss" not in options
    for b in others:
        assert weights(a) == weights(b)
        assert a.history_[0].objective == b.history_[0].objective
        assert a.predict(X) == b.predict(X)
        assert a.predict_n_best(X, 3) == b.predict_n_best(X, 3)
        if probable:
            assert a.predict_marginals(X) == b.predict_marginals(X)
            edges = zip(
                a.predict_edge_marginals(X), b.predict_edge_marginals(X), strict=True
            )
            assert all(np.array_equal(*pair) for pair in edges)


def test_rescaling_is_of_the_hinge():
    X, y = problem()
    with pytest.raises(ValueError, match="rescaling='slack' needs loss='hinge'"):
        LinearChainCRF(rescaling="slack").fit(X, y)
    with pytest.raises(ValueError, match="'margin', 'slack'"):
        LinearChainCRF(loss="hinge", rescaling="both").fit(X, y)


def test_long_sequences_and_single_tokens():
    X, y = problem(n=1, longest=1)
    rng = np.random.default_rng(0)
    labels = rng.choice(list("ab"), size=3000).tolist()
    x = [{"label": label if rng.random() < 0.8 else "a"} for label in labels]
    crf = LinearChainCRF(1e-2).fit([x, X[0]], [labels, y[0]])
    assert crf.score([x], [labels]) > 0.6
    assert sum(crf.predict_marginals_single(x)[-1].values()) == pytest.approx(1.0)


# scikit-learn's ways


# Others want rows of numbers for X.
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_set_params,
    ],
)
def test_checks_of_scikit_learn(check):
    check("LinearChainCRF", LinearChainCRF())


def test_clone_parameters_and_representations():
    crf = LinearChainCRF(1e-2, transition_constraints="BIO", l1_ratio=0.5)
    copied = clone(crf)
    assert copied.get_params() == crf.get_params()
    assert repr(crf) == (
        "LinearChainCRF(alpha=0.01, l1_ratio=0.5, transition_constraints='BIO')"
    )
    assert "LinearChainCRF" in crf._repr_html_()
    X, y = problem()
    crf.set_params(transition_constraints=None, l1_ratio=0.0)
    before = crf.get_params()
    crf.fit(X, y)
    assert crf.get_params() == before
    assert "alpha=0.01" in repr(crf)
    html = crf._repr_html_()
    assert len(html) < 100_000
    assert not hasattr(LinearChainCRF(), "state_features_")
    assert not crf.__sklearn_tags__().input_tags.two_d_array
    assert crf.__sklearn_tags__().target_tags.required


def test_not_fitted():
    X, y = problem()
    crf = LinearChainCRF()
    for call in (
        lambda: crf.predict(X),
        lambda: crf.predict_marginals(X),
        lambda: crf.predict_edge_marginals(X),
        lambda: crf.predict_n_best(X, 2),
        lambda: crf.score(X, y),
    ):
        with pytest.raises(NotFittedError):
            call()
    for name in ("state_features_", "transition_features_", "attributes_"):
        assert not hasattr(crf, name)


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = problem()
    crf = LinearChainCRF(1e-2).fit(X, y)
    before = pickle.dumps(vars(crf))
    for bad_X, bad_y in [(X[:-1], y), (X, [*y[:-1], ["a"] * 99]), ([*X[:-1], []], y)]:
        with pytest.raises(ValueError, match=r"Sequence|inconsistent"):
            crf.fit(bad_X, bad_y)
        assert pickle.dumps(vars(crf)) == before
    with pytest.raises(RuntimeError, match="stop"):
        crf.set_params(callback=_raise).fit(X, y)
    crf.set_params(callback=None)
    assert pickle.dumps(vars(crf)) == before


def _raise(progress):
    raise RuntimeError("stop")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"alpha": 0.0}, ValueError),
        ({"alpha": "1"}, TypeError),
        ({"l1_ratio": 1.5}, ValueError),
        ({"solver": "lbfgs", "loss": "hinge"}, ValueError),
        ({"solver": "lbfgs", "l1_ratio": 0.5}, ValueError),
        ({"loss": "perceptron"}, ValueError),
        ({"solver": "momentum"}, ValueError),
        ({"all_possible_states": 1}, TypeError),
        ({"all_possible_transitions": "yes"}, TypeError),
        ({"min_freq": -1}, ValueError),
        ({"tol": -1.0}, ValueError),
        ({"max_iter": 0}, ValueError),
        ({"warm_start": 2}, TypeError),
        ({"n_jobs": 0}, ValueError),
        ({"callback": 3}, TypeError),
        ({"verbose": -1}, ValueError),
    ],
)
def test_parameters_that_are_not_acceptable(options, error):
    X, y = problem()
    with pytest.raises(error, match=next(iter(options))):
        LinearChainCRF(**options).fit(X, y)


def test_from_crfsuite():
    crf = LinearChainCRF.from_crfsuite(0.2, 0.4, n_sequences=50, min_freq=2)
    assert crf.alpha * crf.l1_ratio * 50 == pytest.approx(0.2)
    assert crf.alpha * (1 - crf.l1_ratio) / 2 * 50 == pytest.approx(0.4)
    assert crf.min_freq == 2
    assert LinearChainCRF.from_crfsuite(c2=0.4, n_sequences=50).l1_ratio == 0.0
    assert LinearChainCRF.from_crfsuite(0.4, 0.0, n_sequences=50).l1_ratio == 1.0
    for c1, c2, n in [(0.0, 0.0, 1), (-1.0, 1.0, 1), (1.0, -1.0, 1), (1.0, 1.0, 0)]:
        with pytest.raises(ValueError, match=r"c1|c2|n_sequences"):
            LinearChainCRF.from_crfsuite(c1, c2, n_sequences=n)


@pytest.mark.parametrize("n_tokens", [2, 6], ids=["equal", "unequal"])
@pytest.mark.parametrize("kind", [LinearChainCRF, CRF])
def test_predictions_of_left_out_folds(kind, n_tokens):
    X, y = ([each[:n_tokens] for each in all_ if len(each) > 1] for all_ in problem())
    expected = [None] * len(X)
    for train, test in KFold(3).split(X):
        model = kind().fit([X[i] for i in train], [y[i] for i in train])
        found = model.predict([X[i] for i in test])
        for i, labels in zip(test, found, strict=True):
            expected[i] = labels
    together = cross_val_predict(kind(), X, y, cv=KFold(3))
    assert together.tolist() == expected


def test_predictions_are_arrays_of_one_dimension():
    X, y = ([each[:2] for each in all_ if len(each) > 1] for all_ in problem())
    crf = LinearChainCRF().fit(X, y)
    edges = crf.predict_edge_marginals(X)
    for found in (
        crf.predict(X),
        crf.predict_marginals(X),
        edges,
        crf.predict_n_best(X, 2),
    ):
        assert isinstance(found, list)
        assert np.shape(found) == (len(X),)
        assert np.asarray(found)[3] is found[3]


def test_grid_search_and_cross_validation():
    X, y = problem(n=40)
    search = GridSearchCV(LinearChainCRF(), {"alpha": [1e-3, 1e-1, 10.0]}, cv=3)
    search.fit(X, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"]) > 0.4
    assert search.predict(X) == search.best_estimator_.predict(X)
    scores = cross_val_score(LinearChainCRF(1e-2), X, y, cv=4)
    assert len(scores) == 4
    assert scores.min() > 0.2
    pipeline = make_pipeline(None, LinearChainCRF(1e-2)).fit(X, y)
    assert pipeline.score(X, y) == LinearChainCRF(1e-2).fit(X, y).score(X, y)


def test_metadata_routing():
    X, y = problem(n=30)
    s = np.random.default_rng(0).integers(0, 3, size=30).astype(float)
    with config_context(enable_metadata_routing=True):
        crf = LinearChainCRF(1e-2).set_fit_request(sample_weight=True)
        crf.set_score_request(sample_weight=True)
        search = GridSearchCV(crf, {"alpha": [1e-2]}, cv=2).fit(X, y, sample_weight=s)
    direct = LinearChainCRF(1e-2).fit(X, y, s)
    assert_same_model(search.best_estimator_, direct, abs=1e-12)


def test_pickle_and_copy():
    X, y = problem()
    crf = LinearChainCRF(1e-2).fit(X, y)
    for other in (pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf)):
        assert_same_model(crf, other)
        assert other.predict(X) == crf.predict(X)
        assert other.predict_marginals(X) == crf.predict_marginals(X)


def test_the_same_data_give_the_same_model():
    X, y = problem(n=40)
    a, b = (LinearChainCRF(1e-3).fit(X, y) for _ in range(2))
    assert weights(a) == weights(b)
    other = LinearChainCRF(1e-3, random_state=1).fit(X, y)
    assert weights(other) != weights(a)
    threads = LinearChainCRF(1e-3, n_jobs=2).fit(X, y)
    assert weights(threads) == pytest.approx(weights(a), abs=1e-3)


def test_warm_start():
    X, y = problem(n=40)
    crf = LinearChainCRF(1e-3, tol=1e-6, warm_start=True).fit(X, y)
    objective, n_iter = crf.objective_, crf.n_iter_
    crf.fit(X, y)
    assert crf.n_iter_ < n_iter
    assert crf.objective_ == pytest.approx(objective, rel=1e-5)


def test_warm_start_on_other_data():
    X, y = problem(n=40)
    more_X, more_y = problem(1, n=30, labels="0abc", n_words=20)
    crf = LinearChainCRF(1e-3, tol=1e-6, warm_start=True).fit(X, y)
    before = weights(crf)
    # Labels and attributes are in other places; stopped where it starts.
    crf.set_params(callback=lambda progress: True).fit(more_X, more_y)
    cold = LinearChainCRF(1e-3, tol=1e-6).fit(more_X, more_y)
    pairs = list(itertools.product(crf.attributes_, crf.classes_))
    assert "0" in crf.classes_
    observed = {
        (name, label)
        for x, labels in zip(more_X, more_y, strict=True)
        for token, label in zip(x, labels, strict=True)
        for name in attributes_of(token)
    } | {pair for labels in more_y for pair in itertools.pairwise(labels)}
    assert weights(crf) == {p: w for p, w in before.items() if p in observed}
    assert len(weights(crf)) > len(pairs) / 3
    crf.set_params(callback=None).fit(more_X, more_y)
    assert crf.objective_ == pytest.approx(cold.objective_, rel=1e-5)


def test_warning_and_callbacks():
    X, y = problem(n=40)
    with pytest.warns(ConvergenceWarning, match="LinearChainCRF reached max_iter=1 "):
        LinearChainCRF(1e-4, max_iter=1, tol=1e-9).fit(X, y)
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.n_iter == 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        crf = LinearChainCRF(1e-4, tol=1e-9, callback=callback).fit(X, y)
    assert [progress.n_iter for progress in seen] == [0, 1, 2]
    assert crf.n_iter_ == 2
    assert len(crf.history_[0]) == 3


def test_callbacks_of_scikit_learn():
    callback = pytest.importorskip("sklearn.callback")
    X, y = problem(n=20)
    crf = LinearChainCRF(1e-3)
    monitor = callback.ScoringMonitor(
        scoring=lambda crf, X, y: {"accuracy": crf.score(X, y)}
    )
    crf.set_callbacks(monitor).fit(X, y)
    rows = monitor.get_logs().data
    iterations = [row for row in rows if row["task_name"] == "iteration"]
    assert len(iterations) == len(crf.history_[0])
    assert iterations[-1]["accuracy"] == crf.score(X, y) > iterations[0]["accuracy"]


def test_display_and_verbose(capsys):
    pytest.importorskip("matplotlib").use("Agg")
    X, y = problem()
    crf = LinearChainCRF(1e-2, verbose=1).fit(X, y)
    assert "LinearChainCRF: converged" in capsys.readouterr().out
    display = ConvergenceDisplay.from_estimator(crf)
    assert display is not None
    LinearChainCRF(1e-2).fit(X, y)
    assert capsys.readouterr().out == ""


# Streams


def batches(X, y, size):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


def chunked_sentences(n, seed):
    """Return sentences of words of which many are rare, with noisy labels."""
    rng = np.random.default_rng(seed)
    kinds = np.random.default_rng(0).integers(3, size=3000)
    X, y = [], []
    for _ in range(n):
        words = np.minimum(rng.zipf(1.3, rng.integers(5, 15)), 3000) - 1
        labels = np.where(
            rng.random(len(words)) < 0.8,
            kinds[words],
            rng.integers(3, size=len(words)),
        )
        X.append([{f"w{word}": 1.0, "bias": 1.0} for word in words])
        y.append([f"L{label}" for label in labels])
    return X, y


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_sequences_after_a_fit_weigh_as_those_before(loss, l1_ratio):
    """Held-out scores do not fall, as they do where old sequences count for little."""
    X, y = chunked_sentences(1500, 1)
    held_out = chunked_sentences(400, 2)
    known = slice(0, 1000)
    crf = LinearChainCRF(1e-3, l1_ratio=l1_ratio, loss=loss, tol=1e-2)
    before = crf.fit(X[known], y[known]).score(*held_out)
    one = copy.deepcopy(crf).partial_fit(X[1000:1001], y[1000:1001])
    assert one.score(*held_out) > before - 0.003
    crf.partial_fit(X[1000:], y[1000:])
    assert crf.score(*held_out) > before - 0.003


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("fitted", [False, True])
def test_sequences_of_almost_no_weight_change_nothing(fitted, l1_ratio, loss):
    """What a batch has taught stays when its curvature is known."""
    X, y = problem(n=300)
    crf = LinearChainCRF(1e-3, l1_ratio=l1_ratio, loss=loss, tol=1e-2)
    if fitted:
        crf.fit(X[:200], y[:200])
    crf.partial_fit(X[200:299], y[200:299], list("abc"))
    before = weights(crf)
    crf.partial_fit(X[299:], y[299:], sample_weight=[1e-9])
    after = weights(crf)
    largest = max(map(abs, before.values()))
    for pair in before | after:
        change = abs(after.get(pair, 0.0) - before.get(pair, 0.0))
        assert change < 0.02 * largest


def test_zeros_of_a_fit_with_l1_keep_what_speaks_for_them():
    """A weaker penalty of the stream finds parameters that a strong one made zero."""
    X, y = problem(n=200)
    strong, weak = (LinearChainCRF(a, l1_ratio=1.0) for a in (3e-2, 3e-3))
    strong.fit(X, y)
    few = len(strong.state_features_)
    strong.set_params(alpha=3e-3).partial_fit(X[:1], y[:1], sample_weight=[1e-9])
    many = len(weak.fit(X, y).state_features_)
    assert few < 0.6 * many
    assert len(strong.state_features_) > 0.8 * many


def test_partial_fit_learns():
    X, y = problem(n=300)
    whole = LinearChainCRF(1e-2).fit(X, y)
    crf = LinearChainCRF(1e-2)
    for part in batches(X, y, 50):
        crf.partial_fit(*part, classes=["c", "a", "b"])
    assert crf.classes_.tolist() == ["a", "b", "c"]
    assert set(crf.state_features_) == set(whole.state_features_)
    assert not hasattr(crf, "objective_")
    # The same objective at its weights, where a warm start begins.
    started = clone(crf).set_params(warm_start=True, callback=lambda progress: True)
    vars(started).update({k: v for k, v in vars(crf).items() if k not in vars(started)})
    started.fit(X, y)
    assert whole.objective_ < started.objective_ < 1.15 * whole.objective_
    assert crf.score(X, y) > whole.score(X, y) - 0.03


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_partial_fit_with_l1_comes_near_the_optimum(loss, l1_ratio):
    X, y = problem(n=100)
    whole = LinearChainCRF(1e-2, l1_ratio=l1_ratio, loss=loss, tol=1e-2).fit(X, y)
    crf = clone(whole)
    values = []
    for n_passes in (1, 1, 6, 64):
        for _ in range(n_passes):
            for part in batches(X, y, 20):
                crf.partial_fit(*part, classes=list("abc"))
        started = clone(crf).set_params(warm_start=True, callback=lambda progress: True)
        model = {k: v for k, v in vars(crf).items() if k not in vars(started)}
        vars(started).update(model)
        values.append(started.fit(X, y).history_[0].objective[0] / whole.objective_)
    assert values == sorted(values, reverse=True)
    assert 0.99 < values[-1] < 1.03
    assert len(crf.state_features_) < len(whole._pairs.labels)


def test_sums_of_a_stream_are_of_the_data_alone():
    """A weak penalty leaves zeros that a strong one made, one batch later."""
    X, y = problem(n=60)
    a = LinearChainCRF(1e-2, l1_ratio=1.0).partial_fit(X[:40], y[:40], list("abc"))
    few = len(a.state_features_)
    a.set_params(l1_ratio=0.01).partial_fit(X[40:], y[40:])
    b = LinearChainCRF(1e-2, l1_ratio=0.01)
    b.partial_fit(X[:40], y[:40], list("abc")).partial_fit(X[40:], y[40:])
    assert few < len(a.state_features_) / 2
    assert len(a.state_features_) > 0.9 * len(b.state_features_)


@pytest.mark.parametrize(
    "options", [{"loss": "log_loss"}, {"loss": "hinge"}, {"l1_ratio": 0.5}]
)
def test_a_pickle_in_mid_stream_goes_on_the_same(options):
    X, y = problem(n=60)
    a = LinearChainCRF(1e-2, **options)
    b = LinearChainCRF(1e-2, **options)
    for i, part in enumerate(batches(X, y, 10)):
        a.partial_fit(*part, classes=list("abc"))
        if i == 3:
            b = pickle.loads(pickle.dumps(b))
        b.partial_fit(*part, classes=list("abc"))
    assert weights(a) == weights(b)
    assert pickle.dumps(a) == pickle.dumps(pickle.loads(pickle.dumps(a)))


@pytest.mark.parametrize("l1_ratio", [0.0, 0.2])
def test_partial_fit_goes_on_from_fit(l1_ratio):
    X, y = problem(n=200)
    more_X, more_y = problem(n=300)
    new_X = [[{**token, "new": "x"} for token in x] for x in more_X[200:]]
    crf = LinearChainCRF(1e-2, l1_ratio=l1_ratio).fit(X, y)
    before, n = weights(crf), crf.n_features_in_
    crf.partial_fit(new_X, more_y[200:])
    assert crf.n_features_in_ == n + 1 == len(crf.attributes_)
    assert l1_ratio or set(before) < set(weights(crf))
    assert ("new:x", "a") in crf.state_features_
    changes = [abs(w - before.get(pair, 0.0)) for pair, w in weights(crf).items()]
    assert 0.0 < max(changes) < max(map(abs, before.values()))


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_partial_fit_in_any_unit_of_weights(l1_ratio):
    X, y = problem(n=60)
    s = np.random.default_rng(0).uniform(0.5, 2.0, size=60)
    a = LinearChainCRF(1e-2, l1_ratio=l1_ratio)
    b = clone(a)
    for i in range(0, 60, 20):
        part = slice(i, i + 20)
        a.partial_fit(X[part], y[part], list("abc"), s[part])
        b.partial_fit(X[part], y[part], list("abc"), 7 * s[part])
    assert weights(a) == pytest.approx(weights(b), rel=1e-9)
    # Sequences of weight zero are missing.
    c, d = clone(a), clone(a)
    c.partial_fit(X, y, list("abc"), np.arange(60) % 2)
    d.partial_fit(X[1::2], y[1::2], list("abc"))
    assert weights(c) == weights(d)


def sentences_with_lengths(unit, n=300):
    """Return tokens with a word that mostly names the label, and a length in a unit."""
    rng = np.random.default_rng(2)
    labels = ["O", "CAT", "DOG", "MOUSE"]
    y = [[labels[i] for i in rng.integers(0, 4, 5)] for _ in range(n)]
    X = []
    for tags in y:
        words = [
            f"{tag}{rng.integers(6)}" if rng.random() < 0.8 else f"x{rng.integers(20)}"
            for tag in tags
        ]
        lengths = unit * rng.lognormal(3.0, 1.0, size=5)
        X.append(
            [{"word": w, "length": v} for w, v in zip(words, lengths, strict=True)]
        )
    return X, y


def streamed(X, y, n_passes=1, **options):
    crf = LinearChainCRF(1e-2, **options)
    for _ in range(n_passes):
        for part in batches(X, y, 20):
            crf.partial_fit(*part, classes=["O", "CAT", "DOG", "MOUSE"])
    return crf


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_partial_fit_learns_in_any_unit_of_attributes(loss, l1_ratio):
    """As well as ``fit``, which sees all data at once."""
    options = {"loss": loss, "l1_ratio": l1_ratio}
    X, y = sentences_with_lengths(0.01)
    best = LinearChainCRF(1e-2, tol=3e-2, **options).fit(X, y).score(X, y)
    for unit in (0.01, 1.0, 100.0):
        X, y = sentences_with_lengths(unit)
        assert streamed(X, y, 2, **options).score(X, y) > best - 0.02


def test_partial_fit_is_the_same_in_other_large_units():
    """Where the penalty of the objective is weak beside that of steps."""
    models = [streamed(*sentences_with_lengths(2.0**k)) for k in (6, 20)]
    a, b = (
        {
            pair: w * 2.0**k if pair[0] == "length" else w
            for pair, w in weights(crf).items()
        }
        for crf, k in zip(models, (6, 20), strict=True)
    )
    assert a == pytest.approx(b, rel=1e-9)


def test_partial_fit_goes_on_from_fit_in_any_unit_of_attributes():
    scores = []
    for unit in (0.01, 100.0):
        X, y = sentences_with_lengths(unit)
        crf = LinearChainCRF(1e-2, tol=1e-2).fit(X[:200], y[:200])
        for part in batches(X[200:250], y[200:250], 5):
            crf.partial_fit(*part)
        scores.append(crf.score(X, y))
    assert scores[1] > scores[0] - 0.02


def test_sizes_of_features_do_not_depend_on_batches():
    rng = np.random.default_rng(0)
    starts, weights = np.arange(0, 41, 4), rng.uniform(0.5, 2.0, size=10)
    X = sparse.random_array((40, 7), density=0.3, rng=rng, format="csr")
    X.data[3] = 0.0
    columns = np.arange(7)
    whole = Seen().and_of(X, starts, weights, columns)
    parts = Seen()
    for first, end in ((0, 4), (4, 5), (5, 10)):
        rows = X[starts[first] : starts[end]]
        own = np.unique(rows.indices)
        bounds = starts[first : end + 1] - starts[first]
        parts = parts.and_of(rows[:, own].tocsr(), bounds, weights[first:end], own)
    assert_allclose(parts.counts, whole.counts)
    assert_allclose(parts.squares, whole.squares)
    dense, s = X.toarray(), np.repeat(weights, 4)[:, np.newaxis]
    assert_allclose(whole.counts, (s * (dense != 0.0)).sum(axis=0))
    assert_allclose(whole.squares * whole.counts, (s * dense**2).sum(axis=0))


def test_partial_fit_of_matrices_and_rules():
    X, y = problem(n=40, labels=["O", "B-x", "I-x"])
    kept = [i for i, labels in enumerate(y) if "I-x" not in labels]
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    crf = LinearChainCRF(1e-2, transition_constraints="BIO")
    crf.partial_fit(X, y, classes=["O", "B-x", "I-x"])
    assert all(labels[0] != "I-x" for labels in crf.predict(X))
    matrices = as_matrices(X, crf.attributes_)
    other = clone(crf).partial_fit(matrices, y, classes=["O", "B-x", "I-x"])
    other.partial_fit(matrices, y)
    assert other.score(matrices, y) > 0.5
    with pytest.raises(ValueError, match="features"):
        other.partial_fit([m[:, 1:] for m in matrices], y)
    with pytest.raises(TypeError, match="columns as in training"):
        other.partial_fit(X, y)


def test_partial_fit_refuses_and_stays_as_it_was():
    X, y = problem(n=20)
    with pytest.raises(ValueError, match="classes"):
        LinearChainCRF().partial_fit(X, y)
    with pytest.raises(ValueError, match="balance"):
        LinearChainCRF(class_weight="balanced").partial_fit(X, y, list("abc"))
    with pytest.raises(ValueError, match="at least 2"):
        LinearChainCRF().partial_fit(X, y, classes=["a"])
    crf = LinearChainCRF().partial_fit(X, y, classes=list("abc"))
    before = pickle.dumps(crf)
    new = [{"never": "seen"}, {"word": "w1"}]
    for bad_X, bad_y, classes, message in [
        ([*X, new], [*y, ["a", "z"]], None, "not among the classes"),
        ([*X, new, []], [*y, ["a", "b"], []], None, "empty"),
        ([*X, new], [*y, ["a"]], None, "2 tokens, but 1 labels"),
        (X, y, ["a", "b"], "differ from those of the model"),
    ]:
        with pytest.raises(ValueError, match=message):
            crf.partial_fit(bad_X, bad_y, classes=classes)
        assert pickle.dumps(crf) == before


@pytest.mark.parametrize(
    ("params", "plan"),
    [
        ({}, "dual ascent, L-BFGS"),
        ({"l1_ratio": 0.5}, "dual ascent, OWL-QN"),
        ({"loss": "hinge"}, "dual ascent, bundle method"),
        ({"solver": "lbfgs"}, "lbfgs"),
    ],
)
def test_plans_are_told(params, plan):
    X, y = [[{"a": 1.0}, {"b": 1.0}], [{"b": 1.0}]], [["x", "y"], ["y"]]
    crf = LinearChainCRF(alpha=0.1, **params).fit(X, y)
    assert crf.plan_ == plan
    crf.partial_fit(X, y)
    assert not hasattr(crf, "plan_")


@pytest.mark.parametrize("options", [{"l1_ratio": 0.9}, {"min_freq": 4}])
def test_zero_weights_are_dropped_where_users_ask(options):
    X, y = problem(3, n=60)
    X = [[{**token, "rare": f"{i}"} for token in x] for i, x in enumerate(X)]
    crf = LinearChainCRF(1e-2, all_possible_transitions=True, **options).fit(X, y)
    whole = pickle.dumps(crf)
    known, features = len(crf.attributes_), weights(crf)
    assert crf.sparsify() is crf
    assert len(pickle.dumps(crf)) < 0.8 * len(whole)
    names = {attribute for attribute, _ in crf.state_features_}
    assert set(crf.attributes_) == names
    assert crf.n_features_in_ == len(names) < 0.8 * known
    assert weights(crf) == features
    before = pickle.loads(whole)
    assert crf.predict(X) == before.predict(X)
    assert crf.predict_marginals(X) == before.predict_marginals(X)
    assert crf.predict_single(X[0]) == before.predict_single(X[0])
    assert crf._w.all()
    # What was dropped may come again.
    crf.partial_fit(X[:20], y[:20])
    assert set(crf.attributes_) > names
    assert crf.score(X[:20], y[:20]) >= before.score(X[:20], y[:20]) - 0.05


def test_dropping_zero_weights_keeps_columns_of_matrices():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), rng.integers(2, size=40)
    X[:, 0] += 2.0 * y
    crf = LinearChainCRF(0.3, l1_ratio=1.0).fit(X, y, lengths=[5] * 8)
    found = crf.predict(X, lengths=[40])
    crf.sparsify()
    assert crf._w.all()
    assert len(crf._w) < 12
    assert crf.n_features_in_ == 6
    assert_array_equal(crf.predict(X, lengths=[40]), found)
