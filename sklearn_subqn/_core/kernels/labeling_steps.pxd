"""Steps of dual ascent along one sequence of a chain, for the structured hinge.

The dual variables of sequence i are shares of labelings y, which sum to one: w = -sum_i
steps_i sum_y share_y phi_y, with phi_y = rate_y F_i (y - truth_i) for its features F_i.
With cost_y wrong labels it is rate_y = 1, or cost_y where slacks are rescaled. The dual,
in units of the sequence's weight, has the slope

    g_y = cost_y + <phi_y, w>

along the share of y, zero for the true labels. Of each sequence those labelings are kept
that once violated their margin most (Viterbi 1967; Tsochantaridis et al. 2005), as
sparse vectors phi_y. A step moves a share from the one with the least slope that has any
to the one with the largest, exactly far enough: pairwise Frank-Wolfe steps
(Lacoste-Julien & Jaggi 2015) in blocks (Lacoste-Julien, Jaggi, Schmidt & Pletscher 2013;
with kept labelings Osokin et al. 2016). They need neither scores nor inference, so that
most epochs are over labelings kept. Products of the vectors of a sequence are kept too:
with them a step changes slopes without the vectors, which a visit reads once.
"""

from .chain_features cimport Parameters, soft
from .labelings cimport Block, Labeling, Visit
from .rows cimport prefetch

# A visit without inference takes at most five steps. Five cache lines of a labeling are
# fetched ahead; the processor then goes on by itself.
cdef enum:
    MOST_STEPS = 5
    LINES = 5


cdef inline void _fetch(const Labeling* y) noexcept nogil:
    """Have the beginning of a labeling, or of NULL, come into the cache."""
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
    """Return the products of the vectors of a sequence with that of one labeling."""
    return block.products + y.slot * block.n_slots


cdef inline void _move(Visit* v, const Labeling* y, double share) noexcept nogil:
    """Move w by some more share of a labeling."""
    cdef Py_ssize_t j
    cdef double* w = v.p.w
    share *= v.step
    for j in range(y.size):
        w[y.places[j]] -= share * y.values[j]


cdef inline void shift(Visit* v, Labeling* y, double share) noexcept nogil:
    """Give a labeling some more share, and move w."""
    y.share += share
    _move(v, y, share)


cdef inline void step_towards(
    Visit* v, const Block* block, Labeling* to
) noexcept nogil:
    """Take shares from all labelings in proportion, and give them to one, exactly."""
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
    """Move shares between the labelings kept of a sequence; return the gap there was.

    That is among the labelings kept.
    """
    cdef Py_ssize_t n
    cdef double high, low, c, share, most, gap = 0.0, mean = 0.0, true_share = 1.0
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
        most = true_share if away == NULL else away.share
        share = (high - low) / c if high - low < most * c else most
        if to == NULL:
            true_share += share
        else:
            to.share += share
            to.change += share
        # A labeling that goes has no share left, to the last digit.
        if away == NULL:
            true_share = true_share - share if share < most else 0.0
        else:
            away.share = away.share - share if share < most else 0.0
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
    """Move w by what the shares changed."""
    cdef Labeling* y = block.first
    while y != NULL:
        if y.change != 0.0:
            _move(v, y, y.change)
            y.change = 0.0
        y = y.next
