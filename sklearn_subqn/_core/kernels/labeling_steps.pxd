"""Dual ascent steps for one sequence of a chain, for the structured hinge.

The dual variables of sequence i are convex weights share_y of labelings y. The primal
parameters are w = -sum_i steps_i sum_y share_y phi_y, with phi_y = rate_y F_i (y -
truth_i) for the features F_i. A labeling with cost_y wrong labels has rate_y = 1, or
rate_y = cost_y with slack rescaling. The derivative of the dual objective, divided by
the sequence's weight, is

    g_y = cost_y + <phi_y, w>

along share_y, and zero for the true labels. The working set of a sequence has the
labelings that were most violated in some visit (Viterbi 1967; Tsochantaridis et al.
2005), as sparse vectors phi_y. A step moves weight, with an exact line search, from the
labeling with the smallest slope and a positive weight to the labeling with the largest
slope: a pairwise Frank-Wolfe step (Lacoste-Julien & Jaggi 2015) on one block
(Lacoste-Julien, Jaggi, Schmidt & Pletscher 2013; with working sets Osokin et al. 2016).
These steps need neither scores nor inference, so most epochs use the working sets only.
The Gram matrix of a sequence's vectors is stored as well. It updates the slopes after a
step, so a visit reads each vector only once.
"""

from .chain_features cimport Parameters, soft
from .labelings cimport Block, Labeling, Visit
from .rows cimport prefetch

# Maximum number of steps of a visit without inference, and number of cache lines that
# are prefetched for a labeling; the hardware prefetcher then continues.
cdef enum:
    MOST_STEPS = 5
    LINES = 5


cdef inline void _fetch(const Labeling* y) noexcept nogil:
    """Prefetch the beginning of a labeling, unless it is NULL."""
    cdef Py_ssize_t line
    if y != NULL:
        for line in range(LINES):
            prefetch(<const char*> y + 64 * line)


cdef inline void _find_slope(Labeling* y, const Parameters* p) noexcept nogil:
    cdef Py_ssize_t j
    cdef double a = 0.0, b = 0.0
    if p.threshold > 0.0:
        for j in range(y.size):
            a += y.values[j] * soft(p.w[y.places[j]], p.threshold)
    else:
        for j in range(0, y.size - 1, 2):
            a += y.values[j] * p.w[y.places[j]]
            b += y.values[j + 1] * p.w[y.places[j + 1]]
        if y.size & 1:
            a += y.values[y.size - 1] * p.w[y.places[y.size - 1]]
    y.slope = y.cost + (a + b)


cdef inline const double* _products_of(
    const Block* block, const Labeling* y
) noexcept nogil:
    """Return the row of the Gram matrix for a labeling."""
    return block.products + y.slot * block.n_slots


cdef inline void _move(Visit* v, const Labeling* y, double share) noexcept nogil:
    """Update w for an increase of a labeling's weight by ``share``."""
    cdef Py_ssize_t j
    cdef double* w = v.p.w
    share *= v.step
    for j in range(y.size):
        w[y.places[j]] -= share * y.values[j]


cdef inline void shift(Visit* v, Labeling* y, double share) noexcept nogil:
    """Increase the weight of a labeling, and update w."""
    y.share += share
    _move(v, y, share)


cdef inline void step_towards(
    Visit* v, const Block* block, Labeling* to
) noexcept nogil:
    """Take a Frank-Wolfe step towards one labeling, with an exact line search."""
    cdef double gap, c = 0.0, gamma, share, other
    cdef const double* products
    cdef Labeling* x
    cdef Labeling* y = block.first
    if to == NULL:
        gap = 0.0
    else:
        _find_slope(to, &v.p)
        gap = to.slope
    while y != NULL:
        if y != to and y.share > 0.0:
            _find_slope(y, &v.p)
        gap -= y.share * y.slope if y.share > 0.0 else 0.0
        share = (1.0 if y == to else 0.0) - y.share
        if share != 0.0:
            products = _products_of(block, y)
            x = block.first
            while x != NULL:
                other = (1.0 if x == to else 0.0) - x.share
                c += share * other * products[x.slot]
                x = x.next
        y = y.next
    if not gap > 0.0:
        return
    c *= v.step
    gamma = gap / c if gap < c else 1.0
    y = block.first
    while y != NULL:
        share = gamma * ((1.0 if y == to else 0.0) - y.share)
        if share != 0.0:
            shift(v, y, share)
            if gamma == 1.0:
                y.share = 1.0 if y == to else 0.0
        y = y.next


cdef inline double take_steps(Visit* v, const Block* block) noexcept nogil:
    """Take pairwise steps within the working set of a sequence; return its gap before.

    The gap is relative to the optimum over the working set.
    """
    cdef Py_ssize_t n
    cdef double high, low, c, share, max_share, gap = 0.0, mean = 0.0, true_share = 1.0
    cdef Labeling* y = block.first
    cdef Labeling* to
    cdef Labeling* away
    cdef const double* of_to
    cdef const double* of_away
    while y != NULL:
        _fetch(y.next)
        _find_slope(y, &v.p)
        y.change = 0.0
        true_share -= y.share
        y = y.next
    true_share = max(true_share, 0.0)
    for n in range(MOST_STEPS):
        # The true labels have slope zero.
        high = 0.0
        low = 0.0 if true_share > 0.0 else 1e300
        to = away = NULL
        y = block.first
        while y != NULL:
            if y.slope > high:
                high, to = y.slope, y
            if y.share > 0.0 and y.slope < low:
                low, away = y.slope, y
            if n == 0:
                mean += y.share * y.slope
            y = y.next
        if n == 0:
            gap = max(high - mean, 0.0)
        if not high > low:
            break
        of_to = of_away = NULL
        c = 0.0
        if to != NULL:
            of_to = _products_of(block, to)
            c += of_to[to.slot]
        if away != NULL:
            of_away = _products_of(block, away)
            c += of_away[away.slot]
        if to != NULL and away != NULL:
            c -= 2.0 * of_to[away.slot]
        c *= v.step
        max_share = true_share if away == NULL else away.share
        share = (high - low) / c if high - low < max_share * c else max_share
        if to == NULL:
            true_share += share
        else:
            to.share += share
            to.change += share
        # A labeling that loses its whole weight gets exactly zero.
        if away == NULL:
            true_share = true_share - share if share < max_share else 0.0
        else:
            away.share = away.share - share if share < max_share else 0.0
            away.change -= share
        y = block.first
        if v.p.threshold > 0.0:
            _apply(v, block)
            while y != NULL:
                _find_slope(y, &v.p)
                y = y.next
            continue
        share *= v.step
        while y != NULL:
            if of_to != NULL:
                y.slope -= share * of_to[y.slot]
            if of_away != NULL:
                y.slope += share * of_away[y.slot]
            y = y.next
    _apply(v, block)
    return gap


cdef inline void _apply(Visit* v, const Block* block) noexcept nogil:
    """Update w for the pending changes of the weights."""
    cdef Labeling* y = block.first
    while y != NULL:
        if y.change != 0.0:
            _move(v, y, y.change)
            y.change = 0.0
        y = y.next
