"""Projections of relevant and irrelevant labels of a row, coupled by one variable."""

from .rows cimport shift_of_few


cdef inline double kind_shift(
    const double* t,
    const unsigned char* relevant,
    unsigned char kind,
    Py_ssize_t l,
    double top,
    double* few,
) noexcept nogil:
    """Return the shift with sum max(0, t - shift) = 1 over one kind of labels.

    ``top`` is the largest t of the kind, and ``few`` is a workspace of l numbers. The
    shift is zero if the row has no labels of the kind.
    """
    cdef Py_ssize_t j, size = 0
    cdef double total = 0.0
    for j in range(l):
        if relevant[j] == kind and t[j] > top - 1.0:
            few[size] = t[j] - top
            total += few[size]
            size += 1
    if size == 0:
        return 0.0
    return top + shift_of_few(few, size, total)


cdef inline void coupled_shifts(
    const double* t,
    const unsigned char* relevant,
    Py_ssize_t l,
    const double* top,
    const double* lift,
    bint threshold,
    double excess,
    double* few,
    double* shifts,
) noexcept nogil:
    """Write the shifts of irrelevant and relevant labels, coupled by a variable x.

    With S_0(x) = min(1, sum max(0, t_j + lift_0 - x)) over irrelevant labels and S_1(x)
    = min(1, sum max(0, t_j + lift_1 + x)) over relevant ones, x is the root of S_0 -
    S_1, or with a threshold of S_0 - S_1 - excess - x, by Newton's method safeguarded
    by a bracket. ``top`` has the largest t of each kind. If all sums are zero, the
    shifts are above the largest t.
    """
    cdef Py_ssize_t j, size
    cdef double low, high, x, trial, d
    cdef double sums[2]
    cdef double caps[2]
    cdef int kind
    for kind in range(2):
        caps[kind] = kind_shift(t, relevant, kind, l, top[kind], few)
    if threshold:
        low, high = -2.0, 2.0
    else:
        low, high = -top[1] - lift[1], top[0] + lift[0]
        if high <= low:
            shifts[0], shifts[1] = top[0] + 1.0, top[1] + 1.0
            return
        if caps[0] + lift[0] + caps[1] + lift[1] > 0.0:
            shifts[0], shifts[1] = caps[0], caps[1]
            return
    x = 0.5 * (low + high)
    while True:
        shifts[0], shifts[1] = x - lift[0], -x - lift[1]
        size = threshold
        sums[0] = sums[1] = 0.0
        for j in range(l):
            d = t[j] - shifts[relevant[j]]
            if d > 0.0 and shifts[relevant[j]] > caps[relevant[j]]:
                sums[relevant[j]] += d
                size += 1
        for kind in range(2):
            if shifts[kind] <= caps[kind]:
                shifts[kind] = caps[kind]
                sums[kind] = 1.0 if top[kind] > -1e299 else 0.0
        d = sums[0] - sums[1]
        if threshold:
            d -= excess + x
        if d > 0.0:
            low = x
        else:
            high = x
        trial = x + d / size if size else 0.5 * (low + high)
        if not low < trial < high:
            trial = 0.5 * (low + high)
        if d == 0.0 or trial == x or not low < trial < high or -4e-16 <= d <= 4e-16:
            return
        x = trial
