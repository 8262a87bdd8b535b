"""Rows of a group in the order of increasing violations, and their partners.

The partners of a row are all rows on the other side of a pair with a positive violation

    m = margin - sign * (z_row - z_partner)

where sign is -1 for lower rows and 1 for higher rows. The set of partners grows from
row to row, so a pointer passes each partner once.
"""

from .level_sums cimport Pairs, put_terms

cdef struct Group:
    # The rows of the group in ascending order of scores, and their number.
    const double* scores
    const Py_ssize_t* order
    Py_ssize_t size
    # Whether each row is the higher one of its pairs, and partners are the lower ones.
    bint higher
    double sign

cdef struct Window:
    # The window of partners with 0 < m <= width. Partners before ``passed`` have m > 0,
    # and partners before ``left`` have m > width.
    double margin
    double width
    Py_ssize_t passed
    Py_ssize_t left

cdef struct Terms:
    # The terms of each partner, w numbers or a sparse row, multiplied by its weight.
    const double* data
    const int* indptr
    const int* indices
    Py_ssize_t w
    const double* weights


cdef inline Group group_of(
    const double[::1] scores, const Py_ssize_t[::1] order, Py_ssize_t start,
    Py_ssize_t end, bint higher
) noexcept nogil:
    return Group(
        &scores[0], &order[0] + start, end - start, higher, 1.0 if higher else -1.0
    )


cdef inline Py_ssize_t row_at(const Group* group, Py_ssize_t step) noexcept nogil:
    """Return the row visited at a step."""
    return group.order[group.size - 1 - step if group.higher else step]


cdef inline Py_ssize_t next_partner(
    const Group* group, double score, double margin, Py_ssize_t* passed, double* m
) noexcept nogil:
    """Advance to the next partner with m > 0; return its row, or -1 for none."""
    cdef Py_ssize_t partner
    if passed[0] == group.size:
        return -1
    partner = row_at(group, passed[0])
    m[0] = margin - group.sign * (score - group.scores[partner])
    if not m[0] > 0.0:
        return -1
    passed[0] += 1
    return partner


cdef inline void put_row(
    Pairs* pairs, Py_ssize_t level, const Terms* terms, Py_ssize_t row, double sign
) noexcept nogil:
    """Add or subtract the terms of a partner."""
    cdef Py_ssize_t t, size
    cdef double factor = sign * terms.weights[row]
    if terms.indptr == NULL:
        put_terms(pairs, level, terms.data + row * terms.w, NULL, terms.w, factor)
        return
    t, size = terms.indptr[row], terms.indptr[row + 1] - terms.indptr[row]
    if size:
        put_terms(pairs, level, terms.data + t, terms.indices + t, size, factor)


cdef inline void move(
    Window* window,
    const Group* group,
    double score,
    const Py_ssize_t* levels,
    const Terms* terms,
    Pairs* pairs,
) noexcept nogil:
    """Move the window of a row's partners, and update the sums, to the given score."""
    cdef double m
    cdef Py_ssize_t partner
    while True:
        partner = next_partner(group, score, window.margin, &window.passed, &m)
        if partner < 0:
            break
        put_row(pairs, levels[partner], terms, partner, 1.0)
    while True:
        partner = next_partner(
            group, score, window.margin - window.width, &window.left, &m
        )
        if partner < 0:
            break
        put_row(pairs, levels[partner], terms, partner, -1.0)
