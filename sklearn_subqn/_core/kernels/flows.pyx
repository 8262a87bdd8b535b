"""Dual points with several scores per row, represented as flows between labels.

The rows of u of shape (n, k) sum to zero. A row is a flow from its negative entries -q
to its positive entries p, of t = sum(p) in total, with q_a p_b / t from label a to
label b.
"""

from .rows cimport allocate
from .standard cimport free, memset


def survey(
    const double[:, ::1] dual,
    double[:, ::1] laplacian,
    double[::1] sums,
    double[::1] excess,
):
    """Sum the flows of all rows into arrays of zeros.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        u.
    laplacian : ndarray of shape (k, k)
        Receives the Laplacian of the graph of labels, weighted by the flow between two
        labels.
    sums : ndarray of shape (k,)
        Receives the sums of the columns of u.
    excess : ndarray of shape (k,)
        Receives corrections by columns: the sums of the amounts to subtract from
        negative entries to make all rows sum to zero in spite of rounding errors.
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
    """Write the dual point with flows from a to b times factor * (1 + x_a - x_b).

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
    """Split normalized rows into positive entries (sinks) and negative (sources).

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        u; each row is divided by its weight.
    weights : ndarray of shape (n,)
    neutral : ndarray of shape (n, k)
        Flows that are mixed with the flows of the rows, rescaled to their size.
    seed : float
        Share of ``neutral`` in the mixture.
    trickle : float
        Smallest flow of a row, per weight; rows with less are left out.
    sinks, sources : ndarray of shape (n, k)
        Absolute values of the positive and of the negative entries.
    none : ndarray of shape (n,)
        One minus the flow, times the flow; -1 for rows left out.
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
    """Multiply sinks and sources by factors, and write the dual point and column sums.

    Parameters
    ----------
    sinks, sources, none
        Results of ``sides``.
    weights : ndarray of shape (n,)
    up, down : ndarray of shape (k,)
        Factors of sinks and of sources, by label.
    out : ndarray of shape (n, k)
    sums, sizes : ndarray of shape (k,)
        The sums of the columns of ``out``, and of their absolute values, are added.
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
    """Write the derivative of tilted flows' column sums by the log factors.

    The column sums are the gradient of a function of the log factors, and this kernel
    multiplies by its Hessian of shape (k, k). A row of weight s with entries p and -q,
    whose sums are t, contributes diag(p + q) - (p q' + q p') / t - (p - q) (p - q)' /
    s.

    Parameters
    ----------
    dual : ndarray of shape (n, k)
        p - q, where p or q is zero in each entry.
    weights : ndarray of shape (n,)
    changes : ndarray of shape (k,)
        Changes of ln(up), which are the negative changes of ln(down).
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
