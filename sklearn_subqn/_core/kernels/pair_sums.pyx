"""Sums over pairs of rows of unequal level within groups of rows.

The rows of group g are ``order[starts[g]:starts[g + 1]]``, by ascending scores. A pair
of a lower level i and a higher one j violates its margin by m = margin + z_i - z_j, if
that is positive. Rows are visited in the order in which their violations grow, for
either side of the pairs by itself, with the partners of ``partners.pxd``. Sums over all
levels below that of the row, or above, are those of ``level_sums.pxd``.
"""

from .level_sums cimport Pairs, check, clear, get, pairs_of, put
from .partners cimport Group, group_of, next_partner, row_at
from .sums cimport Sum, add_to, result


def shares(
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    const double[::1] weights,
    double[:, ::1] sums,
    double[::1] out,
):
    """Set ``out`` to the weight of each group over that of its pairs, zero without.

    Pairs count by the products of their weights.

    Parameters
    ----------
    order : (n,)
    starts : (g + 1,)
    levels : (n,)
        Numbers below k.
    weights : (n,)
    sums : (k + 1, 2)
        Room for sums over levels; zero, and zero again at the end.
    out : (g,)
    """
    cdef Py_ssize_t g, t, level
    cdef Sum pairs, total, one
    check(weights, order, starts, levels, sums)
    if sums.shape[1] != 2:
        raise ValueError(f"Sums have two numbers each, got {sums.shape[1]}.")
    if weights.shape[0] != order.shape[0] or out.shape[0] != starts.shape[0] - 1:
        raise ValueError(
            f"{order.shape[0]} rows and {starts.shape[0] - 1} groups, but "
            f"{weights.shape[0]} weights and {out.shape[0]} results."
        )
    with nogil:
        for g in range(out.shape[0]):
            pairs = total = Sum(0.0, 0.0)
            for t in range(starts[g], starts[g + 1]):
                level = levels[order[t]]
                one = Sum(sums[level, 0], sums[level, 1])
                add_to(&one, weights[order[t]])
                sums[level, 0], sums[level, 1] = one.total, one.rest
            for t in range(starts[g], starts[g + 1]):
                # The first row of a level stands for it; those before make pairs.
                level = levels[order[t]]
                one = Sum(sums[level, 0], sums[level, 1])
                add_to(&pairs, result(&one) * result(&total))
                add_to(&total, result(&one))
                sums[level, 0] = sums[level, 1] = 0.0
            out[g] = result(&total) / result(&pairs) if result(&pairs) > 0.0 else 0.0


def moments(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    const double[::1] values,
    const double[:, ::1] costs,
    const double[::1] weights,
    double margin,
    bint higher,
    double[:, ::1] sums,
    double[:, ::1] out,
):
    """Sum cost * weight * (1, m, m²) over the partners of each row with m > 0.

    Parameters
    ----------
    scores : (n,)
    order : (n,)
    starts : (g + 1,)
    levels : (n,)
        Numbers below k.
    values : (k,) or (0,)
        The cost of a pair is the difference of its values; one if this is empty.
    costs : (k, k) or (0, 0)
        The cost of each pair of levels, unless this is empty.
    weights : (n,)
        Those of the partners count.
    margin : float
    higher : bool
        Whether rows are the higher ones of their pairs and partners the lower ones.
    sums : (k + 1, 7)
        Room for sums over levels; zero, and zero again at the end.
    out : (3, n)
    """
    cdef Py_ssize_t n = scores.shape[0], g, step, passed, row, other, i
    cdef double m, now
    cdef double[3] total
    cdef Group group
    cdef Pairs pairs = pairs_of(scores, order, starts, levels, values, costs, sums, 3)
    pairs.higher = higher
    if weights.shape[0] != n or out.shape[0] != 3 or out.shape[1] != n:
        raise ValueError(
            f"{n} scores, but {weights.shape[0]} weights and results of shape "
            f"({out.shape[0]}, {out.shape[1]})."
        )
    if n == 0:
        return
    with nogil:
        for g in range(starts.shape[0] - 1):
            group, passed = group_of(scores, order, starts[g], starts[g + 1], higher), 0
            for step in range(group.size):
                row = row_at(&group, step)
                now = -group.sign * scores[row]
                other = next_partner(&group, scores[row], margin, &passed, &m)
                while other >= 0:
                    total[0] = weights[other]
                    total[1] = total[0] * m
                    total[2] = total[1] * m
                    put(&pairs, levels[other], total, 3, now)
                    other = next_partner(&group, scores[row], margin, &passed, &m)
                get(&pairs, levels[row], total, 3, now)
                for i in range(3):
                    out[i, row] = total[i]
            for step in range(group.size):
                clear(&pairs, levels[group.order[step]])


def slope(
    const double[::1] scores,
    const double[::1] dscores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    const double[::1] values,
    const double[:, ::1] costs,
    const double[::1] weights,
    const double[::1] factors,
    double margin,
    double[:, ::1] sums,
):
    """Return the sums of m dm and dm² over all pairs with m > 0.

    Parameters that are not named here are those of ``moments``.

    Parameters
    ----------
    dscores : (n,)
        Pairs have dm = dscores_i - dscores_j.
    factors : (n,)
        What pairs are multiplied by, by their lower rows.
    sums : (k + 1, 11)

    Returns
    -------
    slope, curvature : float
    """
    cdef Py_ssize_t n = scores.shape[0], g, step, passed, row, other
    cdef double first = 0.0, second = 0.0, m, d
    cdef double[5] total
    cdef Group group
    cdef Pairs pairs = pairs_of(scores, order, starts, levels, values, costs, sums, 5)
    if dscores.shape[0] != n or weights.shape[0] != n or factors.shape[0] != n:
        raise ValueError(
            f"{n} scores, but {dscores.shape[0]} directions, {weights.shape[0]} "
            f"weights and {factors.shape[0]} factors."
        )
    if n == 0:
        return first, second
    with nogil:
        for g in range(starts.shape[0] - 1):
            group, passed = group_of(scores, order, starts[g], starts[g + 1], False), 0
            for step in range(group.size):
                row = row_at(&group, step)
                other = next_partner(&group, scores[row], margin, &passed, &m)
                while other >= 0:
                    # A partner adds 1, m, d, m d and d², times its weight.
                    total[0] = weights[other]
                    total[1] = total[0] * m
                    total[2] = total[0] * dscores[other]
                    total[3] = total[1] * dscores[other]
                    total[4] = total[2] * dscores[other]
                    put(&pairs, levels[other], total, 5, scores[row])
                    other = next_partner(&group, scores[row], margin, &passed, &m)
                get(&pairs, levels[row], total, 5, scores[row])
                d = dscores[row]
                first += factors[row] * (d * total[1] - total[3])
                second += factors[row] * (d * (d * total[0] - 2.0 * total[2]) + total[4])
            for step in range(group.size):
                clear(&pairs, levels[group.order[step]])
    return first, second
