"""Sums and maxima over the labelings of chains: forward-backward, Viterbi, n best.

Sequences are concatenated: ``starts`` of shape (n + 1,) has the first token of each and
one more for the end of the last; it may cut a block out of longer arrays, so that
threads share the sequences between them. Emissions have shape (T, k), transitions
shape (k, k), minus infinity where a label or a transition is forbidden.
"""

from .lattice cimport (
    Lattice,
    Violations,
    backward,
    best_labels,
    close_lattice,
    close_violations,
    forward,
    labels_score,
    most_violated,
    open_lattice,
    open_violations,
    set_pattern,
    set_transitions,
)
from .rows cimport allocate
from .standard cimport INFINITY, free


def log_partition(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    double[::1] log_z,
):
    """Write ln of the sum over labelings of exp(score) of each sequence to ``log_z``.

    It is minus infinity where no labeling is allowed.
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
        As from ``log_partition``.
    nodes : ndarray of shape (T, k)
    edges : ndarray of shape (T, k, k) or None
        Entry [t, i, j] is the probability of label i at token t - 1 and j at t; of the
        first token of a sequence nothing is written.

    Raises
    ------
    ValueError
        If a sequence has no allowed labeling.
    """
    cdef Py_ssize_t n = log_z.shape[0], i, t, j, length, failed = -1
    cdef Lattice lattice
    cdef double* pairs = NULL
    if nodes.shape[0] != emissions.shape[0] or nodes.shape[1] != emissions.shape[1]:
        raise ValueError("emissions and marginals differ in shape.")
    if edges is not None and (
        edges.shape[0] != emissions.shape[0]
        or edges.shape[1] != emissions.shape[1]
        or edges.shape[2] != emissions.shape[1]
    ):
        raise ValueError("emissions and marginals of pairs differ in shape.")
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
    _check_allowed(failed, starts)


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

    Sequences without weight take no part.

    Parameters
    ----------
    labels : ndarray of shape (T,)
    weights : ndarray of shape (n,)
    nodes : ndarray of shape (T, k) or None
        Receives the weighted differences between the probabilities of labels and their
        indicators. None where no gradient is asked for.
    pairs : ndarray of shape (k, k) or None
        To which those of pairs of adjacent labels are added.

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
        _check_labels(labels, starts, emissions.shape[0], k)
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
            # The right labeling is one of them, but for rounding; not a number stays.
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
    _check_allowed(failed, starts)
    return total


def most_violated_margins(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] labels,
    const double[::1] weights,
    bint slack,
    Py_ssize_t[::1] worst,
    double[::1] losses,
):
    """Write each sequence's labeling that violates its margin most.

    Of D wrong labels it has the largest D + score - score of the right labels, or with
    ``slack`` the largest D (1 + score - score of the right labels).

    Parameters
    ----------
    labels : ndarray of shape (T,)
        The right ones, of which sequences with weight are allowed.
    weights : ndarray of shape (n,)
    slack : bool
    worst : ndarray of shape (T,)
        Receives that labeling, the right one for sequences without weight.
    losses : ndarray of shape (n,)
        Receives the maxima.
    """
    cdef Py_ssize_t n = weights.shape[0], k = emissions.shape[1], longest
    cdef Py_ssize_t i, start, length, failed = -1
    cdef Violations room
    cdef const double* z
    cdef const double* T
    if worst.shape[0] != labels.shape[0] or losses.shape[0] != n:
        raise ValueError("arrays of sequences differ in length.")
    longest = _check(emissions, transitions, starts, n)
    _check_labels(labels, starts, emissions.shape[0], k)
    open_violations(&room, k, longest, slack)
    T = &transitions[0, 0]
    with nogil:
        for i in range(n):
            start = starts[i]
            length = starts[i + 1] - start
            z = &emissions[start, 0]
            losses[i] = 0.0
            if weights[i] == 0.0:
                worst[start : start + length] = labels[start : start + length]
                continue
            if labels_score(T, k, z, length, &labels[start]) == -INFINITY:
                failed = i
                break
            losses[i] = most_violated(
                &room, T, k, z, length, &labels[start], &worst[start]
            )
        close_violations(&room)
    _check_allowed(failed, starts)


def viterbi(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    Py_ssize_t[::1] labels,
    double[::1] scores,
):
    """Write the labels of the best labelings, of shape (T,), and their scores (n,).

    Of labels with equal scores the lowest is taken, from the last token backwards.

    Raises
    ------
    ValueError
        If a sequence has no allowed labeling.
    """
    cdef Py_ssize_t n = scores.shape[0], k = emissions.shape[1], i, failed = -1, longest
    cdef Violations room
    if labels.shape[0] != emissions.shape[0]:
        raise ValueError("arrays of tokens differ in length.")
    longest = _check(emissions, transitions, starts, n)
    open_violations(&room, k, longest, False)
    with nogil:
        for i in range(n):
            scores[i] = best_labels(
                &transitions[0, 0], k, &emissions[starts[i], 0],
                starts[i + 1] - starts[i], NULL, room.best, &labels[starts[i]],
            )
            if scores[i] == -INFINITY:
                failed = i
                break
        close_violations(&room)
    _check_allowed(failed, starts)


def n_best(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    Py_ssize_t[:, ::1] labels,
    double[:, ::1] scores,
):
    """Write the m best labelings, labels of shape (m, T) and scores of shape (n, m).

    In the order of scores. Where there are fewer allowed labelings the score is minus
    infinity, and the labels are -1.
    """
    cdef Py_ssize_t n = scores.shape[0], m = scores.shape[1], k = emissions.shape[1]
    cdef Py_ssize_t longest, i, t, j, l, r, start, length, place, from_label, from_rank
    cdef double score
    cdef double* now
    cdef double* before
    cdef double* swapped
    cdef int* origins
    cdef int* heads
    cdef double* room
    if labels.shape[0] != m or labels.shape[1] != emissions.shape[0]:
        raise ValueError("arrays of labelings differ in shape.")
    if k * m > 2**31 - 1:
        raise ValueError(f"{m} labelings of {k} labels are too many.")
    longest = _check(emissions, transitions, starts, n)
    room = <double*> allocate(
        2 * k * m * sizeof(double) + (longest * k * m + k) * sizeof(int)
    )
    heads = <int*> (room + 2 * k * m)
    origins = heads + k
    with nogil:
        for i in range(n):
            start = starts[i]
            length = starts[i + 1] - start
            now, before = room, room + k * m
            for j in range(k):
                now[j * m] = emissions[start, j]
                for r in range(1, m):
                    now[j * m + r] = -INFINITY
            for t in range(1, length):
                swapped = before
                before = now
                now = swapped
                for j in range(k):
                    # Lists of each label before, in order, are merged.
                    for l in range(k):
                        heads[l] = 0
                    for r in range(m):
                        place = 0
                        score = -INFINITY
                        for l in range(k):
                            if (
                                heads[l] < m
                                and before[l * m + heads[l]] + transitions[l, j] > score
                            ):
                                score = before[l * m + heads[l]] + transitions[l, j]
                                place = l
                        origins[(t * k + j) * m + r] = <int> (place * m + heads[place])
                        heads[place] += score > -INFINITY
                        now[j * m + r] = score + emissions[start + t, j]
            for l in range(k):
                heads[l] = 0
            for r in range(m):
                place = 0
                score = -INFINITY
                for l in range(k):
                    if heads[l] < m and now[l * m + heads[l]] > score:
                        score = now[l * m + heads[l]]
                        place = l
                scores[i, r] = score
                if score == -INFINITY:
                    for t in range(length):
                        labels[r, start + t] = -1
                    continue
                from_label = place
                from_rank = heads[place]
                heads[place] += 1
                for t in range(length - 1, -1, -1):
                    labels[r, start + t] = from_label
                    if t > 0:
                        place = origins[(t * k + from_label) * m + from_rank]
                        from_label = place // m
                        from_rank = place % m
        free(room)


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
    """Write how weighted marginals change with the scores: a product with R''.

    The change of the probability of a label is its covariance with the change of the
    score of the whole labeling.

    Parameters
    ----------
    demissions, dtransitions : ndarray of shape (T, k) and (k, k)
        Change of the scores, finite also where a transition is forbidden.
    weights : ndarray of shape (n,)
    dnodes : ndarray of shape (T, k)
        Receives the change of the weighted probabilities of labels.
    dpairs : ndarray of shape (k, k)
        To which that of the sum over pairs of adjacent labels is added.

    Raises
    ------
    ValueError
        If a sequence has no allowed labeling.
    """
    cdef Py_ssize_t n = weights.shape[0], k = emissions.shape[1], longest
    cdef Py_ssize_t i, t, a, b, start, length, failed = -1
    cdef double mean, mass, total, weight, move
    cdef double* room
    cdef double* nodes
    cdef double* edges
    cdef double* ahead
    cdef double* behind
    cdef const double* edge
    cdef Lattice lattice
    _check_gradient(emissions, dnodes, dpairs)
    _check_gradient(demissions, dnodes, dtransitions)
    longest = _check(emissions, transitions, starts, n)
    room = <double*> allocate(longest * k * (k + 3) * sizeof(double))
    nodes = room
    ahead = room + longest * k
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
            # The mean change of a labeling's score up to token t, given its label, and
            # after it.
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
                    # What remains of the sum at a after what follows it is taken off.
                    move = ahead[(t - 1) * k + a] - behind[(t - 1) * k + a] - mean
                    for b in range(k):
                        dpairs[a, b] += weight * edge[a * k + b] * (
                            move
                            + dtransitions[a, b]
                            + demissions[start + t, b]
                            + behind[t * k + b]
                        )
        close_lattice(&lattice)
        free(room)
    _check_allowed(failed, starts)


cdef Py_ssize_t _check_starts(
    const Py_ssize_t[::1] starts, Py_ssize_t n, Py_ssize_t n_tokens
) except -1:
    """Raise unless n sequences have tokens; return the length of the longest."""
    cdef Py_ssize_t i, longest = 1
    if starts.shape[0] != n + 1:
        raise ValueError(f"{starts.shape[0]} starts for {n} sequences and their end.")
    if starts[0] < 0 or starts[n] > n_tokens:
        raise ValueError(f"sequences are not within {n_tokens} tokens.")
    for i in range(n):
        if starts[i + 1] <= starts[i]:
            raise ValueError(f"sequence {i} has no tokens.")
        longest = max(longest, starts[i + 1] - starts[i])
    return longest


cdef Py_ssize_t _check(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    Py_ssize_t n,
) except -1:
    cdef Py_ssize_t k = emissions.shape[1]
    if k == 0 or transitions.shape[0] != k or transitions.shape[1] != k:
        raise ValueError("emissions and transitions differ in the number of labels.")
    if k > 65536:
        raise ValueError(f"{k} labels are too many.")
    return _check_starts(starts, n, emissions.shape[0])


cdef int _open(
    Lattice* lattice,
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    Py_ssize_t n,
) except -1:
    cdef Py_ssize_t longest = _check(emissions, transitions, starts, n)
    open_lattice(lattice, emissions.shape[1], longest)
    try:
        set_pattern(lattice, &transitions[0, 0], lattice.k)
    except MemoryError:
        close_lattice(lattice)
        raise
    set_transitions(lattice, &transitions[0, 0])
    return 0


cdef int _check_labels(
    const Py_ssize_t[::1] labels,
    const Py_ssize_t[::1] starts,
    Py_ssize_t n_tokens,
    Py_ssize_t k,
) except -1:
    cdef Py_ssize_t t
    if labels.shape[0] != n_tokens:
        raise ValueError(f"{labels.shape[0]} labels for {n_tokens} tokens.")
    for t in range(starts[0], starts[starts.shape[0] - 1]):
        if not 0 <= labels[t] < k:
            raise ValueError(f"label {labels[t]} is none of {k}.")
    return 0


cdef int _check_gradient(
    const double[:, ::1] emissions,
    const double[:, ::1] nodes,
    const double[:, ::1] pairs,
) except -1:
    cdef Py_ssize_t k = emissions.shape[1]
    if nodes.shape[0] != emissions.shape[0] or nodes.shape[1] != k:
        raise ValueError("emissions and their gradient differ in shape.")
    if pairs is None or pairs.shape[0] != k or pairs.shape[1] != k:
        raise ValueError("transitions and their gradient differ in shape.")
    return 0


cdef int _check_allowed(Py_ssize_t failed, const Py_ssize_t[::1] starts) except -1:
    if failed >= 0:
        raise ValueError(
            f"no labeling of a sequence of {starts[failed + 1] - starts[failed]} tokens is "
            "allowed, or its own is not."
        )
    return 0
