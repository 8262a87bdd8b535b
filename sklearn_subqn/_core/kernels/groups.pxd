"""Groups of rows: group g has the rows ``order[starts[g]:starts[g + 1]]``."""


cdef inline int check_groups(
    const Py_ssize_t[::1] order, const Py_ssize_t[::1] starts
) except -1:
    """Raise ValueError unless starts ascend, and ``order`` has valid rows."""
    cdef Py_ssize_t i, n = order.shape[0], g = starts.shape[0] - 1
    if g < 0 or starts[0] != 0 or starts[g] != n:
        raise ValueError(f"Starts of groups must rise from 0 to {n}.")
    for i in range(g):
        if starts[i] > starts[i + 1]:
            raise ValueError(f"Starts of groups must rise from 0 to {n}.")
    for i in range(n):
        if not 0 <= order[i] < n:
            raise ValueError(f"Places must lie in [0, {n}), got {order[i]}.")
    return 0
