"""Best labelings and most violated labelings of a chain.

Emissions of shape (L, k) and transitions of shape (k, k) are as in ``lattice.pxd``.
"""

from .rows cimport allocate
from .standard cimport INFINITY, ceil, free, memcpy


cdef inline double best_labels(
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    double* best,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the labeling with the best score, the lowest among ties (Viterbi 1967).

    If ``own`` is not NULL, each label that differs from it scores one more. ``best`` of
    shape (L, k) is a workspace. Returns the score, minus infinity if no labeling is
    allowed.
    """
    cdef Py_ssize_t t, i, j, before
    cdef double score, reached
    cdef double* now = best
    for t in range(length):
        if t == 0:
            memcpy(now, z, k * sizeof(double))
        else:
            _reach(T, k, z + t * k, now - k, now)
        if own != NULL:
            for j in range(k):
                if j != own[t]:
                    now[j] += 1.0
        now += k
    now -= k
    j = _largest(now, k)
    score = now[j]
    labels[length - 1] = j
    # Previous labels are computed only along the best labeling.
    for t in range(length - 1, 0, -1):
        now -= k
        before, reached = 0, now[0] + T[j]
        for i in range(1, k):
            if now[i] + T[i * k + j] > reached:
                before, reached = i, now[i] + T[i * k + j]
        j = before
        labels[t - 1] = j
    return score


cdef inline void _reach(
    const double* T, Py_ssize_t k, const double* z, const double* before, double* now
) noexcept nogil:
    """Extend the best scores by one token, for each of its labels."""
    cdef Py_ssize_t i, j
    cdef double score, reached
    cdef const double* row
    for j in range(k):
        now[j] = before[0] + T[j]
    for i in range(1, k):
        reached = before[i]
        row = T + i * k
        for j in range(k):
            score = reached + row[j]
            now[j] = score if score > now[j] else now[j]
    for j in range(k):
        now[j] += z[j]


cdef inline void _go_on(
    const double* T,
    Py_ssize_t k,
    const double* z,
    const double* before,
    double* now,
    unsigned short* origin,
) noexcept nogil:
    """Extend the best scores by one token, and write the previous labels."""
    cdef Py_ssize_t i, j
    cdef double score, reached
    cdef const double* row
    for j in range(k):
        now[j] = before[0] + T[j]
        origin[j] = 0
    for i in range(1, k):
        reached = before[i]
        row = T + i * k
        for j in range(k):
            score = reached + row[j]
            if score > now[j]:
                now[j] = score
                origin[j] = <unsigned short> i
    for j in range(k):
        now[j] += z[j]


cdef inline Py_ssize_t _largest(const double* x, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t i = 0, j
    for j in range(1, k):
        if x[j] > x[i]:
            i = j
    return i


cdef inline double labels_score(
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* labels,
) noexcept nogil:
    """Return the score of a labeling."""
    cdef Py_ssize_t t
    cdef double score = z[labels[0]]
    for t in range(1, length):
        score += z[t * k + labels[t]] + T[labels[t - 1] * k + labels[t]]
    return score


cdef struct Violations:
    # Workspace for the most violated labelings.
    bint slack  # slack rescaling, else margin rescaling
    double* best
    unsigned short* origins


cdef inline int open_violations(
    Violations* room, Py_ssize_t k, Py_ssize_t longest, bint slack
) except -1:
    cdef size_t n_best = longest * k, n_origins = 0
    if slack:
        # Slack rescaling needs scores for each number of wrong labels.
        n_best = 2 * (longest + 1) * k
        n_origins = longest * (longest + 1) // 2 * k
    room.slack = slack
    room.best = <double*> allocate(
        n_best * sizeof(double) + n_origins * sizeof(unsigned short)
    )
    room.origins = <unsigned short*> (room.best + n_best)
    return 0


cdef inline void close_violations(Violations* room) noexcept nogil:
    free(room.best)


cdef inline double most_violated(
    Violations* room,
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the most violated labeling; return the structured hinge.

    With Delta the number of labels that differ from ``own``, the labeling maximizes
    Delta + score - score(own), or with slack rescaling Delta (1 + score - score(own)).
    The labeling ``own`` must be allowed; its value is zero.
    """
    cdef double score = labels_score(T, k, z, length, own)
    cdef double hinge = best_labels(T, k, z, length, own, room.best, labels)
    # The maximum is not negative, because it includes ``own``, except for rounding
    # errors.
    hinge = max(hinge - score, 0.0)
    if room.slack:
        return _most_slack(room, T, k, z, length, own, score, hinge, labels)
    return hinge


cdef inline double _most_slack(
    Violations* room,
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    double score,
    double margin,
    Py_ssize_t* labels,
) noexcept nogil:
    """Maximize Delta (1 + score - score(own)) over each number of wrong labels.

    Ties are resolved to the fewest wrong labels, then to the lowest labels. The hinge
    with margin rescaling bounds n + score - score(own) for all labelings with n wrong
    labels, so labelings with n >= margin + 1 have no positive value and are skipped.
    """
    cdef Py_ssize_t most_wrong = <Py_ssize_t> ceil(margin) if margin < length else length
    cdef Py_ssize_t t, i = own[length - 1], j, n, last, n_wrong = 0
    cdef double* now = room.best
    cdef double* before = room.best + (length + 1) * k
    cdef double* swapped
    cdef double hinge = 0.0, value
    # Entry [n, j] of ``now`` is the best score with label j at token t and n wrong
    # labels up to token t; entry [n, j] of ``origins`` has n <= t wrong labels before
    # token t.
    cdef unsigned short* origins = room.origins
    if most_wrong == 0:
        memcpy(labels, own, length * sizeof(Py_ssize_t))
        return 0.0
    for j in range(k):
        now[j] = -INFINITY
        now[k + j] = z[j]
    now[own[0]] = z[own[0]]
    now[k + own[0]] = -INFINITY
    for t in range(1, length):
        swapped = before
        before = now
        now = swapped
        origins += min(t, most_wrong + 1) * k
        for j in range(k):
            now[j] = -INFINITY
        last = min(t, most_wrong)
        for n in range(last + 1):
            _go_on(
                T, k, z + t * k, before + n * k, now + (n + 1) * k, origins + n * k
            )
            now[n * k + own[t]] = now[(n + 1) * k + own[t]]
        now[(last + 1) * k + own[t]] = -INFINITY
    for n in range(1, most_wrong + 1):
        j = _largest(now + n * k, k)
        value = n * (1.0 + now[n * k + j] - score)
        if value > hinge:
            hinge = value
            n_wrong = n
            i = j
    for t in range(length - 1, -1, -1):
        labels[t] = i
        if i != own[t]:
            n_wrong -= 1
        if t > 0:
            i = origins[n_wrong * k + i]
            origins -= min(t, most_wrong + 1) * k
    return hinge
