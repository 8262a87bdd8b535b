"""Data of a row for the order of its labels, see ``label_order.pyx``."""

from .joint cimport check_indicators
from .rows cimport same_length


cdef struct Labels:
    # Number of labels, and whether there is a threshold.
    Py_ssize_t l
    bint threshold
    const unsigned char* relevant
    # Twice the weight of a pair of labels, and of a pair of a label and the threshold.
    double pair
    double single
    # The ``size`` labels in violated pairs, in ascending order of shifted scores v.
    # Each code is the label's kind (0 for irrelevant, 1 for the threshold, 2 for
    # relevant) times k plus the label's index.
    Py_ssize_t size
    # The largest absolute score plus absolute shift.
    double largest
    double* v
    double* codes


cdef inline int check(
    const unsigned char[:, ::1] targets,
    const double[::1] weights,
    Py_ssize_t n,
    Py_ssize_t k,
) except -1:
    same_length(n, targets.shape[0], weights.shape[0])
    if not targets.shape[1] <= k <= targets.shape[1] + 1:
        raise ValueError(f"{k} scores a row for {targets.shape[1]} labels.")
    check_indicators(targets)
    return 0


cdef inline void open_row(
    const unsigned char* relevant, Py_ssize_t l, Py_ssize_t k, double weight, Labels* row
) noexcept nogil:
    """Set the fields that do not depend on scores."""
    cdef Py_ssize_t j, n_relevant = 0
    cdef double share = 0.5 if k > l else 1.0
    for j in range(l):
        n_relevant += relevant[j]
    row.l, row.threshold, row.relevant = l, k > l, relevant
    row.pair = row.single = 0.0
    if 0 < n_relevant < l:
        row.pair = 2.0 * weight * share / (<double> n_relevant * (l - n_relevant))
    if k > l:
        row.single = 2.0 * weight * share / l


cdef inline int kind(const Labels* row, Py_ssize_t j) noexcept nogil:
    """Return the kind of a label; at equal scores, ascending kinds are no violation."""
    return 1 if j == row.l else 2 * row.relevant[j]
