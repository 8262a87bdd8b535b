"""The kernels of rankings against their NumPy twins, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

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


def arguments(kernel):
    """Return what a kernel accepts, by name."""
    codes, starts, scores = groups(12, 3)
    order = sorted_rows(codes, starts, scores)
    if kernel is ranking.gather:
        return {"rows": order, "codes": codes, "starts": starts, "out": order.copy()}
    common = {"scores": scores, "order": order, "starts": starts}
    relevant = (np.arange(12) % 2).astype(np.uint8)
    if kernel is ranking.first_hit:
        return common | {
            "relevant": relevant,
            "positions": np.ones(12),
            "ideals": np.ones(12),
            "out": np.empty(12),
            "lost": np.empty(3),
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
        "heights": np.zeros((3, 3)),
    }


KERNELS = [
    ranking.gather,
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
    written = {"out", "lost", "heights", "room", "choices"}
    for name, value in given.items():
        if isinstance(value, np.ndarray) and name not in written:
            value.flags.writeable = False
    kernel(*given.values())


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_wrong_lengths(kernel, name):
    given = arguments(kernel)
    given[name] = given[name][:1].copy()
    with pytest.raises(
        ValueError, match=r"must|inconsistent|too little|differ in length"
    ):
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
