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


cdef int _check(Py_ssize_t k, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c, Py_ssize_t d) except -1:
    if not a == b == c == d == k:
        raise ValueError(f"arrays of {a}, {b}, {c} and {d} instead of {k} labels")
    return 0
