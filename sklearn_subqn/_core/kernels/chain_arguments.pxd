"""Checks of the arguments of the chain kernels.

Sequences are concatenated. ``starts`` of shape (n + 1,) has the first token of each
sequence, followed by the end of the last one. It may select a block of longer arrays,
so that threads can share the sequences. Emissions have shape (T, k) and transitions
shape (k, k), with minus infinity for forbidden labels and transitions.
"""


cdef inline Py_ssize_t check_starts(
    const Py_ssize_t[::1] starts, Py_ssize_t n, Py_ssize_t n_tokens
) except -1:
    """Raise unless all n sequences have tokens; return the largest length."""
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


cdef inline Py_ssize_t check_scores(
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
    return check_starts(starts, n, emissions.shape[0])


cdef inline int check_labels(
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


cdef inline int check_allowed(Py_ssize_t failed, const Py_ssize_t[::1] starts) except -1:
    if failed >= 0:
        raise ValueError(
            f"no labeling of a sequence of {starts[failed + 1] - starts[failed]} tokens is "
            "allowed, or its own is not."
        )
    return 0
