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
