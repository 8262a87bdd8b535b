"""Sums over pairs of rows of unequal level within groups of rows.

Group g has the rows ``order[starts[g]:starts[g + 1]]``, in ascending order of scores. A
pair of a row i of lower level and a row j of higher level has the violation m = margin
+ z_i - z_j, if positive. For each side of the pairs, rows are visited in the order of
increasing violations, see ``partners.pxd``; ``level_sums.pxd`` has the sums over all
levels below, or above, the level of a row.
"""

from .level_sums cimport Pairs, check, clear, get, pairs_of, put
from .partners cimport Group, group_of, next_partner, row_at
from .rows cimport same_length
from .sums cimport Sum, add_to, result


def shares(
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const Py_ssize_t[::1] levels,
    const double[::1] weights,
    double[:, ::1] sums,
    double[::1] out,
):
    """Set ``out`` to the weight of each group divided by the weight of its pairs.

    The weight of a pair is the product of its rows' weights. The result is zero for
    groups without pairs.

    Parameters
    ----------
    order : (n,)
    starts : (g + 1,)
    levels : (n,)
        Numbers below k.
    weights : (n,)
    sums : (k + 1, 2)
        Workspace of zeros for sums over levels; zero again at the end.
    out : (g,)
    """
    cdef Py_ssize_t g, t, level
    cdef Sum pairs, total, one
    check(weights, order, starts, levels, sums)
    same_length(2, sums.shape[1])
    same_length(order.shape[0], weights.shape[0])
    same_length(starts.shape[0] - 1, out.shape[0])
    with nogil:
        for g in range(out.shape[0]):
            pairs = total = Sum(0.0, 0.0)
            for t in range(starts[g], starts[g + 1]):
                level = levels[order[t]]
                one = Sum(sums[level, 0], sums[level, 1])
                add_to(&one, weights[order[t]])
                sums[level, 0], sums[level, 1] = one.total, one.rest
            for t in range(starts[g], starts[g + 1]):
                # The first row of a level represents the level, which forms pairs with
                # all previous levels.
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
        The cost of a pair is the difference of its levels' values; empty for cost one.
    costs : (k, k) or (0, 0)
        The cost of each pair of levels, unless empty.
    weights : (n,)
        Weights of the rows as partners.
    margin : float
    higher : bool
        Whether each row is the higher one of its pairs, and partners are the lower
        ones.
    sums : (k + 1, 7)
        Workspace of zeros for sums over levels; zero again at the end.
    out : (3, n)
    """
    cdef Py_ssize_t n = scores.shape[0], g, step, passed, row, other, i
    cdef double m, now
    cdef double[3] total
    cdef Group group
    cdef Pairs pairs = pairs_of(scores, order, starts, levels, values, costs, sums, 3)
    pairs.higher = higher
    same_length(n, weights.shape[0], out.shape[1])
    same_length(3, out.shape[0])
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
    """Return the weighted sums of m dm and dm² over all pairs with m > 0.

    All other parameters are described in ``moments``.

    Parameters
    ----------
    dscores : (n,)
        Change of the scores; a pair has dm = dscores_i - dscores_j.
    factors : (n,)
        Factor of all pairs with this lower row.
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
    same_length(n, dscores.shape[0], weights.shape[0], factors.shape[0])
    if n == 0:
        return first, second
    with nogil:
        for g in range(starts.shape[0] - 1):
            group, passed = group_of(scores, order, starts[g], starts[g + 1], False), 0
            for step in range(group.size):
                row = row_at(&group, step)
                other = next_partner(&group, scores[row], margin, &passed, &m)
                while other >= 0:
                    # A partner contributes 1, m, d, m d and d², times its weight.
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
