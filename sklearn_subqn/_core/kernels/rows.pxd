"""What kernels share: room to work in, and maxima of the lines of a row."""

from libc.stdlib cimport malloc


cdef inline void* allocate(size_t n_bytes) except NULL:
    cdef void* memory = malloc(n_bytes)
    if memory == NULL:
        raise MemoryError(f"no room for {n_bytes} bytes.")
    return memory


cdef inline void _sort(double* rise, double* height, Py_ssize_t size) noexcept nogil:
    """Sort by rise, by height where that is equal: heap sort."""
    cdef Py_ssize_t start = size // 2, end = size, root, child
    cdef double r, h
    while end > 1:
        if start > 0:
            start -= 1
            r, h = rise[start], height[start]
        else:
            end -= 1
            r, h = rise[end], height[end]
            rise[end], height[end] = rise[0], height[0]
        root = start
        child = 2 * root + 1
        while child < end:
            if child + 1 < end and (
                rise[child] < rise[child + 1]
                or (
                    rise[child] == rise[child + 1]
                    and height[child] < height[child + 1]
                )
            ):
                child += 1
            if rise[child] < r or (rise[child] == r and height[child] <= h):
                break
            rise[root], height[root] = rise[child], height[child]
            root = child
            child = 2 * root + 1
        rise[root], height[root] = r, h


cdef inline Py_ssize_t upper_envelope(
    double* rise, double* height, double* at, Py_ssize_t size
) noexcept nogil:
    """Segment the maximum of lines height + eta * rise for eta > 0 (Yu 2009, Alg. 3.4).

    Line 0 is the maximum at 0, the other lines are lower there and rise faster. On
    return the first lines are those of the maximum, in order, and ``at[j]`` is where
    line j takes over from line j - 1. The result is their number. O(size log size).
    """
    cdef Py_ssize_t i, top = 0
    cdef double where
    _sort(rise + 1, height + 1, size - 1)
    at[0] = 0.0
    for i in range(1, size):
        if i + 1 < size and rise[i + 1] == rise[i]:
            continue
        while True:
            where = (height[top] - height[i]) / (rise[i] - rise[top])
            if top == 0 or where > at[top]:
                break
            top -= 1
        top += 1
        rise[top], height[top], at[top] = rise[i], height[i], where
    return top + 1


cdef inline double simplex_shift(
    const double* t, Py_ssize_t k, double* few
) noexcept nogil:
    """Return the shift with sum max(0, t - shift) = 1.

    ``few`` has room for k numbers. Entries more than 1 below the largest cannot be in
    the support; of the others those below the mean shift are removed until none is
    (Michelot 1986).
    """
    cdef Py_ssize_t j, size = 0, kept
    cdef double largest, total = 0.0, shift
    largest = t[0]
    for j in range(k):
        largest = t[j] if t[j] > largest else largest
    for j in range(k):
        if t[j] > largest - 1.0:
            few[size] = t[j] - largest
            total += few[size]
            size += 1
    while True:
        shift = (total - 1.0) / size
        kept = 0
        total = 0.0
        for j in range(size):
            if few[j] > shift:
                few[kept] = few[j]
                total += few[j]
                kept += 1
        if kept == size:
            return shift + largest
        size = kept


cdef inline void shuffle(Py_ssize_t[::1] order, unsigned long long seed) noexcept nogil:
    """Shuffle in place, by the same permutation for the same seed, not zero."""
    cdef Py_ssize_t p, other, swapped
    for p in range(order.shape[0] - 1, 0, -1):
        seed ^= seed << 13
        seed ^= seed >> 7
        seed ^= seed << 17
        other = <Py_ssize_t>(seed % <unsigned long long>(p + 1))
        swapped = order[p]
        order[p] = order[other]
        order[other] = swapped
