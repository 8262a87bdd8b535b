"""Loss-augmented maximization over rankings within groups of rows.

Group g has the rows ``order[starts[g]:starts[g + 1]]``, in ascending order of scores.
"""

from .groups cimport check_groups
from .rows cimport same_length


def gather(
    const Py_ssize_t[::1] rows,
    const Py_ssize_t[::1] codes,
    const Py_ssize_t[::1] starts,
    Py_ssize_t[::1] out,
):
    """Sort ``rows`` of shape (n,) by group, keeping their order within a group.

    ``codes`` of shape (n,) has the group of each row, and ``starts`` of shape (g + 1,)
    the first place of each group in ``out`` of shape (n,).
    """
    cdef Py_ssize_t n = rows.shape[0], n_groups = starts.shape[0] - 1, i, g
    cdef Py_ssize_t[::1] ends = starts.copy()
    same_length(n, codes.shape[0], out.shape[0])
    with nogil:
        for i in range(n):
            g = codes[rows[i]] if 0 <= rows[i] < n else -1
            if not (0 <= g < n_groups and 0 <= ends[g] < starts[g + 1] <= n):
                with gil:
                    raise ValueError("Rows, codes and starts are inconsistent.")
            out[ends[g]] = rows[i]
            ends[g] += 1


def first_hit(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const unsigned char[::1] relevant,
    const double[::1] positions,
    const double[::1] ideals,
    double[::1] out,
    double[::1] lost,
):
    """Maximize <c, scores> minus the reciprocal rank over permutations.

    The reciprocal rank is 1 / rank of the first relevant row. For a given rank p of
    this row, the best permutation begins with the p - 1 best irrelevant rows and the
    best relevant row; all further rows follow in descending order of scores, by the
    rearrangement inequality. The time for a group of m rows is O(m²).

    Parameters
    ----------
    scores : (n,)
    order : (n,)
    starts : (g + 1,)
    relevant : (n,)
        1 for relevant rows, else 0. Groups without a relevant row are ranked by scores.
    positions : (n,)
        c, by rank within each group, non-increasing.
    ideals : (n,)
        Subtracted from c of each row, to reduce the rounding error of the sum.
    out : (n,)
        Receives c at the rank of each row in the maximizing permutation.
    lost : (g,)
        Receives one minus the reciprocal rank, or zero without relevant rows.
    """
    cdef Py_ssize_t n = scores.shape[0], a, b, g, t, p, best, n_others
    cdef double height, highest
    check(scores, order, starts, out)
    same_length(n, relevant.shape[0], positions.shape[0], ideals.shape[0])
    same_length(starts.shape[0] - 1, lost.shape[0])
    with nogil:
        for g in range(starts.shape[0] - 1):
            a, b = starts[g], starts[g + 1]
            n_others = 0
            for t in range(a, b):
                n_others += not relevant[order[t]]
            best, highest = 0, 0.0
            if n_others < b - a:
                for p in range(1, n_others + 2):
                    height = arrange(
                        scores, order, a, b, relevant, positions, ideals, p, out
                    )
                    height += (p - 1.0) / p
                    if best == 0 or height > highest:
                        best, highest = p, height
            arrange(scores, order, a, b, relevant, positions, ideals, best, out)
            lost[g] = (best - 1.0) / best if best > 0 else 0.0


def interleave(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const unsigned char[::1] relevant,
    const double[::1] discounts,
    bint first_only,
    const double[::1] margins,
    const double[::1] gains,
    double[:, ::1] room,
    Py_ssize_t[::1] choices,
    double[::1] out,
    double[:, ::1] heights,
):
    """Maximize the total cost of inverted pairs and lost gains over rankings.

    With b_p irrelevant rows above the p-th relevant row, the cost is the sum over p of
    ``margin * sum of (z_irrelevant - z_p)`` over these rows, plus the loss of ``gain *
    discount`` from rank p to rank p + b_p. By the rearrangement inequality, both kinds
    of rows can be sorted by descending scores. Then b is non-decreasing, and dynamic
    programming finds it in O(P N) for P relevant and N irrelevant rows.

    Parameters
    ----------
    scores : (n,)
    order : (n,)
    starts : (g + 1,)
    relevant : (n,)
        1 for relevant rows, else 0. Groups without relevant or without irrelevant rows
        are skipped.
    discounts : (n,)
        Discounts by rank within each group.
    first_only : bool
        Whether only the first relevant row has a gain.
    margins, gains : (g,)
    room : (2, 1 + largest group)
    choices : (largest P (N + 1),)
    out : (n,)
        A subgradient of the maxima is added.
    heights : (3, g)
        The maxima, the lost gains among their terms, and the sums of the gains at both
        ranks where these differ, are added.
    """
    cdef Py_ssize_t n = scores.shape[0], n_groups = starts.shape[0] - 1
    cdef Py_ssize_t a, b, g, t, p, row, above, best, best_before, hits, others
    cdef double total, highest, before, after
    cdef double[::1] values, best_others
    check(scores, order, starts, out)
    same_length(2, room.shape[0])
    values, best_others = room[0], room[1]
    same_length(n, relevant.shape[0], discounts.shape[0])
    same_length(3, heights.shape[0])
    same_length(n_groups, margins.shape[0], gains.shape[0], heights.shape[1])
    for g in range(n_groups):
        hits = 0
        for t in range(starts[g], starts[g + 1]):
            hits += relevant[order[t]] != 0
        others = starts[g + 1] - starts[g] - hits
        if others >= values.shape[0] or hits * (others + 1) > choices.shape[0]:
            raise ValueError("There is too little room for the largest group.")
    with nogil:
        for g in range(n_groups):
            a, b = starts[g], starts[g + 1]
            others = 0
            for t in range(b - 1, a - 1, -1):
                row = order[t]
                if not relevant[row]:
                    others += 1
                    best_others[others] = scores[row]
            if others == 0 or others == b - a:
                continue
            values[0] = 0.0
            for above in range(1, others + 1):
                values[above] = -1e300
            p = 0
            for t in range(b - 1, a - 1, -1):
                row = order[t]
                if not relevant[row]:
                    continue
                best, highest, total = 0, values[0], 0.0
                for above in range(others + 1):
                    if values[above] > highest:
                        best, highest = above, values[above]
                    choices[p * (others + 1) + above] = best
                    if above > 0:
                        total += best_others[above] - scores[row]
                    values[above] = highest + margins[g] * total
                    if p == 0 or not first_only:
                        values[above] += gains[g] * (
                            discounts[a + p] - discounts[a + p + above]
                        )
                p += 1
            best = 0
            for above in range(1, others + 1):
                if values[above] > values[best]:
                    best = above
            heights[0, g] += values[best]
            for t in range(a, b):
                row = order[t]
                if relevant[row]:
                    p -= 1
                    out[row] -= margins[g] * best
                    if best > 0 and (p == 0 or not first_only):
                        before, after = discounts[a + p], discounts[a + p + best]
                        heights[1, g] += gains[g] * (before - after)
                        heights[2, g] += gains[g] * (before + after)
                    best_before = choices[p * (others + 1) + best]
                    choices[p * (others + 1)] = best
                    best = best_before
            # Irrelevant rows from the lowest to the highest; hits - p relevant rows are
            # ranked below the current row.
            hits = p = b - a - others
            above = others
            for t in range(a, b):
                row = order[t]
                if not relevant[row]:
                    while p > 0 and choices[(p - 1) * (others + 1)] >= above:
                        p -= 1
                    out[row] += margins[g] * (hits - p)
                    above -= 1


cdef check(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    double[::1] out,
):
    """Raise ValueError unless rows and groups are consistent."""
    same_length(scores.shape[0], order.shape[0], out.shape[0])
    check_groups(order, starts)


cdef double arrange(
    const double[::1] scores,
    const Py_ssize_t[::1] order,
    Py_ssize_t a,
    Py_ssize_t b,
    const unsigned char[::1] relevant,
    const double[::1] positions,
    const double[::1] ideals,
    Py_ssize_t p,
    double[::1] out,
) noexcept nogil:
    """Write the best permutation whose first relevant row has rank p to ``out``.

    p = 0 ranks all rows by scores. Returns <c - ideals, scores>.
    """
    cdef Py_ssize_t t, row, place, others = 0, hits = 0
    cdef double total = 0.0
    for t in range(b - 1, a - 1, -1):
        row = order[t]
        if relevant[row]:
            hits += 1
        else:
            others += 1
        place = others + hits
        if p > 0:
            if not relevant[row] and others < p:
                place = others
            elif relevant[row] and hits == 1:
                place = p
            elif others < p:
                place = p - 1 + hits
            elif hits == 0:
                place += 1
        out[row] = positions[a + place - 1]
        total += (out[row] - ideals[row]) * scores[row]
    return total
