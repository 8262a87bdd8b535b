"""Maxima over the labelings of chains: Viterbi, n best, most violated margins.

Arguments are described in ``chain_arguments.pxd``.
"""

from .chain_arguments cimport check_allowed, check_labels, check_scores
from .rows cimport allocate
from .standard cimport INFINITY, free
from .viterbi cimport (
    Violations,
    best_labels,
    close_violations,
    labels_score,
    most_violated,
    open_violations,
)


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
    """Write the most violated labeling of each sequence.

    With D the number of wrong labels, this labeling maximizes D + score - score of the
    right labels, or with ``slack`` D (1 + score - score of the right labels).

    Parameters
    ----------
    labels : ndarray of shape (T,)
        The right labels, which must be allowed in sequences of positive weight.
    weights : ndarray of shape (n,)
    slack : bool
    worst : ndarray of shape (T,)
        Receives the most violated labeling, and the right labels where the weight is
        zero.
    losses : ndarray of shape (n,)
        Receives the maxima.
    """
    cdef Py_ssize_t n = weights.shape[0], k = emissions.shape[1], longest
    cdef Py_ssize_t i, start, length, failed = -1
    cdef Violations violations
    cdef const double* z
    cdef const double* T
    if worst.shape[0] != labels.shape[0] or losses.shape[0] != n:
        raise ValueError("arrays of sequences differ in length.")
    longest = check_scores(emissions, transitions, starts, n)
    check_labels(labels, starts, emissions.shape[0], k)
    open_violations(&violations, k, longest, slack)
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
                &violations, T, k, z, length, &labels[start], &worst[start]
            )
        close_violations(&violations)
    check_allowed(failed, starts)


def viterbi(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    Py_ssize_t[::1] labels,
    double[::1] scores,
):
    """Write the labels of the best labelings, of shape (T,), and their scores (n,).

    Ties are resolved to the lowest label, from the last token backwards.

    Raises
    ------
    ValueError
        If a sequence has no allowed labeling.
    """
    cdef Py_ssize_t n = scores.shape[0], k = emissions.shape[1], i, failed = -1, longest
    cdef Violations workspace
    if labels.shape[0] != emissions.shape[0]:
        raise ValueError("arrays of tokens differ in length.")
    longest = check_scores(emissions, transitions, starts, n)
    open_violations(&workspace, k, longest, False)
    with nogil:
        for i in range(n):
            scores[i] = best_labels(
                &transitions[0, 0], k, &emissions[starts[i], 0],
                starts[i + 1] - starts[i], NULL, workspace.best, &labels[starts[i]],
            )
            if scores[i] == -INFINITY:
                failed = i
                break
        close_violations(&workspace)
    check_allowed(failed, starts)


def n_best(
    const double[:, ::1] emissions,
    const double[:, ::1] transitions,
    const Py_ssize_t[::1] starts,
    Py_ssize_t[:, ::1] labels,
    double[:, ::1] scores,
):
    """Write the m best labelings, labels of shape (m, T) and scores of shape (n, m).

    Labelings are in descending order of scores. Where a sequence has fewer than m
    allowed labelings, scores are minus infinity and labels are -1.
    """
    cdef Py_ssize_t n = scores.shape[0], m = scores.shape[1], k = emissions.shape[1]
    cdef Py_ssize_t longest, i, t, j, l, r, start, length, place, from_label, from_rank
    cdef double score
    cdef double* now
    cdef double* before
    cdef double* swapped
    cdef int* origins
    cdef int* heads
    cdef double* workspace
    if labels.shape[0] != m or labels.shape[1] != emissions.shape[0]:
        raise ValueError("arrays of labelings differ in shape.")
    if k * m > 2**31 - 1:
        raise ValueError(f"{m} labelings of {k} labels are too many.")
    longest = check_scores(emissions, transitions, starts, n)
    workspace = <double*> allocate(
        2 * k * m * sizeof(double) + (longest * k * m + k) * sizeof(int)
    )
    heads = <int*> (workspace + 2 * k * m)
    origins = heads + k
    with nogil:
        for i in range(n):
            start = starts[i]
            length = starts[i + 1] - start
            now, before = workspace, workspace + k * m
            for j in range(k):
                now[j * m] = emissions[start, j]
                for r in range(1, m):
                    now[j * m + r] = -INFINITY
            for t in range(1, length):
                swapped = before
                before = now
                now = swapped
                for j in range(k):
                    # Merge the sorted lists of all previous labels.
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
        free(workspace)
