"""Sums over the labelings of chains by the forward-backward algorithm.

Arguments are described in ``chain_arguments.pxd``.
"""

from .chain_arguments cimport check_allowed, check_labels, check_scores
from .lattice cimport (
    Lattice,
    close_lattice,
    open_lattice,
    set_pattern,
    set_transitions,
)
from .lattice_sums cimport backward, forward
from .rows cimport allocate, same_length
from .standard cimport INFINITY, free
from .viterbi cimport labels_score


def log_partition(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    double[::1] log_z,
):
    """Write ln of the sum over labelings of exp(score) of each sequence to ``log_z``.

    The result is minus infinity for a sequence without allowed labeling.
    """
    cdef Py_ssize_t n = log_z.shape[0], i
    cdef Lattice lattice
    _open(&lattice, emissions, transitions, starts, n)
    with nogil:
        for i in range(n):
            log_z[i] = forward(
                &lattice, &emissions[starts[i], 0], lattice.k, starts[i + 1] - starts[i]
            )
        close_lattice(&lattice)


def marginals(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    double[::1] log_z,
    double[:, ::1] nodes,
    double[:, :, ::1] edges,
):
    """Write the probabilities of labels, and of pairs of adjacent labels.

    Parameters
    ----------
    log_z : ndarray of shape (n,)
        Receives the result of ``log_partition``.
    nodes : ndarray of shape (T, k)
    edges : ndarray of shape (T, k, k) or None
        Entry [t, i, j] receives the probability of label i at token t - 1 and label j
        at token t. Entries of first tokens are not written.

    Raises
    ------
    ValueError
        If a sequence has no allowed labeling.
    """
    cdef Py_ssize_t n = log_z.shape[0], i, t, j, length, failed = -1
    cdef Lattice lattice
    cdef double* pairs = NULL
    same_length(emissions.shape[0], nodes.shape[0])
    same_length(emissions.shape[1], nodes.shape[1])
    if edges is not None:
        same_length(emissions.shape[0], edges.shape[0])
        same_length(emissions.shape[1], edges.shape[1], edges.shape[2])
    _open(&lattice, emissions, transitions, starts, n)
    with nogil:
        for i in range(n):
            length = starts[i + 1] - starts[i]
            log_z[i] = forward(&lattice, &emissions[starts[i], 0], lattice.k, length)
            if log_z[i] == -INFINITY:
                failed = i
                break
            if edges is not None and length > 1:
                pairs = &edges[starts[i] + 1, 0, 0]
            backward(
                &lattice, &emissions[starts[i], 0], lattice.k, length,
                pairs if length > 1 else NULL,
            )
            for t in range(length):
                for j in range(lattice.k):
                    nodes[starts[i] + t, j] = lattice.nodes[t * lattice.width + j]
        close_lattice(&lattice)
    check_allowed(failed, starts)


def log_loss(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] labels,
    const double[::1] weights,
    double[:, ::1] nodes,
    double[:, ::1] pairs,
):
    """Return sum_i weights_i (ln Z_i - score of the labels), and write its gradient.

    Sequences of weight zero are skipped.

    Parameters
    ----------
    labels : ndarray of shape (T,)
    weights : ndarray of shape (n,)
    nodes : ndarray of shape (T, k) or None
        Receives the gradient by emissions: weighted marginals minus indicators of the
        labels. None for no gradient.
    pairs : ndarray of shape (k, k) or None
        The gradient by transitions is added to this array.

    Raises
    ------
    ValueError
        If a sequence has no allowed labeling, or its labels are not allowed.
    """
    cdef Py_ssize_t n = weights.shape[0], k = emissions.shape[1]
    cdef Py_ssize_t i, t, j, length, start, failed = -1
    cdef double total = 0.0, log_z, own, weight
    cdef Lattice lattice
    cdef const double* T
    cdef const double* row
    if nodes is not None:
        _check_gradient(emissions, nodes, pairs)
    _open(&lattice, emissions, transitions, starts, n)
    try:
        check_labels(labels, starts, emissions.shape[0], k)
    except ValueError:
        close_lattice(&lattice)
        raise
    T = &transitions[0, 0]
    with nogil:
        for i in range(n):
            weight = weights[i]
            start = starts[i]
            length = starts[i + 1] - start
            if weight == 0.0:
                if nodes is not None:
                    for t in range(start, start + length):
                        for j in range(k):
                            nodes[t, j] = 0.0
                continue
            log_z = forward(&lattice, &emissions[start, 0], k, length)
            own = labels_score(T, k, &emissions[start, 0], length, &labels[start])
            if log_z == -INFINITY or own == -INFINITY:
                failed = i
                break
            # ln Z >= score of the labels, except for rounding errors. The negated
            # comparison keeps nan.
            if not log_z <= own:
                total += weight * (log_z - own)
            if nodes is None:
                continue
            backward(&lattice, &emissions[start, 0], k, length, NULL)
            for t in range(start, start + length):
                row = lattice.nodes + (t - start) * lattice.width
                for j in range(k):
                    nodes[t, j] = weight * row[j]
                nodes[t, labels[t]] = weight * (row[labels[t]] - 1.0)
                if t > start:
                    pairs[labels[t - 1], labels[t]] -= weight
            for j in range(k):
                row = lattice.pairs + j * lattice.width
                for t in range(k):
                    pairs[j, t] += weight * row[t]
        close_lattice(&lattice)
    check_allowed(failed, starts)
    return total


def tangent(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    const double[:, ::1] demissions,
    const double[:, ::1] dtransitions,
    const double[::1] weights,
    double[:, ::1] dnodes,
    double[:, ::1] dpairs,
):
    """Write the directional derivative of weighted marginals: a product with R''.

    The derivative of a label's probability is the covariance of its indicator with the
    change of the score of the labeling.

    Parameters
    ----------
    demissions, dtransitions : ndarray of shape (T, k) and (k, k)
        Change of the scores, finite also where a transition is forbidden.
    weights : ndarray of shape (n,)
    dnodes : ndarray of shape (T, k)
        Receives the change of the weighted probabilities of labels.
    dpairs : ndarray of shape (k, k)
        The change of the weighted sum of pair probabilities is added to this array.

    Raises
    ------
    ValueError
        If a sequence has no allowed labeling.
    """
    cdef Py_ssize_t n = weights.shape[0], k = emissions.shape[1], longest
    cdef Py_ssize_t i, t, a, b, start, length, failed = -1
    cdef double mean, mass, total, weight, move
    cdef double* workspace
    cdef double* nodes
    cdef double* edges
    cdef double* ahead
    cdef double* behind
    cdef const double* edge
    cdef Lattice lattice
    _check_gradient(emissions, dnodes, dpairs)
    _check_gradient(demissions, dnodes, dtransitions)
    longest = check_scores(emissions, transitions, starts, n)
    workspace = <double*> allocate(longest * k * (k + 3) * sizeof(double))
    nodes = workspace
    ahead = workspace + longest * k
    behind = ahead + longest * k
    edges = behind + longest * k
    _open(&lattice, emissions, transitions, starts, n)
    with nogil:
        for i in range(n):
            start, weight = starts[i], weights[i]
            length = starts[i + 1] - start
            if weight == 0.0:
                for t in range(length):
                    for a in range(k):
                        dnodes[start + t, a] = 0.0
                continue
            if forward(&lattice, &emissions[start, 0], k, length) == -INFINITY:
                failed = i
                break
            backward(
                &lattice, &emissions[start, 0], k, length, edges if length > 1 else NULL
            )
            for t in range(length):
                for a in range(k):
                    nodes[t * k + a] = lattice.nodes[t * lattice.width + a]
            # Conditional means, given the label of token t, of the change of the score
            # up to token t, and after token t.
            for a in range(k):
                ahead[a] = demissions[start, a]
                behind[(length - 1) * k + a] = 0.0
            for t in range(1, length):
                edge = edges + (t - 1) * k * k
                for b in range(k):
                    mass = total = 0.0
                    for a in range(k):
                        mass += edge[a * k + b]
                        total += edge[a * k + b] * (
                            ahead[(t - 1) * k + a] + dtransitions[a, b]
                        )
                    ahead[t * k + b] = demissions[start + t, b]
                    if mass > 0.0:
                        ahead[t * k + b] += total / mass
            for t in range(length - 2, -1, -1):
                edge = edges + t * k * k
                for a in range(k):
                    mass = total = 0.0
                    for b in range(k):
                        mass += edge[a * k + b]
                        total += edge[a * k + b] * (
                            dtransitions[a, b]
                            + demissions[start + t + 1, b]
                            + behind[(t + 1) * k + b]
                        )
                    behind[t * k + a] = total / mass if mass > 0.0 else 0.0
            for t in range(length):
                mean = 0.0
                for a in range(k):
                    ahead[t * k + a] += behind[t * k + a]
                    mean += nodes[t * k + a] * ahead[t * k + a]
                for a in range(k):
                    dnodes[start + t, a] = (
                        weight * nodes[t * k + a] * (ahead[t * k + a] - mean)
                    )
                if t == 0:
                    continue
                edge = edges + (t - 1) * k * k
                for a in range(k):
                    # The mean change up to token t - 1, given its label a.
                    move = ahead[(t - 1) * k + a] - behind[(t - 1) * k + a] - mean
                    for b in range(k):
                        dpairs[a, b] += weight * edge[a * k + b] * (
                            move
                            + dtransitions[a, b]
                            + demissions[start + t, b]
                            + behind[t * k + b]
                        )
        close_lattice(&lattice)
        free(workspace)
    check_allowed(failed, starts)


cdef int _open(
    Lattice* lattice,
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    Py_ssize_t n,
) except -1:
    cdef Py_ssize_t longest = check_scores(emissions, transitions, starts, n)
    open_lattice(lattice, emissions.shape[1], longest)
    try:
        set_pattern(lattice, &transitions[0, 0], lattice.k)
    except MemoryError:
        close_lattice(lattice)
        raise
    set_transitions(lattice, &transitions[0, 0])
    return 0


cdef int _check_gradient(
    const double[:, ::1] emissions,
    const double[:, ::1] nodes,
    const double[:, ::1] pairs,
) except -1:
    if pairs is None:
        raise ValueError("transitions need a gradient, too.")
    same_length(emissions.shape[0], nodes.shape[0])
    return same_length(emissions.shape[1], nodes.shape[1], pairs.shape[0], pairs.shape[1])
