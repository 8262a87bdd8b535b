"""Losses of rankings within groups of rows.

The rows of group g are ``order[starts[g]:starts[g + 1]]``, by ascending scores.
"""

from .groups cimport check_groups


def gather(
    const Py_ssize_t[::1] rows,
    const Py_ssize_t[::1] codes,
    const Py_ssize_t[::1] starts,
    Py_ssize_t[::1] out,
):
    """Sort ``rows`` of shape (n,) by groups, without changing their order in a group.

    ``codes`` of shape (n,) has the group of each row, ``starts`` (g + 1,) where each
    group begins in ``out`` of shape (n,).
    """
    cdef Py_ssize_t n = rows.shape[0], n_groups = starts.shape[0] - 1, i, g
    cdef Py_ssize_t[::1] ends = starts.copy()
    if codes.shape[0] != n or out.shape[0] != n:
        raise ValueError(f"{n} rows, but {codes.shape[0]} codes, {out.shape[0]} places.")
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
    """Maximize <c, scores> - 1 / rank of the first relevant row over permutations.

    Where the first relevant row is to have rank p, the p - 1 best other rows come before
    it, it is the best relevant one, and all the rest follows by descending scores: by
    the rearrangement inequality no other permutation is better. The time for a group
    of m rows is O(m²).

    Parameters
    ----------
    scores : (n,)
    order : (n,)
    starts : (g + 1,)
    relevant : (n,)
        0 or 1. Groups without a relevant row are ranked by scores.
    positions : (n,)
        c, by rank within each group, non-increasing.
    ideals : (n,)
        What is subtracted from c of each row, so that less of the scores is summed.
    out : (n,)
        Becomes c of the rank of each row in the maximizing permutation.
    lost : (g,)
        Becomes 1 - 1 / rank of the first relevant row, or zero if there is none.
    """
    cdef Py_ssize_t n = scores.shape[0], a, b, g, t, p, best, n_others
    cdef double height, highest
    check(scores, order, starts, out)
    if not relevant.shape[0] == positions.shape[0] == ideals.shape[0] == n:
        raise ValueError(
            f"{n} scores, but {relevant.shape[0]} relevances, {positions.shape[0]} "
            f"positions and {ideals.shape[0]} ideals."
        )
    if lost.shape[0] != starts.shape[0] - 1:
        raise ValueError(f"Starts of groups must be one more than {lost.shape[0]}.")
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
    """Maximize over rankings what inverted pairs and lost gains cost together.

    With b_p the number of other rows above the p-th relevant one, the sum over p of
    ``margin * sum over these of (z_other - z_p)`` and of what of ``gain * discount``
    rank p + b_p has less than rank p. By the rearrangement inequality both kinds may be taken by descending scores; then b is
    non-decreasing, and is found by dynamic programming in O(P N) for P relevant and N
    other rows.

    Parameters
    ----------
    scores : (n,)
    order : (n,)
    starts : (g + 1,)
    relevant : (n,)
        0 or 1. Groups without relevant or without other rows are left out.
    discounts : (n,)
        By rank within each group.
    first_only : bool
        Whether the first relevant row only has a gain.
    margins, gains : (g,)
    room : (2, 1 + largest group)
    choices : (largest P (N + 1),)
    out : (n,)
        A subgradient of the maxima is added to it.
    heights : (3, g)
        To which are added the maxima, the lost gains among their terms, and the sums of
        the gains at both ranks where they differ.
    """
    cdef Py_ssize_t n = scores.shape[0], n_groups = starts.shape[0] - 1
    cdef Py_ssize_t a, b, g, t, p, row, above, best, best_before, hits, others
    cdef double total, highest, before, after
    cdef double[::1] values, best_others
    check(scores, order, starts, out)
    if room.shape[0] != 2:
        raise ValueError(f"There must be two rows of room, got {room.shape[0]}.")
    values, best_others = room[0], room[1]
    if relevant.shape[0] != n or discounts.shape[0] != n:
        raise ValueError(
            f"{n} scores, but {relevant.shape[0]} relevances and {discounts.shape[0]} "
            "discounts."
        )
    if heights.shape[0] != 3:
        raise ValueError(f"There must be three rows of heights, got {heights.shape[0]}.")
    if not margins.shape[0] == gains.shape[0] == heights.shape[1] == n_groups:
        raise ValueError(
            f"{n_groups} groups, but {margins.shape[0]} margins, {gains.shape[0]} gains "
            f"and {heights.shape[1]} heights."
        )
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
            # The other rows come in turn, the last first: hits - p relevant rows have
            # the row above them.
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
    cdef Py_ssize_t n = scores.shape[0]
    if order.shape[0] != n or out.shape[0] != n:
        raise ValueError(
            f"{n} scores, but {order.shape[0]} places and {out.shape[0]} results."
        )
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
    """Set ``out`` for the best permutation with its first relevant row at rank p.

    p = 0 stands for no condition. Returns <c - ideals, scores>.
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
