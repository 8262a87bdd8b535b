"""The kernels of rankings against their NumPy twins, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn._core.kernels import ranking


def groups(n, n_groups, seed=0):
    """Return rows' groups, where each group begins, and scores."""
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.integers(0, n_groups, n)).astype(np.intp)
    starts = np.searchsorted(codes, np.arange(n_groups + 1)).astype(np.intp)
    shuffled = rng.permutation(codes)
    return shuffled, starts, np.round(2.0 * rng.normal(size=n), 1)


def sorted_rows(codes, starts, scores):
    out = np.empty(len(codes), dtype=np.intp)
    ranking.gather(np.argsort(scores, kind="stable"), codes, starts, out)
    return out


@pytest.mark.parametrize(("n", "n_groups"), [(0, 1), (1, 1), (50, 1), (200, 9)])
def test_gather(n, n_groups):
    codes, starts, scores = groups(n, n_groups)
    out = sorted_rows(codes, starts, scores)
    assert_array_equal(out, np.lexsort((scores, codes)))


@pytest.mark.parametrize("kind", ["constant", "difference", "table"])
@pytest.mark.parametrize(("n", "n_groups"), [(0, 1), (1, 1), (30, 1), (80, 5)])
def test_ordered_pairs(kind, n, n_groups):
    codes, starts, scores = groups(n, n_groups)
    rng = np.random.default_rng(1)
    k = 4
    levels, weights = rng.integers(0, k, n).astype(np.intp), rng.random(n)
    values, costs, cost = np.empty(0), np.empty((0, 0)), np.ones((k, k))
    if kind == "difference":
        values = np.sort(rng.normal(size=k))
        cost = values - values[:, np.newaxis]
    elif kind == "table":
        costs = cost = rng.random((k, k))
    out, sums = np.empty(n), np.zeros((2, k + 1))
    value, _ = ranking.ordered_pairs(
        scores,
        sorted_rows(codes, starts, scores),
        starts,
        levels,
        values,
        costs,
        weights,
        sums,
        out,
    )
    assert not sums.any()
    total, u = 0.0, np.zeros(n)
    for g in range(n_groups):
        lower = (levels[:, None] < levels) & (codes[:, None] == g) & (codes == g)
        mass = lower * weights[:, None] * weights
        if not mass.any():
            continue
        mass *= weights[codes == g].sum() / mass.sum()
        violation = 1.0 + scores[:, None] - scores
        active = mass * cost[levels][:, levels] * (scores - scores[:, None] < 1.0)
        total += (active * violation).sum()
        u += active.sum(axis=1) - active.sum(axis=0)
    assert value == pytest.approx(total, abs=1e-12)
    assert_allclose(out, u, atol=1e-13)


def arguments(kernel):
    """Return what a kernel accepts, by name."""
    codes, starts, scores = groups(12, 3)
    order = sorted_rows(codes, starts, scores)
    if kernel is ranking.gather:
        return {"rows": order, "codes": codes, "starts": starts, "out": order.copy()}
    common = {"scores": scores, "order": order, "starts": starts}
    relevant = (np.arange(12) % 2).astype(np.uint8)
    if kernel is ranking.ordered_pairs:
        return common | {
            "levels": (np.arange(12) % 3).astype(np.intp),
            "values": np.arange(3.0),
            "costs": np.ones((3, 3)),
            "weights": np.ones(12),
            "sums": np.zeros((2, 4)),
            "out": np.empty(12),
        }
    if kernel is ranking.first_hit:
        return common | {
            "relevant": relevant,
            "positions": np.ones(12),
            "out": np.empty(12),
            "heights": np.empty(3),
        }
    return common | {
        "relevant": relevant,
        "discounts": np.ones(12),
        "first_only": False,
        "margins": np.ones(3),
        "gains": np.ones(3),
        "room": np.empty((2, 13)),
        "choices": np.empty(100, dtype=np.intp),
        "out": np.zeros(12),
        "heights": np.zeros(3),
    }


KERNELS = [
    ranking.gather,
    ranking.ordered_pairs,
    ranking.first_hit,
    ranking.interleave,
]
ARRAYS = [
    (kernel, name)
    for kernel in KERNELS
    for name, value in arguments(kernel).items()
    if isinstance(value, np.ndarray)
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_inputs_are_only_read(kernel):
    given = arguments(kernel)
    written = {"out", "heights", "sums", "room", "choices"}
    for name, value in given.items():
        if isinstance(value, np.ndarray) and name not in written:
            value.flags.writeable = False
    kernel(*given.values())


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_wrong_lengths(kernel, name):
    given = arguments(kernel)
    given[name] = given[name][:1].copy()
    with pytest.raises(ValueError, match=r"but|must|inconsistent|too little"):
        kernel(*given.values())


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_wrong_types(kernel, name):
    given = arguments(kernel)
    given[name] = given[name].astype(np.float32)
    with pytest.raises(ValueError, match="Buffer dtype mismatch"):
        kernel(*given.values())


@pytest.mark.parametrize(
    ("kernel", "name", "wrong"),
    [
        (ranking.gather, "rows", 12),
        (ranking.gather, "rows", -1),
        (ranking.gather, "codes", 3),
        (ranking.gather, "codes", -1),
        (ranking.ordered_pairs, "order", 12),
        (ranking.ordered_pairs, "order", -1),
        (ranking.ordered_pairs, "levels", 3),
        (ranking.ordered_pairs, "levels", -1),
        (ranking.first_hit, "order", 12),
        (ranking.interleave, "order", -1),
        (ranking.interleave, "starts", 99),
        (ranking.first_hit, "starts", -5),
        (ranking.gather, "starts", 99),
        (ranking.gather, "starts", -5),
    ],
)
def test_wrong_numbers(kernel, name, wrong):
    given = arguments(kernel)
    given[name] = given[name].copy()
    given[name][1] = wrong
    with pytest.raises(ValueError, match=r"must|inconsistent|too little"):
        kernel(*given.values())
