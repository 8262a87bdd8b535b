"""Dual points of several scores per row as flows between labels.

The rows of u of shape (n, k) sum to zero: each is a flow from its negative entries q to
its positive ones p, t in total, of q_a p_b / t from a to b.
"""

from .rows cimport allocate
from .standard cimport free, memset


def survey(
    const double[:, ::1] dual,
    double[:, ::1] laplacian,
    double[::1] sums,
    double[::1] excess,
):
    """Add up the flows of all rows, in arrays of zeros.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        u.
    laplacian : ndarray of shape (k, k)
        Becomes that of the graph of labels, with all flows between two as weight.
    sums : ndarray of shape (k,)
        Become the sums of the columns of u.
    excess : ndarray of shape (k,)
        Becomes what is to be taken from negative entries for rows to sum to zero, where
        rounding has left something: the sums of that by columns.
    """
    cdef Py_ssize_t n = dual.shape[0], k = dual.shape[1], i, j, a, b, n_from, n_to
    cdef double total, negative, flow, share
    cdef long double rest
    cdef long double* columns
    cdef Py_ssize_t* sources
    cdef Py_ssize_t* sinks
    _check(k, laplacian.shape[0], laplacian.shape[1], sums.shape[0], excess.shape[0])
    columns = <long double*> allocate(k * (sizeof(long double) + 2 * sizeof(Py_ssize_t)))
    sources = <Py_ssize_t*> (columns + k)
    sinks = sources + k
    with nogil:
        memset(columns, 0, k * sizeof(long double))
        for i in range(n):
            n_from = n_to = 0
            total = negative = 0.0
            rest = 0.0
            for j in range(k):
                if dual[i, j] == 0.0:
                    continue
                columns[j] += dual[i, j]
                rest += dual[i, j]
                laplacian[j, j] += dual[i, j] if dual[i, j] > 0.0 else -dual[i, j]
                if dual[i, j] > 0.0:
                    total += dual[i, j]
                    sinks[n_to] = j
                    n_to += 1
                else:
                    negative += dual[i, j]
                    sources[n_from] = j
                    n_from += 1
            share = <double> rest / negative if n_from else 0.0
            for a in range(n_from):
                flow = dual[i, sources[a]]
                excess[sources[a]] += share * flow
                if n_to:
                    flow /= total
                for b in range(n_to):
                    laplacian[sources[a], sinks[b]] += flow * dual[i, sinks[b]]
        for a in range(k):
            sums[a] = <double> columns[a]
            for b in range(a):
                flow = laplacian[a, b] + laplacian[b, a]
                laplacian[a, b] = laplacian[b, a] = flow
        free(columns)


def weaken(
    const double[:, ::1] dual,
    const double[::1] potentials,
    double factor,
    double[:, ::1] out,
):
    """Write the dual point whose flow from a to b is factor * (1 + x_a - x_b) times.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
    potentials : ndarray of shape (k,)
        x.
    factor : float
    out : ndarray of shape (n, k)
    """
    cdef Py_ssize_t n = dual.shape[0], k = dual.shape[1], i, j
    cdef double total, from_mean, to_mean, u
    _check(k, potentials.shape[0], out.shape[1], k, k)
    if out.shape[0] != n:
        raise ValueError(f"an array has {out.shape[0]} instead of {n} rows")
    with nogil:
        for i in range(n):
            total = from_mean = to_mean = 0.0
            for j in range(k):
                u = dual[i, j]
                if u > 0.0:
                    total += u
                    to_mean += u * potentials[j]
                elif u < 0.0:
                    from_mean -= u * potentials[j]
            if total == 0.0:
                total = 1.0
            from_mean /= total
            to_mean /= total
            for j in range(k):
                u = dual[i, j]
                if u > 0.0:
                    u *= 1.0 + (from_mean - potentials[j])
                elif u < 0.0:
                    u *= 1.0 + (potentials[j] - to_mean)
                out[i, j] = factor * u


def sides(
    const double[:, ::1] dual,
    const double[::1] weights,
    const double[:, ::1] neutral,
    double seed,
    double trickle,
    double[:, ::1] sinks,
    double[:, ::1] sources,
    double[::1] none,
):
    """Write what rows take at positive entries and bring from negative ones.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        u, of which each row is divided by its weight.
    weights : ndarray of shape (n,)
    neutral : ndarray of shape (n, k)
        Flows of which a share is mixed to those of the rows, as large as these.
    seed : float
        That share.
    trickle : float
        Rows whose flow is less than this are left out.
    sinks, sources : ndarray of shape (n, k)
        Absolute values of positive and of negative entries.
    none : ndarray of shape (n,)
        What flows leave of one, times the flow, or -1 for rows left out.
    """
    cdef Py_ssize_t n = dual.shape[0], k = dual.shape[1], i, j
    cdef double s, low, high, total, other, mixed
    _check(k, neutral.shape[1], sinks.shape[1], sources.shape[1], k)
    _same_rows(n, weights.shape[0], neutral.shape[0])
    _same_rows(n, sinks.shape[0], sources.shape[0])
    _same_rows(n, none.shape[0], n)
    with nogil:
        for i in range(n):
            s, low, high, total, other = weights[i], 0.0, 0.0, 0.0, 0.0
            for j in range(k):
                low = dual[i, j] if dual[i, j] < low else low
                high = dual[i, j] if dual[i, j] > high else high
                total += dual[i, j] if dual[i, j] > 0.0 else 0.0
                other += neutral[i, j] if neutral[i, j] > 0.0 else 0.0
            if not (high > trickle * s and -low > trickle * s):
                none[i] = -1.0
                continue
            total /= s
            mixed = seed * total / other if other > 0.0 else seed * total
            for j in range(k):
                sinks[i, j] = sources[i, j] = 0.0
                if dual[i, j] > 0.0:
                    sinks[i, j] = (1.0 - seed) * (dual[i, j] / s)
                elif dual[i, j] < 0.0:
                    sources[i, j] = -(1.0 - seed) * (dual[i, j] / s)
                if neutral[i, j] > 0.0:
                    sinks[i, j] += mixed * neutral[i, j]
                elif neutral[i, j] < 0.0:
                    sources[i, j] -= mixed * neutral[i, j]
            none[i] = (1.0 - total if total < 1.0 else 0.0) * total


def tilt(
    const double[:, ::1] sinks,
    const double[:, ::1] sources,
    const double[::1] none,
    const double[::1] weights,
    const double[::1] up,
    const double[::1] down,
    double[:, ::1] out,
    double[::1] sums,
    double[::1] sizes,
):
    """Write the dual point of flows whose shares are multiplied; add up its columns.

    Parameters
    ----------
    sinks, sources, none
        Of ``sides``.
    weights : ndarray of shape (n,)
    up, down : ndarray of shape (k,)
        Factors of shares that go to labels, and of those that come from them.
    out : ndarray of shape (n, k)
    sums, sizes : ndarray of shape (k,)
        Sums of the columns of ``out`` and of their absolute values, added to them.
    """
    cdef Py_ssize_t n = sinks.shape[0], k = sinks.shape[1], i, j
    cdef double taken, brought, flow, total, a, b
    _check(k, sources.shape[1], up.shape[0], down.shape[0], out.shape[1])
    _check(k, sums.shape[0], sizes.shape[0], k, k)
    _same_rows(n, sources.shape[0], none.shape[0])
    _same_rows(n, weights.shape[0], out.shape[0])
    with nogil:
        for i in range(n):
            taken = brought = 0.0
            if none[i] >= 0.0:
                for j in range(k):
                    taken += sinks[i, j] * up[j]
                    brought += sources[i, j] * down[j]
            flow = taken * brought
            if not flow > 0.0:
                for j in range(k):
                    out[i, j] = 0.0
                continue
            total = weights[i] * (flow / (none[i] + flow))
            taken, brought = total / taken, total / brought
            for j in range(k):
                a, b = sinks[i, j] * up[j] * taken, sources[i, j] * down[j] * brought
                out[i, j] = a - b
                sums[j] += a - b
                sizes[j] += a + b


def multiply(
    const double[:, ::1] dual,
    const double[::1] weights,
    const double[::1] changes,
    double[::1] out,
):
    """Write how the column sums of tilted flows change with the logarithms of shares.

    They are the gradient of a function of these logarithms, and this is a product with
    its matrix of second derivatives, which has k x k entries. A row of weight s with
    entries p and -q, whose sums are t, has diag(p + q) - (p q' + q p') / t
    - (p - q) (p - q)' / s.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        p - q, where of each entry one of both is zero.
    weights : ndarray of shape (n,)
    changes : ndarray of shape (k,)
        Of the logarithms of ``up``, and with the other sign of those of ``down``.
    out : ndarray of shape (k,)
    """
    cdef Py_ssize_t n = dual.shape[0], k = dual.shape[1], i, j
    cdef double total, to_mean, from_mean, mean, u
    _check(k, changes.shape[0], out.shape[0], k, k)
    _same_rows(n, weights.shape[0], n)
    with nogil:
        for j in range(k):
            out[j] = 0.0
        for i in range(n):
            total = to_mean = from_mean = 0.0
            for j in range(k):
                u = dual[i, j]
                if u > 0.0:
                    total += u
                    to_mean += u * changes[j]
                else:
                    from_mean -= u * changes[j]
            if total == 0.0:
                continue
            mean = (to_mean - from_mean) / weights[i]
            to_mean /= total
            from_mean /= total
            for j in range(k):
                u = dual[i, j]
                if u > 0.0:
                    out[j] += u * (changes[j] - from_mean - mean)
                else:
                    out[j] -= u * (changes[j] - to_mean + mean)


cdef int _same_rows(Py_ssize_t n, Py_ssize_t a, Py_ssize_t b) except -1:
    if not n == a == b:
        raise ValueError(f"arrays of {n}, {a} and {b} rows")
    return 0


cdef int _check(Py_ssize_t k, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c, Py_ssize_t d) except -1:
    if not a == b == c == d == k:
        raise ValueError(f"arrays of {a}, {b}, {c} and {d} instead of {k} labels")
    return 0
