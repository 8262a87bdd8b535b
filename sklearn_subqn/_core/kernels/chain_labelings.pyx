"""Dual ascent over the sequences of chains, for the structured hinge.

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

Arrays of features are those of ``chain_ascent``; parameters of transitions follow those
of pairs in ``w``.
"""

from .chain_features cimport (
    Features,
    Parameters,
    check_features,
    gather,
    set_patterns,
    soft,
    write_scores,
)
from .lattice cimport (
    Violations,
    close_violations,
    most_violated,
    open_violations,
    padded,
)
from .rows cimport allocate, prefetch
from .standard cimport free, malloc, memcpy, memset

# Steps at most at a visit without inference; visits with it after which a labeling that
# has no share goes. So many lines of the cache of a labeling are fetched ahead; the
# processor then goes on by itself.
cdef enum:
    MOST_STEPS = 5
    MOST_IDLE = 10
    LINES = 5


cdef struct Labeling:
    Labeling* next
    double share
    double cost  # number of wrong labels
    double rate
    double square  # of phi
    double slope
    double change  # of the share, not in w yet
    Py_ssize_t slot
    Py_ssize_t idle
    Py_ssize_t n_bytes
    Py_ssize_t size
    double* values  # (size,): phi
    int* places  # (size,): of its parameters
    unsigned short* labels  # (L,)


cdef struct Block:
    # The labelings kept of a sequence, and the products of their vectors by slots.
    Labeling* first
    Py_ssize_t n_slots
    double* products  # (n_slots, n_slots)


cdef struct Visit:
    Parameters p
    Features features
    double step
    Py_ssize_t n_bytes  # what labelings took in addition
    double* scratch  # (n_params,), of zeros
    # Room for inference and for new labelings.
    double* z
    double* T
    Py_ssize_t* worst
    int* touched
    const Py_ssize_t* truth
    const int* of_pairs
    const double* ends
    Violations violations


cdef class Labelings:
    """The labelings kept of n sequences, with their shares; at first the true ones."""

    cdef Block* blocks
    cdef Py_ssize_t n
    cdef readonly Py_ssize_t n_bytes  # what they take

    def __cinit__(self, Py_ssize_t n):
        self.n = n
        self.n_bytes = 0
        self.blocks = <Block*> allocate(max(n, 1) * sizeof(Block))
        memset(self.blocks, 0, n * sizeof(Block))

    def __dealloc__(self):
        if self.blocks != NULL:
            self.clear()
            free(self.blocks)

    cpdef clear(self):
        """Go back to the true labels."""
        cdef Py_ssize_t i
        cdef Block* block
        cdef Labeling* y
        for i in range(self.n):
            block = self.blocks + i
            while block.first != NULL:
                y = block.first
                block.first = y.next
                free(y)
            free(block.products)
            block.products = NULL
            block.n_slots = 0
        self.n_bytes = 0

    def write(
        self,
        const Py_ssize_t[::1] starts,
        const Py_ssize_t[::1] targets,
        const double[::1] weights,
        double[:, ::1] nodes,
        double[:, ::1] pairs,
        double[::1] costs,
    ):
        """Write the dual: u of labels of tokens, (T, k), and of pairs; mean costs.

        ``nodes`` and ``pairs`` of shape (k, k) are of zeros.
        """
        cdef Py_ssize_t i, t, start, length
        cdef double share
        cdef Labeling* y
        cdef const Py_ssize_t* truth
        self._check(starts, targets, weights.shape[0])
        if nodes.shape[0] != targets.shape[0] or costs.shape[0] != self.n:
            raise ValueError("arrays of tokens or sequences differ in length.")
        with nogil:
            for i in range(self.n):
                start, length = starts[i], starts[i + 1] - starts[i]
                truth = &targets[start]
                costs[i] = 0.0
                y = self.blocks[i].first
                while y != NULL:
                    costs[i] += y.share * y.cost
                    share = weights[i] * y.share * y.rate
                    if share > 0.0:
                        for t in range(length):
                            if y.labels[t] != truth[t]:
                                nodes[start + t, y.labels[t]] += share
                                nodes[start + t, truth[t]] -= share
                            if t > 0:
                                pairs[y.labels[t - 1], y.labels[t]] += share
                                pairs[truth[t - 1], truth[t]] -= share
                    y = y.next

    cdef int _check(
        self,
        const Py_ssize_t[::1] starts,
        const Py_ssize_t[::1] targets,
        Py_ssize_t n,
    ) except -1:
        if starts.shape[0] != self.n + 1 or n != self.n:
            raise ValueError("arrays of sequences differ in length.")
        if targets.shape[0] != starts[self.n]:
            raise ValueError("arrays of tokens differ in length.")
        return 0


cdef inline Labeling* _of(
    Visit* v, Labeling* first, const Py_ssize_t* labels
) noexcept nogil:
    """Return the labeling among those kept, or NULL."""
    cdef Py_ssize_t t
    while first != NULL:
        t = 0
        while t < v.features.length and first.labels[t] == labels[t]:
            t += 1
        if t == v.features.length:
            return first
        first = first.next
    return NULL


cdef inline Py_ssize_t _place(Visit* v, Py_ssize_t feature, Py_ssize_t label) noexcept nogil:
    """Return where the parameter of a feature and a label is, -1 if there is none."""
    cdef Parameters* p = &v.p
    cdef Py_ssize_t q
    if p.stride:
        q = feature * p.stride + label
        return q if p.mask[q >> 2] >> (q & 3) & 1 else -1
    for q in range(p.ptr[feature], p.ptr[feature + 1]):
        if p.labels[q] == label:
            return q
    return -1


cdef inline Py_ssize_t _add(
    Visit* v, Py_ssize_t place, double x, Py_ssize_t size
) noexcept nogil:
    """Add x to a place of the scratch vector; return how many were touched."""
    if place < 0 or x == 0.0:
        return size
    # What has become zero is touched again, and dropped once.
    if v.scratch[place] == 0.0:
        v.touched[size] = <int> place
        size += 1
    v.scratch[place] += x
    return size


cdef inline Labeling* _new(
    Visit* v, const Py_ssize_t* labels, bint slack, Py_ssize_t n_pairs
) noexcept nogil:
    """Return a labeling with its vector, NULL without room for it."""
    cdef Features* f = &v.features
    cdef Py_ssize_t k = v.p.k, t, j, size = 0, kept = 0, n_wrong = 0, feature, place
    cdef Py_ssize_t n_bytes
    cdef double x, rate
    cdef Labeling* y
    cdef const Py_ssize_t* truth = v.truth
    for t in range(f.length):
        if labels[t] != truth[t]:
            n_wrong += 1
            for j in range(f.indptr[t], f.indptr[t + 1]):
                feature = f.own[f.local[j]]
                x = 1.0 if f.data == NULL else f.data[j]
                size = _add(v, _place(v, feature, labels[t]), x, size)
                size = _add(v, _place(v, feature, truth[t]), -x, size)
        if t > 0 and (labels[t] != truth[t] or labels[t - 1] != truth[t - 1]):
            place = v.of_pairs[labels[t - 1] * k + labels[t]]
            size = _add(v, n_pairs + place if place >= 0 else -1, 1.0, size)
            place = v.of_pairs[truth[t - 1] * k + truth[t]]
            size = _add(v, n_pairs + place if place >= 0 else -1, -1.0, size)
    n_bytes = (
        sizeof(Labeling) + size * (sizeof(double) + sizeof(int))
        + f.length * sizeof(unsigned short)
    )
    y = <Labeling*> malloc(n_bytes)
    if y != NULL:
        y.n_bytes = n_bytes
        rate = n_wrong if slack else 1.0
        y.next = NULL
        y.share = y.square = 0.0
        y.cost, y.rate, y.idle = n_wrong, rate, 0
        y.values = <double*> (y + 1)
        y.places = <int*> (y.values + size)
        y.labels = <unsigned short*> (y.places + size)
        for t in range(f.length):
            y.labels[t] = <unsigned short> labels[t]
    for j in range(size):
        place = v.touched[j]
        x = v.scratch[place]
        v.scratch[place] = 0.0
        if y != NULL and x != 0.0:
            y.places[kept] = <int> place
            y.values[kept] = rate * x
            y.square += rate * x * rate * x
            kept += 1
    if y != NULL:
        y.size = kept
    return y


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


cdef inline bint _take_slot(Visit* v, Block* block, Labeling* y) noexcept nogil:
    """Put a labeling first, with its products; return False without room for them."""
    cdef Py_ssize_t j, i, n = block.n_slots, slot = 0, size
    cdef double product
    cdef double* products
    cdef Labeling* x
    # Slots of labelings that went are taken first.
    while slot < n:
        x = block.first
        while x != NULL and x.slot != slot:
            x = x.next
        if x == NULL:
            break
        slot += 1
    if slot == n:
        size = 2 * n if n else 4
        products = <double*> malloc(size * size * sizeof(double))
        if products == NULL:
            return False
        for i in range(n):
            memcpy(products + i * size, block.products + i * n, n * sizeof(double))
        free(block.products)
        block.products, block.n_slots = products, size
        v.n_bytes += (size * size - n * n) * sizeof(double)
        n = size
    y.slot = slot
    for j in range(y.size):
        v.scratch[y.places[j]] = y.values[j]
    products = block.products
    products[slot * n + slot] = y.square
    x = block.first
    while x != NULL:
        product = 0.0
        for j in range(x.size):
            product += v.scratch[x.places[j]] * x.values[j]
        products[slot * n + x.slot] = products[x.slot * n + slot] = product
        x = x.next
    for j in range(y.size):
        v.scratch[y.places[j]] = 0.0
    y.next = block.first
    block.first = y
    return True


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


cdef inline void _shift(Visit* v, Labeling* y, double share) noexcept nogil:
    """Give a labeling some more share, and move w."""
    y.share += share
    _move(v, y, share)


cdef inline void _step_towards(
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
            _shift(v, y, share)
            if gamma == 1.0:
                y.share = 1.0 if y == to else 0.0
        y = y.next


cdef inline double _steps(Visit* v, const Block* block) noexcept nogil:
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
        # What goes has none left, to the last digit.
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


def sweep(
    Labelings labelings,
    const double[::1] data,
    const int[::1] local,
    const Py_ssize_t[::1] indptr,
    const Py_ssize_t[::1] starts,
    const int[::1] own,
    const Py_ssize_t[::1] own_ptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    const unsigned char[::1] mask,
    Py_ssize_t stride,
    double threshold,
    const double[::1] steps,
    const Py_ssize_t[::1] targets,
    double[::1] w,
    double[::1] scratch,
    const double[:, ::1] pattern,
    const int[::1] of_pairs,
    const double[:, ::1] ends,
    bint slack,
    const Py_ssize_t[::1] order,
    bint infer,
    const Py_ssize_t[::1] given,
    double[::1] gaps,
):
    """Visit one sequence after the other, in the given order.

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Weights of sequences over alpha; zero to leave one out.
    targets : ndarray of shape (T,)
        The true labels.
    w : ndarray
        Parameters of pairs and of m transitions, changed in place.
    scratch : ndarray of the shape of w
        Room for own use, of zeros.
    pattern : ndarray of shape (k, k)
        Minus infinity where a transition is forbidden, else zero.
    of_pairs : ndarray of shape (k * k,)
        Which of the m transitions with a parameter that of two labels is, or -1.
    ends : ndarray of shape (2, k)
        What is added to the scores of first and last tokens: zero or minus infinity.
    slack : bool
        Whether the hinge rescales slacks.
    infer : bool
        Whether to look for the most violated labeling before the steps.
    given : ndarray of shape (T,) or None
        Labels that get the whole share in place of all steps.
    gaps : ndarray of shape (n,)
        Receives, of visits without inference, how far sequences were from their best
        among the labelings kept.
    """
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), n_pairs, o, i, j, t
    cdef Py_ssize_t longest = 1, most = 1, entries = 1
    cdef bint failed = False
    cdef double* room
    cdef Labeling* y
    cdef Block* block
    cdef Visit v
    check_features(
        local, indptr, starts, own, own_ptr, ptr, labels, mask, w, stride, k, order
    )
    labelings._check(starts, targets, steps.shape[0])
    n_pairs = w.shape[0]
    for j in range(k * k):
        n_pairs -= of_pairs[j] >= 0
    if pattern.shape[1] != k or of_pairs.shape[0] != k * k:
        raise ValueError("transitions differ in number.")
    if ends.shape[0] != 2 or ends.shape[1] != k:
        raise ValueError("labels and what sequences may begin and end with differ.")
    if scratch.shape[0] != w.shape[0] or w.shape[0] > 2**31 - 1 or n_pairs < 0:
        raise ValueError("parameters differ in number, or are too many.")
    if gaps.shape[0] != steps.shape[0]:
        raise ValueError("arrays of sequences differ in length.")
    if given is not None and given.shape[0] != targets.shape[0]:
        raise ValueError("arrays of tokens differ in length.")
    for o in range(order.shape[0]):
        i = order[o]
        longest = max(longest, starts[i + 1] - starts[i])
        most = max(most, own_ptr[i + 1] - own_ptr[i])
        entries = max(entries, indptr[starts[i + 1]] - indptr[starts[i]])
    v.p.k, v.p.width, v.p.stride = k, width, stride
    v.p.ptr = &ptr[0]
    v.p.labels = &labels[0] if labels.shape[0] else NULL
    v.p.mask = &mask[0] if mask.shape[0] else NULL
    v.p.w = &w[0] if w.shape[0] else NULL
    v.p.threshold = threshold
    set_patterns(&v.p)
    v.features.data = &data[0] if data.shape[0] else NULL
    v.features.local = &local[0] if local.shape[0] else NULL
    v.scratch = &scratch[0] if scratch.shape[0] else NULL
    v.n_bytes = 0
    v.of_pairs, v.ends = &of_pairs[0], &ends[0, 0]
    room = <double*> allocate(
        (longest * (width + 1) + k * k + most * width) * sizeof(double)
        + 2 * (entries + longest) * sizeof(int)
    )
    v.z = room
    v.T = v.z + longest * width
    v.features.params = v.T + k * k
    v.worst = <Py_ssize_t*> (v.features.params + most * width)
    v.touched = <int*> (v.worst + longest)
    try:
        open_violations(&v.violations, k, longest, slack)
    except MemoryError:
        free(room)
        raise
    with nogil:
        for o in range(order.shape[0]):
            i = order[o]
            if steps[i] == 0.0:
                continue
            v.features.length = starts[i + 1] - starts[i]
            v.step = steps[i]
            block = labelings.blocks + i
            v.truth = &targets[starts[i]]
            v.features.indptr = &indptr[starts[i]]
            v.features.size = own_ptr[i + 1] - own_ptr[i]
            v.features.own = &own[0] + own_ptr[i]
            if given is not None:
                memcpy(
                    v.worst, &given[starts[i]],
                    v.features.length * sizeof(Py_ssize_t),
                )
            elif infer:
                labelings.n_bytes -= _drop_idle(&block.first)
                _find_worst(&v, pattern, n_pairs)
            if given is not None or infer:
                t = 0
                while t < v.features.length and v.worst[t] == v.truth[t]:
                    t += 1
                if t < v.features.length and _of(&v, block.first, v.worst) == NULL:
                    y = _new(&v, v.worst, slack, n_pairs)
                    if y == NULL:
                        failed = True
                        break
                    if not _take_slot(&v, block, y):
                        free(y)
                        failed = True
                        break
                    v.n_bytes += y.n_bytes
            if given is not None:
                y = _of(&v, block.first, v.worst)
                if y != NULL:
                    _shift(&v, y, 1.0)
            elif infer:
                y = _of(&v, block.first, v.worst)
                _step_towards(&v, block, y)
            else:
                gaps[i] = _steps(&v, block)
        close_violations(&v.violations)
        free(room)
    labelings.n_bytes += v.n_bytes
    if failed:
        raise MemoryError("no room for the labelings of a sequence.")


cdef inline Py_ssize_t _drop_idle(Labeling** link) noexcept nogil:
    """Count visits of labelings without a share, and drop those that had none long.

    Return how many bytes these took.
    """
    cdef Labeling* y = link[0]
    cdef Py_ssize_t n_bytes = 0
    while y != NULL:
        y.idle = y.idle + 1 if y.share == 0.0 else 0
        if y.idle > MOST_IDLE:
            link[0] = y.next
            n_bytes += y.n_bytes
            free(y)
        else:
            link = &y.next
        y = link[0]
    return n_bytes


cdef void _find_worst(
    Visit* v, const double[:, ::1] pattern, Py_ssize_t n_pairs
) noexcept nogil:
    """Find the labeling that violates its margin most."""
    cdef Py_ssize_t k = v.p.k, width = v.p.width, length = v.features.length, j, t
    gather(&v.features, &v.p)
    write_scores(&v.features, &v.p, v.z)
    for j in range(k * k):
        v.T[j] = pattern[j // k, j % k]
        if v.of_pairs[j] >= 0:
            v.T[j] += soft(v.p.w[n_pairs + v.of_pairs[j]], v.p.threshold)
    for t in range(length):
        for j in range(k):
            v.z[t * k + j] = v.z[t * width + j]
    for j in range(k):
        v.z[j] += v.ends[j]
        v.z[(length - 1) * k + j] += v.ends[k + j]
    most_violated(&v.violations, v.T, k, v.z, length, v.truth, v.worst)
