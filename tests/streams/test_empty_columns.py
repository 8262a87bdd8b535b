"""Fits of sparse data with entries in few of their columns."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from sklearn_subqn import OnlineLBFGSClassifier, OnlineLBFGSRegressor

RNG = np.random.default_rng(0)
N, D = 600, 2**16
OWN = np.sort(RNG.choice(D, 200, replace=False))
SMALL = sparse.random_array((N, 200), density=0.03, rng=RNG, format="csr")
SCORES = SMALL @ RNG.normal(size=200)
CASES = [
    (OnlineLBFGSClassifier, (SCORES > 0.0).astype(int)),
    (OnlineLBFGSClassifier, np.digitize(SCORES, [-0.2, 0.2])),
    (OnlineLBFGSRegressor, SCORES),
]


def wide():
    """Return the same rows, their columns among 2^16 others."""
    arrays = SMALL.data, OWN[SMALL.indices], SMALL.indptr
    return sparse.csr_array(arrays, shape=(N, D))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
@pytest.mark.parametrize(("kind", "y"), CASES)
def test_they_are_those_of_the_columns_with_entries(kind, y, l1_ratio):
    given = {"alpha": 1e-3, "l1_ratio": l1_ratio, "max_iter": 10}
    X = wide()
    alone, among = kind(**given).fit(SMALL, y), kind(**given).fit(X, y)
    others = np.delete(np.atleast_2d(among.coef_), OWN, axis=1)
    assert not others.any()
    own = among.coef_[..., OWN]
    # Centers, which decide over a few zeros, are not kept of rare columns.
    same = np.isclose(own, alone.coef_, rtol=1e-8, atol=1e-10)
    assert np.mean(same) >= (0.98 if l1_ratio else 1.0)
    assert np.allclose(among.intercept_, alone.intercept_, rtol=1e-8)
    assert among.objective_ == pytest.approx(
        alone.objective_, rel=1e-3 if l1_ratio else 1e-8
    )
    assert len(pickle.dumps(among)) < 200_000
    again = pickle.loads(pickle.dumps(among))
    assert np.array_equal(again.coef_, among.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stream_goes_on_with_other_columns():
    X, y = wide(), CASES[0][1]
    clf = OnlineLBFGSClassifier(max_iter=5).fit(X, y)
    copy = pickle.loads(pickle.dumps(clf))
    shifted = sparse.csr_array((X.data, X.indices - OWN[0], X.indptr), shape=X.shape)
    for each in (clf, copy):
        each.partial_fit(shifted, y)
    assert np.array_equal(clf.coef_, copy.coef_)
    assert np.count_nonzero(clf.coef_) > len(OWN)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_starts_keep_coefficients_of_columns_that_are_empty_now():
    X, y = wide(), CASES[0][1]
    clf = OnlineLBFGSClassifier(alpha=0.0, max_iter=3, warm_start=True).fit(X, y)
    first = clf.coef_.ravel()
    few = X.copy()
    few.data[few.indices == OWN[0]] = 0.0
    few.eliminate_zeros()
    clf.fit(few, y)
    assert first[OWN[0]] != 0.0
    # Without a penalty nothing moves what no row knows of.
    assert clf.coef_.ravel()[OWN[0]] == first[OWN[0]]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "y"), CASES)
def test_fits_begin_where_users_say(kind, y):
    solution = kind().fit(SMALL, y)
    free = np.atleast_1d(solution.intercept_)
    start = np.zeros((len(free), D))
    start[:, OWN] = solution.coef_
    given = {"alpha": 1e-4, "max_iter": 1}
    alone = kind(**given).fit(
        SMALL, y, coef_init=solution.coef_, intercept_init=solution.intercept_
    )
    among = kind(**given).fit(
        wide(), y, coef_init=np.squeeze(start), intercept_init=solution.intercept_
    )
    np.testing.assert_allclose(among.coef_[..., OWN], alone.coef_, rtol=1e-8)
    np.testing.assert_allclose(among.intercept_, alone.intercept_, rtol=1e-8)
    # Coefficients of columns without entries count, too: the penalty shrinks them.
    other = np.setdiff1d(np.arange(D), OWN)[0]
    start[:, other] = 1.0
    among = kind(**given).fit(wide(), y, coef_init=np.squeeze(start))
    assert np.all(np.abs(among.coef_[..., other]) <= 1.0)
    assert np.all(among.coef_[..., other] != 0.0)
    with pytest.raises(ValueError, match="coef_init must have shape"):
        kind(**given).fit(wide(), y, coef_init=solution.coef_)
