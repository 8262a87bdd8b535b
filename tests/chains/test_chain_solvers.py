"""Solvers of chains: optima, bounds that hold, warm starts, weights."""

from itertools import pairwise

import numpy as np
import pytest
from _chains import Enumeration, SlackHinge, fitted, random_problem
from _door import CHAIN_SOLVERS, ChainDesign, ChainHinge, ChainLogLoss, ElasticNet
from scipy import sparse
from scipy.optimize import minimize

from sklearn_subqn import LinearChainCRF
from sklearn_subqn._chains import sweeps_base
from sklearn_subqn._chains.entropy_sweeps import EntropySweeps
from sklearn_subqn._chains.pairs import observed_pairs
from sklearn_subqn._chains.sweeps import chain_sweeps

SMOOTH = ["auto", "dual-ascent", "lbfgs", "ls-bmrm"]


def reference(objective):
    """Minimize by another package's method; return the value."""

    def value_and_gradient(w):
        point = objective.at(w)
        return point.value, point.gradient

    w = np.zeros(objective.n_params)
    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    result = minimize(
        value_and_gradient, w, jac=True, method="L-BFGS-B", options=options
    )
    return float(result.fun)


@pytest.mark.parametrize("solver", SMOOTH)
@pytest.mark.parametrize("seed", range(3))
def test_optimum_is_that_of_scipy(solver, seed):
    rng = np.random.default_rng(seed)
    o = random_problem(rng, alpha=0.01, forbidden=0.2, ends=0.3, n=8)
    result = fitted(o, solver)
    assert result.status == "converged"
    best = reference(o)
    assert result.lower_bound <= best <= result.point.value * (1 + 1e-12)
    np.testing.assert_allclose(result.point.value, best, rtol=2e-6)


@pytest.mark.parametrize("kind", [ChainHinge, SlackHinge])
def test_hinges_agree(kind):
    rng = np.random.default_rng(1)
    o = random_problem(rng, loss=kind, alpha=0.1, forbidden=0.2, ends=0.3, n=8)
    best = fitted(o, "ls-bmrm", tol=1e-8, max_iter=3000)
    assert best.status == "converged"
    for solver, tol in (("auto", 1e-6), ("dual-ascent", 1e-4), ("bmrm", 1e-4)):
        result = fitted(o, solver, tol=tol, max_iter=3000)
        assert result.status == "converged"
        assert result.lower_bound <= best.point.value
        np.testing.assert_allclose(result.point.value, best.point.value, rtol=tol)


def check_bounds(seed):
    """No solver's bound is above any solver's objective."""
    rng = np.random.default_rng(seed)
    l1_ratio = float(rng.choice([0.0, 0.0, 0.5, 1.0]))
    kind = ChainHinge if not l1_ratio and rng.random() < 0.3 else ChainLogLoss
    if kind is ChainHinge and seed % 2:
        kind = SlackHinge
    forbidden = float(rng.choice([0.0, 0.5]))
    ends = float(rng.choice([0.0, 0.5]))
    o = random_problem(
        rng, loss=kind, l1_ratio=l1_ratio, forbidden=forbidden, ends=ends
    )
    names = [
        name
        for name, spec in CHAIN_SOLVERS.items()
        if spec.supports(o.loss, o.regularizer) and (l1_ratio or name != "owlqn")
    ]
    results = [fitted(o, name, tol=1e-9, max_iter=25) for name in names]
    best = min(result.point.value for result in results)
    for name, result in zip(names, results, strict=True):
        assert result.lower_bound <= best, (name, result.lower_bound - best)
        np.testing.assert_allclose(o.at(result.point.w).value, result.point.value)


def test_bounds_hold():
    for seed in range(40):
        check_bounds(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_bounds_hold_on_more_problems(block):
    for seed in range(100 * block, 100 * block + 100):
        check_bounds(seed)


@pytest.mark.parametrize("ends", [0.0, 0.6])
def test_bound_holds_with_extreme_scores(ends):
    rng = np.random.default_rng(0)
    o = random_problem(rng, alpha=1e-9, n=6, binary=False, ends=ends)
    o.design.X.data *= 1e3
    result = fitted(o, "dual-ascent", tol=1e-9, max_iter=50)
    assert np.isfinite(result.point.value)
    assert result.lower_bound <= reference(o)


@pytest.mark.parametrize("kind", [ChainLogLoss, ChainHinge, SlackHinge])
@pytest.mark.parametrize("packed", [False, True])
def test_dual_of_sweeps_is_that_of_their_parameters(kind, packed, monkeypatch):
    rng = np.random.default_rng(5)
    o = random_problem(rng, loss=kind, alpha=0.02, n=9, forbidden=0.3, ends=0.3)
    if packed:
        o.design.stride, o.design._places = 0, None
    design = o.design
    sweeps = chain_sweeps(design, o.loss.oracle.chains(o.targets), o.weights, o.alpha)
    order, last = np.flatnonzero(o.weights), -np.inf
    for _ in range(4):
        sweeps.run(order)
        dual, costs = sweeps.dual()
        w = design.adjoint(dual) / -o.alpha
        np.testing.assert_allclose(sweeps._w, design.pad(w), atol=1e-12)
        np.testing.assert_allclose(sweeps.w, w, atol=1e-12)
        value = -o.alpha * o.regularizer.value(w) - o.weights @ costs
        # No step descends.
        assert value >= last - 1e-14
        last = value
    assert value <= o.at(w).value


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_dual_is_that_of_the_chains_with_its_potentials(scale, packed, begun):
    """Marginals, sums of pairs and costs are those of all labelings one by one."""
    rng = np.random.default_rng(3)
    o = random_problem(rng, alpha=0.05, n=9, k=4, forbidden=0.4, ends=0.4)
    o.design.X.data *= scale
    if packed:
        o.design.stride, o.design._places = 0, None
    design, k = o.design, o.design.n_labels
    chains, starts = o.loss.oracle.chains(o.targets), o.design.starts
    sweeps = chain_sweeps(design, chains, o.weights, o.alpha)
    order = np.flatnonzero(o.weights)
    if begun:
        sweeps.begin(o.at(rng.normal(size=o.n_params)).scores)
    else:
        for _ in range(5):
            sweeps.run(order)
    dual, costs = sweeps.dual()
    pairs = np.zeros((k, k))
    for i in order:
        tokens = slice(starts[i], starts[i + 1])
        labels, length = o.targets[tokens], starts[i + 1] - starts[i]
        pairs -= o.weights[i] * _counts(labels, k)
        theta = np.zeros((length + k, k))
        theta[:length] = sweeps._theta[tokens, :k]
        theta[length:][sweeps._free] = sweeps._theta_pairs[i]
        own = Enumeration(
            *o.loss.oracle.of_sequences(np.array([0, length])).split(theta)
        )
        if not sweeps._rates[i]:
            # It leaves its true labels where others are possible and not too unlikely.
            assert scale > 1.0 or len(own.labelings) == 1
            np.testing.assert_array_equal(dual[tokens], 0.0)
            assert costs[i] == 0.0
            pairs += o.weights[i] * _counts(labels, k)
            continue
        expected = own.nodes.copy()
        expected[np.arange(length), labels] -= 1.0
        np.testing.assert_allclose(
            dual[tokens], o.weights[i] * expected, atol=1e-12 * scale
        )
        # Never below minus the entropy, which would make a bound too high.
        assert -own.entropy - 1e-14 <= costs[i] <= -own.entropy + 1e-12 * scale
        pairs += o.weights[i] * own.edges.sum(axis=0)
    free = sweeps._free
    np.testing.assert_allclose(dual[-k:][free], pairs[free], atol=1e-12 * scale)


def _counts(labels, k):
    counts = np.zeros((k, k))
    np.add.at(counts, (labels[:-1], labels[1:]), 1.0)
    return counts


def test_dual_variables_of_many_labels_take_little_room():
    """They grow with the labels of a token, not with their pairs."""
    rng = np.random.default_rng(0)
    sizes = []
    for k in (10, 20):
        starts = np.arange(0, 4001, 40)
        X = sparse.csr_array(rng.random((4000, 3)))
        labels = rng.integers(k, size=4000)
        pairs = observed_pairs(X, labels, k)
        design = ChainDesign(X, starts, k, pairs, np.eye(k, dtype=bool))
        sizes.append(EntropySweeps.n_bytes(design))
    assert sizes[1] < 2.0 * sizes[0] < 16 * 2 * 4000 * 13


@pytest.mark.parametrize("kind", [ChainHinge, SlackHinge])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_steps_between_labelings_kept_ascend(kind, packed, l1_ratio):
    """Without inference, too; and what they end at is a cut of the hinge everywhere."""
    rng = np.random.default_rng(4)
    o = random_problem(
        rng, loss=kind, alpha=0.01, n=9, k=4, forbidden=0.3, ends=0.3, l1_ratio=l1_ratio
    )
    if packed:
        o.design.stride, o.design._places = 0, None
    design, order = o.design, np.flatnonzero(o.weights)
    l1, l2 = o.penalties if l1_ratio else (0.0, o.alpha)
    chains = o.loss.oracle.chains(o.targets)
    sweeps = chain_sweeps(design, chains, o.weights, l2, l1 / l2)
    sweeps.begin(o.at(rng.normal(size=o.n_params)).scores)
    dual, costs = sweeps.dual()
    sweeps.recenter(design.adjoint(dual) / -l2)
    values = []
    for n in range(40):
        sweeps._sweep(order, n % 4 == 0)
        dual, costs = sweeps.dual()
        v = design.adjoint(dual) / -o.alpha
        np.testing.assert_allclose(sweeps.w, v * o.alpha / l2, atol=1e-12)
        values.append(-o.alpha * o.regularizer.conjugate(v) - o.weights @ costs)
        if n:
            assert values[-1] >= values[-2] - 1e-14
        if n % 4:
            # The dual is concave along each block.
            assert values[-1] - values[-2] <= o.weights @ sweeps.gaps + 1e-14
            assert np.all(sweeps.gaps >= 0.0)
    # Epochs over labelings kept gain, not only those with inference.
    assert max(values[n] - values[n - 1] for n in range(1, 40) if n % 4) > 1e-6
    for _ in range(20):
        point = o.at(10.0 ** rng.uniform(-1, 2) * rng.normal(size=o.n_params))
        cut = np.vdot(dual, point.scores) - o.weights @ costs
        assert cut <= point.risk * (1.0 + 1e-12) + 1e-14
    assert values[-1] <= o.at(o.regularizer.conjugate_gradient(v)).value


def test_ascent_begins_anew_after_a_reset():
    """Labelings that were kept are forgotten."""
    rng = np.random.default_rng(4)
    o = random_problem(rng, loss=ChainHinge, alpha=0.01, n=9, k=4)
    chains, order = o.loss.oracle.chains(o.targets), np.flatnonzero(o.weights)
    sweeps = chain_sweeps(o.design, chains, o.weights, o.alpha)
    dual, costs = sweeps.dual()
    for _ in range(3):
        sweeps.run(order)
    changed = sweeps.dual()
    assert changed.dual.any()
    sweeps.reset()
    again = sweeps.dual()
    np.testing.assert_array_equal(again.dual, dual)
    np.testing.assert_array_equal(again.costs, costs)
    for _ in range(3):
        sweeps.run(order)
    np.testing.assert_array_equal(sweeps.dual().dual, changed.dual)


@pytest.mark.parametrize("kind", [ChainLogLoss, ChainHinge, SlackHinge])
def test_dual_begins_at_zero_and_stays_within_the_ends(kind):
    """The first bound is the infimum, zero; no marginal is of a forbidden label."""
    rng = np.random.default_rng(7)
    o = random_problem(rng, loss=kind, alpha=0.01, n=9, k=4, ends=0.6)
    assert not o.loss.set.ends.all()
    sweeps = chain_sweeps(o.design, o.loss.oracle.chains(o.targets), o.weights, o.alpha)
    dual, costs = sweeps.dual()
    assert not dual.any()
    assert not costs.any()
    firsts, lasts = o.loss.set.starts[:-1], o.loss.set.starts[1:] - 1

    def outside():
        nodes = sweeps.dual().dual
        return nodes[firsts][:, ~o.loss.set.ends[0]], nodes[lasts][
            :, ~o.loss.set.ends[1]
        ]

    for scores in (None, o.at(5.0 * rng.normal(size=o.n_params)).scores):
        if scores is not None:
            sweeps.begin(scores)
            assert not any(part.any() for part in outside())
            sweeps.reset()
        for _ in range(3):
            sweeps.run(np.flatnonzero(o.weights))
            assert not any(part.any() for part in outside())
            assert np.isfinite(sweeps._w).all()


def test_ascent_begins_at_earlier_parameters():
    o = random_problem(np.random.default_rng(2), alpha=0.01, n=10)
    cold = fitted(o, "dual-ascent", tol=1e-8)
    warm = fitted(o, "dual-ascent", tol=1e-8, w=cold.point.w)
    assert warm.n_iter < cold.n_iter / 2
    assert warm.point.value <= cold.point.value


def test_without_room_for_marginals_others_take_over(monkeypatch):
    o = random_problem(np.random.default_rng(2), alpha=0.01, n=10)
    monkeypatch.setattr(sweeps_base, "_MOST_BYTES", 100)
    with pytest.raises(MemoryError, match="take the solver 'auto'"):
        fitted(o, "dual-ascent")
    result = fitted(o, "auto")
    assert result.status == "converged"
    assert set(result.history.phase) == {"bfgs"}


def test_without_room_for_labelings_the_bundle_method_takes_over(monkeypatch):
    """How many will be kept is not known before."""
    o = random_problem(np.random.default_rng(2), loss=ChainHinge, alpha=0.01, n=10)
    monkeypatch.setattr(sweeps_base, "_MOST_BYTES", 100)
    with pytest.raises(MemoryError, match="take the solver 'auto'"):
        fitted(o, "dual-ascent")
    result = fitted(o, "auto")
    assert result.status == "converged"
    phases = result.history.phase
    assert phases[:2] == ["dual ascent"] * 2
    assert phases[2] != "dual ascent"


def test_labelings_take_no_room_once_they_are_dropped():
    rng = np.random.default_rng(4)
    o = random_problem(rng, loss=ChainHinge, alpha=0.01, n=9, k=4)
    chains, order = o.loss.oracle.chains(o.targets), np.flatnonzero(o.weights)
    sweeps = chain_sweeps(o.design, chains, o.weights, o.alpha)
    labelings, sizes = sweeps._labelings, [0]
    for _ in range(40):
        sweeps.round(order, rng)
        sizes.append(labelings.n_bytes)
    assert sizes[1] >= 8 * o.design.n_tokens
    assert any(b < a for a, b in pairwise(sizes))
    sweeps.reset()
    assert labelings.n_bytes == 0


@pytest.mark.parametrize("kind", [ChainLogLoss, ChainHinge])
def test_visits_with_inference_count_as_products(kind):
    rng = np.random.default_rng(4)
    o = random_problem(rng, loss=kind, alpha=0.01, n=9, k=4)
    chains = o.loss.oracle.chains(o.targets)
    sweeps = chain_sweeps(o.design, chains, o.weights, o.alpha)
    before = o.passes
    sweeps.run(np.arange(9))
    assert o.passes == pytest.approx(before + 2.0)
    sweeps.run(np.arange(4))
    share = o.design.X[: o.design.starts[4]].nnz / o.design.X.nnz
    assert o.passes == pytest.approx(before + 2.0 + 2.0 * share)


@pytest.mark.parametrize("l1_ratio", [0.3, 0.9])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", [ChainLogLoss, ChainHinge, SlackHinge])
def test_steps_with_l1_ascend_the_dual(kind, packed, l1_ratio):
    """Parameters are soft thresholds, of which the kernel makes its scores."""
    rng = np.random.default_rng(5)
    o = random_problem(
        rng, loss=kind, alpha=0.02, n=9, forbidden=0.3, ends=0.3, l1_ratio=l1_ratio
    )
    if packed:
        o.design.stride, o.design._places = 0, None
    l1, l2 = o.penalties
    sweeps = chain_sweeps(
        o.design, o.loss.oracle.chains(o.targets), o.weights, l2, l1 / l2
    )
    order, last = np.flatnonzero(o.weights), -np.inf
    for _ in range(10):
        sweeps.run(order)
        dual, costs = sweeps.dual()
        v = o.design.adjoint(dual) / -o.alpha
        raw = o.design.pad(v * o.alpha / l2)
        np.testing.assert_allclose(sweeps._w, raw, atol=1e-12)
        value = -o.alpha * o.regularizer.conjugate(v) - o.weights @ costs
        assert value >= last - 1e-14
        last = value
    assert value <= o.at(o.regularizer.conjugate_gradient(v)).value


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_ascent_with_l1_reaches_what_owlqn_does(l1_ratio):
    rng = np.random.default_rng(3)
    o = random_problem(
        rng, alpha=0.01, n=30, d=12, l1_ratio=l1_ratio, forbidden=0.2, ends=0.3
    )
    best = fitted(o, "owlqn", tol=0.0, max_iter=2000).point.value
    for solver in ("dual-ascent", "auto"):
        result = fitted(o, solver, tol=1e-4, max_iter=500)
        assert result.status == "converged"
        assert result.lower_bound <= best
        assert best * (1 - 1e-12) <= result.point.value <= best * (1 + 1e-4)


@pytest.mark.parametrize("solver", ["auto", "owlqn"])
def test_l1_penalty_has_zeros_and_a_bound(solver):
    o = random_problem(np.random.default_rng(2), alpha=0.02, n=10, l1_ratio=1.0)
    result = fitted(o, solver, tol=1e-3)
    assert isinstance(o.regularizer, ElasticNet)
    assert result.status == "converged"
    assert np.count_nonzero(result.point.w == 0.0) > 0.2 * o.n_params


@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_l1_without_features_learns_transitions(loss):
    X = [np.zeros((n, 1)) for n in (3, 1, 4)]
    y = [list("aab"), list("a"), list("abab")]
    crf = LinearChainCRF(1e-3, l1_ratio=1.0, loss=loss, tol=1e-2).fit(X, y)
    assert crf.dual_gap_ <= 1e-2 * crf.objective_
    assert crf.transition_features_


@pytest.mark.parametrize(
    ("n", "length", "options"),
    [
        (1, 3000, {}),
        (1, 3000, {"loss": "hinge"}),
        (2, 150, {"loss": "hinge", "rescaling": "slack"}),
    ],
    ids=["log loss", "hinge", "slack"],
)
def test_fits_of_few_long_sequences_end_at_their_tolerance(n, length, options):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=(n, length))
    words = 2 * y + rng.integers(4, size=y.shape)
    X = [[{f"w{word}": 1.0} for word in each] for each in words.tolist()]
    crf = LinearChainCRF(1.0, tol=0.1, **options).fit(X, y.tolist())
    (history,) = crf.history_
    gaps = np.subtract(history.objective, history.lower_bound)
    # What is small enough is solved as exactly as can be, whatever the tolerance.
    assert gaps[-1] <= 0.1 * history.objective[-1]
    assert np.all(gaps[:-1] > 0.1 * np.array(history.objective[:-1]))
