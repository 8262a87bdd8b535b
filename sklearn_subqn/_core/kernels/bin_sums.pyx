"""Sums of a function of score differences by Taylor expansions in bins of scores.

All bins have the same width. Group g has the bins ``starts[g]`` to ``starts[g + 1] -
1``, with ascending ``positions`` in units of the width. A score is (position + offset)
times the width. The function f of a score difference is given by its derivatives at
multiples of the width. Outside this table, f is a line above and an exponential below,
or zero on both sides.
"""

from .rows cimport same_length
from .standard cimport exp


def derivatives(
    const Py_ssize_t[::1] positions,
    const Py_ssize_t[::1] starts,
    const double[:, :, ::1] sources,
    const double[:, ::1] table,
    double width,
    bint line,
    double[:, :, ::1] out,
):
    """Add to ``out`` the derivatives of sums of f at the centers of the bins.

    With moments ``sources[a, l, q]``, sums of s_j (-y_j)^q / q! over the members j of
    bin l at offsets y_j, the p-th derivative of sum_j s_j f(z - z_j) at the center of
    bin k is the sum over l and q of f^(p + q)(c_k - c_l) sources[a, l, q], up to the
    order of the table. A zero source adds nothing.

    Parameters
    ----------
    positions : (m,)
    starts : (g + 1,)
    sources : (k, m, r)
    table : (2 t + 1, r)
        Derivatives of f at -t, ..., t times the width.
    width : float
    line : bool
        Whether f(x) = x above the table and exp(x) below, instead of zero; requires r
        >= 2.
    out : (k, m, r)
    """
    cdef Py_ssize_t n = positions.shape[0], r = table.shape[1], t = table.shape[0] // 2
    cdef Py_ssize_t g, a, b, e, p, q, first, passed, distance, last
    cdef double source, zeroth, moment, above
    cdef const double *row
    same_length(n, sources.shape[1], out.shape[1])
    same_length(r, sources.shape[2], out.shape[2])
    same_length(sources.shape[0], out.shape[0])
    if table.shape[0] != 2 * t + 1 or (line and r < 2):
        raise ValueError("The table must have an odd number of rows, and two columns.")
    if starts.shape[0] < 1 or starts[0] != 0 or starts[starts.shape[0] - 1] != n:
        raise ValueError(f"Starts of groups must rise from 0 to {n}.")
    for g in range(starts.shape[0] - 1):
        if starts[g] > starts[g + 1]:
            raise ValueError(f"Starts of groups must rise from 0 to {n}.")
        for b in range(starts[g] + 1, starts[g + 1]):
            if positions[b] <= positions[b - 1]:
                raise ValueError("Positions must rise in each group.")
    with nogil:
        for a in range(sources.shape[0]):
            for g in range(starts.shape[0] - 1):
                passed = first = starts[g]
                zeroth, moment = 0.0, 0.0
                for b in range(starts[g], starts[g + 1]):
                    # Sums over the bins below the range of the table. The sum of
                    # differences increases with b, so no terms cancel.
                    if line:
                        moment += width * (positions[b] - positions[first]) * zeroth
                        first = b
                    while positions[b] - positions[passed] > t:
                        source = sources[a, passed, 0]
                        zeroth += source
                        if line:
                            moment += width * (positions[b] - positions[passed]) * source
                            moment += sources[a, passed, 1]
                        passed += 1
                    if line:
                        out[a, b, 0] += moment
                        out[a, b, 1] += zeroth
                    for e in range(passed, starts[g + 1]):
                        distance = positions[b] - positions[e]
                        if distance < -t:
                            break
                        row = &table[distance + t, 0]
                        for q in range(r):
                            source = sources[a, e, q]
                            if source != 0.0:
                                for p in range(r - q):
                                    out[a, b, p] += row[p + q] * source
                if not line:
                    continue
                # Sums over the bins above the range of the table, where all derivatives
                # of exp are equal.
                last, above = starts[g + 1] - 1, 0.0
                for b in range(starts[g + 1] - 1, starts[g] - 1, -1):
                    if b < starts[g + 1] - 1:
                        above *= exp(width * (positions[b] - positions[b + 1]))
                    while positions[last] - positions[b] > t:
                        source = 0.0
                        for q in range(r):
                            source += sources[a, last, q]
                        above += source * exp(width * (positions[b] - positions[last]))
                        last -= 1
                    for p in range(r):
                        out[a, b, p] += above


def polynomials(
    const double[:, ::1] coefficients,
    const Py_ssize_t[::1] cells,
    const double[::1] offsets,
    double[::1] out,
):
    """Evaluate the polynomial of each offset's cell.

    Parameters
    ----------
    coefficients : (c, r)
    cells : (n,)
        The polynomial of each offset, less than c.
    offsets : (n,)
    out : (n,)
    """
    cdef Py_ssize_t n = cells.shape[0], r = coefficients.shape[1], i, p
    cdef double total
    same_length(n, offsets.shape[0], out.shape[0])
    for i in range(n):
        if not 0 <= cells[i] < coefficients.shape[0]:
            raise ValueError(f"Cells must lie in [0, {coefficients.shape[0]}).")
    with nogil:
        for i in range(n):
            total = 0.0
            for p in range(r - 1, -1, -1):
                total = coefficients[cells[i], p] + total * offsets[i]
            out[i] = total
