"""Dual coordinate ascent over sequences of chains, for the log-likelihood.

``chain_steps.pxd`` has the step for one sequence.

The distinct features of sequence i are ``own[own_ptr[i] : own_ptr[i + 1]]``. For each
stored entry of X, ``local`` of shape (nnz,) has the index of its feature in this list.
The values ``data`` of the entries are empty where all are one.
"""

from .chain_features cimport (
    Parameters,
    check_features,
    gather,
    move,
    set_patterns,
    soft,
    write_scores,
)
from .compressed cimport check_all
from .chain_steps cimport Visit, infer, leave_truth, take_step
from .lattice cimport close_lattice, open_lattice, padded, set_pattern
from .rows cimport allocate, index, same_length
from .standard cimport free, memcpy, memset


def localize(
    const index[::1] indices,
    const index[::1] indptr,
    const Py_ssize_t[::1] starts,
    int[::1] last,
    int[::1] local,
    int[::1] own,
    Py_ssize_t[::1] own_ptr,
):
    """Write the distinct features of each sequence, and each entry's index among them.

    Parameters
    ----------
    last : ndarray of shape (d,)
        Workspace of zeros.
    local, own : ndarray of shape (nnz,)
    own_ptr : ndarray of shape (n + 1,)
        Start of each sequence in ``own``, of which ``own_ptr[n]`` entries are written.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, i, j, end = 0, first
    if own_ptr.shape[0] != n + 1 or local.shape[0] != indices.shape[0]:
        raise ValueError("arrays of sequences differ in length.")
    if own.shape[0] < indices.shape[0]:
        raise ValueError("there is no room for the features.")
    check_all(
        indptr, indices, indices.shape[0], indptr.shape[0] - 1, last.shape[0]
    )
    for i in range(n):
        if not 0 <= starts[i] <= starts[i + 1] < indptr.shape[0]:
            raise ValueError(f"sequences are not within {indptr.shape[0] - 1} tokens.")
    own_ptr[0] = 0
    with nogil:
        for i in range(n):
            first = end
            for j in range(indptr[starts[i]], indptr[starts[i + 1]]):
                # Features of earlier sequences have a smaller ``last``.
                if last[indices[j]] <= first:
                    own[end] = <int> indices[j]
                    end += 1
                    last[indices[j]] = <int> end
                local[j] = <int> (last[indices[j]] - 1 - first)
            own_ptr[i + 1] = end


def sweep(
    const double[::1] data,
    const int[::1] local,
    const Py_ssize_t[::1] indptr,
    const Py_ssize_t[::1] starts,
    const int[::1] own,
    const Py_ssize_t[::1] own_ptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    const unsigned char[::1] mask,
    Py_ssize_t stride,
    double threshold,
    const double[::1] steps,
    const Py_ssize_t[::1] targets,
    double[::1] w,
    double[::1] T,
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
    const Py_ssize_t[::1] order,
    double[:, ::1] theta,
    double[:, ::1] theta_pairs,
    double[:, ::1] mu,
    double[:, ::1] mu_pairs,
    double[::1] entropies,
    double[::1] sizes,
    double[::1] rates,
    double[::1] gaps,
):
    """Take one ascent step for each sequence, in the given order.

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Weights of sequences divided by alpha; zero skips the sequence.
    targets : ndarray of shape (T,)
        The true labels.
    w : ndarray
        Parameters of pairs, changed in place.
    T : ndarray of shape (m,)
        Parameters of transitions, changed in place.
    pattern : ndarray of shape (k, width)
        Minus infinity where a transition is forbidden or padding, else zero.
    places : ndarray of shape (m,)
        Flat index in ``pattern`` of each transition with a parameter.
    ends : ndarray of shape (2, width)
        Zero or minus infinity, added to the scores of first and last tokens. Without
        rows, nothing is added.
    theta, theta_pairs : ndarray of shape (T, width) and (n, m)
        Potentials, changed in place; not read for sequences at their true labels.
    mu, mu_pairs : ndarray of shape (T, width) and (n, m)
        Marginals of the potentials; the marginals of pairs are sums over each sequence.
    entropies, sizes : ndarray of shape (n,)
        Entropies, and the sums of absolute values of their terms.
    rates : ndarray of shape (n,)
        Last step size gamma of each sequence; zero at the true labels.
    gaps : ndarray of shape (n,)
        Receives the approximate duality gap of each sequence at the current w.
    """
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), m = places.shape[0]
    cdef Py_ssize_t longest = 1, max_features = 1, o, i, j
    cdef double gap, reach = 1.0
    cdef double* workspace
    cdef Visit v
    cdef Parameters p
    check_features(
        local, indptr, starts, own, own_ptr, ptr, labels, mask, w, stride, k, order
    )
    _check_state(
        pattern, places, ends, starts, theta, theta_pairs, mu, mu_pairs, entropies, sizes
    )
    same_length(m, T.shape[0])
    same_length(theta.shape[0], targets.shape[0])
    same_length(entropies.shape[0], steps.shape[0], rates.shape[0], gaps.shape[0])
    for o in range(order.shape[0]):
        i = order[o]
        longest = max(longest, starts[i + 1] - starts[i])
        max_features = max(max_features, own_ptr[i + 1] - own_ptr[i])
    p.k, p.width, p.stride = k, width, stride
    p.ptr = &ptr[0]
    p.labels = &labels[0] if labels.shape[0] else NULL
    p.mask = &mask[0] if mask.shape[0] else NULL
    p.w = &w[0] if w.shape[0] else NULL
    p.threshold = threshold
    set_patterns(&p)
    workspace = <double*> allocate(2 * width * max_features * sizeof(double))
    v.features.params = workspace
    v.features.gradient = workspace + max_features * width
    try:
        _open(&v, longest, pattern, places, ends)
    except MemoryError:
        free(workspace)
        raise
    v.features.data = &data[0] if data.shape[0] else NULL
    v.features.local = &local[0] if local.shape[0] else NULL
    with nogil:
        for j in range(m):
            v.z.pairs[j] = soft(T[j], threshold)
        for o in range(order.shape[0]):
            i = order[o]
            if steps[i] == 0.0:
                continue
            v.length = v.features.length = starts[i + 1] - starts[i]
            v.m = m if v.length > 1 else 0
            v.step = steps[i]
            v.truth = &targets[starts[i]]
            v.theta.labels = &theta[starts[i], 0]
            v.mu.labels = &mu[starts[i], 0]
            if m:
                v.theta.pairs = &theta_pairs[i, 0]
                v.mu.pairs = &mu_pairs[i, 0]
            v.entropy, v.rate = &entropies[i], &rates[i]
            v.features.indptr = &indptr[starts[i]]
            v.features.size = own_ptr[i + 1] - own_ptr[i]
            v.features.own = &own[0] + own_ptr[i]
            gather(&v.features, &p)
            write_scores(&v.features, &p, v.z.labels)
            if rates[i] == 0.0:
                gap = leave_truth(&v, &p, &reach)
            else:
                gap = take_step(&v, &p)
            gaps[i] = gap
            if gap == 0.0:
                continue
            entropies[i], sizes[i] = v.new_entropy, v.new_size
            memcpy(
                v.theta.labels, v.new.labels, v.length * width * sizeof(double)
            )
            memcpy(
                v.mu.labels, v.lattice.nodes, v.length * width * sizeof(double)
            )
            move(&v.features, &p, steps[i])
            for j in range(v.m):
                v.theta.pairs[j] = v.new.pairs[j]
                v.mu.pairs[j] = v.lattice.pairs[places[j]]
                T[j] -= steps[i] * v.d.pairs[j]
                v.z.pairs[j] = soft(T[j], threshold)
        _close(&v)
        free(workspace)


def begin(
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
    const Py_ssize_t[::1] starts,
    const double[:, ::1] theta,
    const double[:, ::1] theta_pairs,
    double[:, ::1] mu,
    double[:, ::1] mu_pairs,
    double[::1] entropies,
    double[::1] sizes,
):
    """Write the marginals and entropies of given potentials, and the entropies' sizes.

    Arrays are described in ``sweep``.
    """
    cdef Py_ssize_t width = padded(pattern.shape[0]), m = places.shape[0]
    cdef Py_ssize_t n = entropies.shape[0], longest = 1, i, j
    cdef Visit v
    _check_state(
        pattern, places, ends, starts, theta, theta_pairs, mu, mu_pairs, entropies, sizes
    )
    for i in range(n):
        longest = max(longest, starts[i + 1] - starts[i])
    _open(&v, longest, pattern, places, ends)
    with nogil:
        for i in range(n):
            v.length = starts[i + 1] - starts[i]
            v.m = m if v.length > 1 else 0
            memcpy(
                v.new.labels, &theta[starts[i], 0], v.length * width * sizeof(double)
            )
            for j in range(v.m):
                v.new.pairs[j] = theta_pairs[i, j]
            infer(&v)
            entropies[i], sizes[i] = v.new_entropy, v.new_size
            memcpy(
                &mu[starts[i], 0], v.lattice.nodes, v.length * width * sizeof(double)
            )
            for j in range(v.m):
                mu_pairs[i, j] = v.lattice.pairs[places[j]]
        _close(&v)


cdef int _open(
    Visit* v,
    Py_ssize_t longest,
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
) except -1:
    """Allocate workspace for sequences of at most ``longest`` tokens."""
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), m = places.shape[0]
    cdef double* workspace = <double*> allocate(
        (3 * (longest * width + m) + 2 * width) * sizeof(double)
    )
    try:
        open_lattice(&v.lattice, k, longest)
    except MemoryError:
        free(workspace)
        raise
    v.k, v.width = k, width
    v.z.labels = workspace
    v.new.labels = v.z.labels + longest * width
    v.d.labels = v.new.labels + longest * width
    v.z.pairs = v.d.labels + longest * width
    v.new.pairs = v.z.pairs + m
    v.d.pairs = v.new.pairs + m
    v.kept = v.d.pairs + m
    v.ends = &ends[0, 0] if ends.shape[0] else NULL
    v.places = &places[0] if m else NULL
    try:
        set_pattern(&v.lattice, &pattern[0, 0], width)
    except MemoryError:
        _close(v)
        raise
    memcpy(v.lattice.transitions, &pattern[0, 0], k * width * sizeof(double))
    return 0


cdef void _close(Visit* v) noexcept nogil:
    close_lattice(&v.lattice)
    free(v.z.labels)


cdef int _check_state(
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
    const Py_ssize_t[::1] starts,
    const double[:, ::1] theta,
    const double[:, ::1] theta_pairs,
    const double[:, ::1] mu,
    const double[:, ::1] mu_pairs,
    const double[::1] entropies,
    const double[::1] sizes,
) except -1:
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), m = places.shape[0]
    cdef Py_ssize_t n = entropies.shape[0], j
    same_length(2, ends.shape[0] or 2)
    same_length(width, pattern.shape[1], ends.shape[1], theta.shape[1], mu.shape[1])
    same_length(m, theta_pairs.shape[1], mu_pairs.shape[1])
    same_length(n, starts.shape[0] - 1, sizes.shape[0])
    same_length(n, theta_pairs.shape[0], mu_pairs.shape[0])
    same_length(starts[n], theta.shape[0], mu.shape[0])
    for j in range(m):
        if not 0 <= places[j] < k * width:
            raise ValueError(f"transition {places[j]} is none of {k} labels.")
    return 0
