"""Sums over the labelings of a chain: what the kernels of chains share.

A sequence of L tokens has emissions z of shape (L, k) and transitions T of shape (k, k),
minus infinity where a label or a transition is forbidden. A labeling y scores
sum_t z[t, y_t] + sum_{t > 0} T[y_{t-1}, y_t].

Sums are made with exponentials, scaled token by token (Rabiner 1989), where no sum can
lose what matters to underflow, elsewhere with logarithms. They can lose nothing if any
label can follow any other within few tokens: then what has become too small for a
number stays small beside what reaches the same label from the likeliest label.

Rows of the lattice are padded to a width that is a multiple of four, by zeros in place
of exponentials: loops then have no rests, and their sums several terms under way.
"""

from .exponentials cimport exponentials
from .padded_rows cimport (
    add_four_rows,
    add_scaled_row,
    largest_of_row,
    multiply_row,
    multiply_rows,
    row_times,
    scale_row,
)
from .rows cimport allocate
from .standard cimport INFINITY, ceil, exp, free, log, memcpy, memset

# Exponents of factors that do not underflow together, nor do their squares. Powers of
# the pattern of transitions are tried up to the second number.
cdef enum:
    SAFE_EXPONENT = 250
    MOST_STEPS = 4


cdef struct Lattice:
    Py_ssize_t k
    Py_ssize_t width  # k padded
    Py_ssize_t steps  # within which any label can follow any other, 0 if none are
    bint in_logs  # whether the last sums were made with logarithms
    double top  # the largest transition, and how far the others are below at most
    double spread
    double* transitions  # (k, width)
    double* into  # exponentials of T - top, (k, width), and their transpose
    double* out_of
    double* factors  # (L, width): exponentials of emissions, largest of a token is one
    double* prefix  # (L, width): distribution of the label given the tokens up to it
    double* coming  # (L, width): see ``backward``
    double* nodes  # (L, width): probabilities of labels
    double* pairs  # (width, width): of pairs of labels of adjacent tokens, summed
    double* suffix  # (width,)
    double* ones  # (width,)
    double* highs  # (L,): the largest emission of each token
    double rest  # what ``forward`` returned without their sum


cdef inline Py_ssize_t padded(Py_ssize_t k) noexcept nogil:
    return (k + 3) // 4 * 4


cdef inline int open_lattice(
    Lattice* lattice, Py_ssize_t k, Py_ssize_t longest
) except -1:
    """Make room for sequences of so many tokens at most."""
    cdef Py_ssize_t width = padded(k), j
    cdef size_t size = (4 * width + 2) * width + longest * (4 * width + 1)
    cdef double* room = <double*> allocate(size * sizeof(double))
    memset(room, 0, size * sizeof(double))
    lattice.k = k
    lattice.width = width
    lattice.steps = 0
    lattice.in_logs = False
    # Sequences of one token come before any transitions are set.
    lattice.top = lattice.spread = lattice.rest = 0.0
    lattice.transitions = room
    lattice.into = room + width * width
    lattice.out_of = lattice.into + width * width
    lattice.pairs = lattice.out_of + width * width
    lattice.suffix = lattice.pairs + width * width
    lattice.ones = lattice.suffix + width
    lattice.factors = lattice.ones + width
    lattice.prefix = lattice.factors + longest * width
    lattice.coming = lattice.prefix + longest * width
    lattice.nodes = lattice.coming + longest * width
    lattice.highs = lattice.nodes + longest * width
    for j in range(width):
        lattice.ones[j] = 1.0
    return 0


cdef inline void close_lattice(Lattice* lattice) noexcept nogil:
    free(lattice.transitions)


cdef inline void set_transitions(Lattice* lattice, const double* T) noexcept nogil:
    """Take transitions of shape (k, k), with the pattern that ``set_pattern`` saw."""
    cdef Py_ssize_t i
    for i in range(lattice.k):
        memcpy(
            lattice.transitions + i * lattice.width, T + i * lattice.k,
            lattice.k * sizeof(double),
        )
    renew_transitions(lattice)


cdef inline void renew_transitions(Lattice* lattice) noexcept nogil:
    """Do so with those that were written to ``lattice.transitions``."""
    cdef Py_ssize_t k = lattice.k, width = lattice.width, i, j
    cdef double lowest = INFINITY, top = -INFINITY
    cdef const double* row
    cdef double* into
    for i in range(k):
        row = lattice.transitions + i * width
        for j in range(k):
            top = row[j] if row[j] > top else top
            lowest = row[j] if -INFINITY < row[j] < lowest else lowest
    if top == -INFINITY:
        top = lowest = 0.0
    lattice.top = top
    lattice.spread = top - lowest
    for i in range(k):
        row = lattice.transitions + i * width
        into = lattice.into + i * width
        for j in range(k):
            into[j] = row[j] - top
        for j in range(k, width):
            into[j] = -INFINITY
    exponentials(lattice.into, k * width)
    for i in range(k):
        into = lattice.into + i * width
        for j in range(k):
            lattice.out_of[j * width + i] = into[j]


cdef inline void renew_some_transitions(
    Lattice* lattice,
    const double* values,
    Py_ssize_t m,
    const int* places,
    const int* mirrored,
    const double* others,
) noexcept nogil:
    """Do so where all but m transitions are zero or minus infinity.

    Those m are at ``places`` of (k, width), and at ``mirrored`` of the transpose. Of
    shape (2, width, width) ``others`` has ones where they are zero, and the transpose,
    and is NULL if none are.
    """
    cdef Py_ssize_t square = lattice.width * lattice.width, j
    cdef double top = -INFINITY, lowest = INFINITY
    cdef double* factors = lattice.pairs
    if others != NULL or m == 0:
        top = lowest = 0.0
    for j in range(m):
        lattice.transitions[places[j]] = values[j]
        top = max(top, values[j])
        lowest = min(lowest, values[j])
    lattice.top = top
    lattice.spread = top - lowest
    if others != NULL:
        memcpy(lattice.into, others, square * sizeof(double))
        memcpy(lattice.out_of, others + square, square * sizeof(double))
        scale_row(lattice.into, exp(-top), square)
        scale_row(lattice.out_of, exp(-top), square)
    for j in range(m):
        factors[j] = values[j] - top
    exponentials(factors, m)
    for j in range(m):
        lattice.into[places[j]] = factors[j]
        lattice.out_of[mirrored[j]] = factors[j]


cdef inline int set_pattern(
    Lattice* lattice, const double* T, Py_ssize_t stride
) except -1:
    """Find out within how many tokens any label can follow any other.

    Rows of T are ``stride`` numbers apart.
    """
    cdef Py_ssize_t k = lattice.k, i, j, l, steps = 0
    cdef char* reached
    cdef char* further
    cdef bint all_reached = True
    for i in range(k):
        for j in range(k):
            if T[i * stride + j] == -INFINITY:
                all_reached = False
    lattice.steps = 1
    if all_reached:
        return 0
    reached = <char*> allocate(2 * k * k)
    further = reached + k * k
    for i in range(k):
        for j in range(k):
            reached[i * k + j] = T[i * stride + j] != -INFINITY
    lattice.steps = 0
    for steps in range(2, MOST_STEPS + 1):
        all_reached = True
        memset(further, 0, k * k)
        for i in range(k):
            for l in range(k):
                if reached[i * k + l]:
                    for j in range(k):
                        if T[l * stride + j] != -INFINITY:
                            further[i * k + j] = 1
        for i in range(k * k):
            reached[i] = further[i]
            if not further[i]:
                all_reached = False
        if all_reached:
            lattice.steps = steps
            break
    free(reached)
    return 0


cdef inline bint _needs_logs(
    const Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, steps = length - 1, t, j
    cdef double low, high, widest = 0.0
    if lattice.steps and lattice.steps < steps:
        steps = lattice.steps
    if steps * lattice.spread > SAFE_EXPONENT:
        return True
    if lattice.steps == 1:
        return False
    for t in range(length):
        # What is forbidden cannot be lost.
        low, high = INFINITY, -INFINITY
        for j in range(k):
            low = z[j] if -INFINITY < z[j] < low else low
            high = z[j] if z[j] > high else high
        widest = high - low if high - low > widest else widest
        z += stride
    return steps * (lattice.spread + widest) > SAFE_EXPONENT


cdef inline double forward(
    Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    """Return ln of the sum over labelings of exp(score), and keep what it is made of.

    Emissions of adjacent tokens are ``stride`` numbers apart.
    """
    lattice.in_logs = _needs_logs(lattice, z, stride, length)
    if lattice.in_logs:
        return _forward_in_logs(lattice, z, stride, length)
    return _forward_scaled(lattice, z, stride, length)


cdef inline double _forward_scaled(
    Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, j
    cdef double total = 0.0, product = 1.0, high, scale
    cdef double* factors = lattice.factors
    cdef double* prefix = lattice.prefix
    cdef double* suffix = lattice.suffix
    for t in range(length):
        high = largest_of_row(z, k)
        for j in range(k):
            factors[j] = z[j] - high
        for j in range(k, width):
            factors[j] = -INFINITY
        lattice.highs[t] = high
        total += high
        z += stride
        factors += width
    exponentials(lattice.factors, length * width)
    factors = lattice.factors
    lattice.rest = (length - 1) * lattice.top
    for t in range(length):
        if t == 0:
            memcpy(suffix, lattice.ones, width * sizeof(double))
        else:
            row_times(prefix - width, lattice.into, width, suffix)
        scale = multiply_rows(prefix, suffix, factors, width)
        if not scale > 0.0:
            # No labeling is allowed.
            return -INFINITY
        # One logarithm for several tokens.
        product *= scale
        if not 1e-150 < product < 1e150:
            lattice.rest += log(product)
            product = 1.0
        scale_row(prefix, 1.0 / scale, width)
        factors += width
        prefix += width
    lattice.rest += log(product)
    return total + lattice.rest


cdef inline void _products(
    const double* x, const double* y, Py_ssize_t n, Py_ssize_t width, double* out
) noexcept nogil:
    """Write the product of the transpose of x, (n, width), with y of the same shape."""
    cdef Py_ssize_t i, t, c
    cdef double shares[4]
    memset(out, 0, width * width * sizeof(double))
    for t in range(0, n - 3, 4):
        for i in range(width):
            for c in range(4):
                shares[c] = x[c * width + i]
            add_four_rows(out + i * width, shares, y, width, width)
        x += 4 * width
        y += 4 * width
    for t in range(n & 3):
        for i in range(width):
            add_scaled_row(out + i * width, x[i], y, width)
        x += width
        y += width


cdef inline double _forward_in_logs(
    Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, i, j
    cdef double total = 0.0, high, scale, sum
    cdef double* prefix = lattice.prefix
    cdef const double* before
    for t in range(length):
        before = prefix - width
        lattice.highs[t] = 0.0
        for j in range(k):
            if t == 0:
                prefix[j] = z[j]
                continue
            high = -INFINITY
            for i in range(k):
                sum = before[i] + lattice.transitions[i * width + j]
                high = sum if sum > high else high
            if high == -INFINITY:
                prefix[j] = -INFINITY
                continue
            scale = 0.0
            for i in range(k):
                scale += exp(before[i] + lattice.transitions[i * width + j] - high)
            prefix[j] = z[j] + high + log(scale)
        scale = log_sum(prefix, k)
        if scale == -INFINITY:
            return -INFINITY
        total += scale
        for j in range(k):
            prefix[j] -= scale
        z += stride
        prefix += width
    lattice.rest = total
    return total


cdef inline double log_sum(const double* x, Py_ssize_t k) noexcept nogil:
    """Return ln sum exp(x_j)."""
    cdef Py_ssize_t j
    cdef double high = x[0], total = 0.0
    for j in range(1, k):
        high = x[j] if x[j] > high else high
    if high == -INFINITY:
        return high
    for j in range(k):
        total += exp(x[j] - high)
    return high + log(total)


cdef inline void backward(
    Lattice* lattice,
    const double* z,
    Py_ssize_t stride,
    Py_ssize_t length,
    double* edges,
) noexcept nogil:
    """Write the marginals of what ``forward`` has summed over to the lattice.

    Those of labels, and the sums of those of pairs of labels of adjacent tokens; the
    latter one by one to ``edges`` of shape (L - 1, k, k), unless that is NULL.
    """
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, i, j
    cdef double share, scale
    cdef double* coming
    cdef double* suffix = lattice.suffix
    cdef double* nodes
    cdef const double* before
    cdef const double* row
    if lattice.in_logs:
        _backward_in_logs(lattice, z, stride, length, edges)
        return
    # Of the label j at token t, prefix[t, j] suffix[j] is the probability, and
    # prefix[t - 1, i] exp(T[i, j] - top) coming[t, j] that of i before j.
    before = lattice.prefix + (length - 1) * width
    nodes = lattice.nodes + (length - 1) * width
    memcpy(suffix, lattice.ones, width * sizeof(double))
    memcpy(nodes, before, width * sizeof(double))
    for t in range(length - 1, 0, -1):
        before = lattice.prefix + (t - 1) * width
        coming = lattice.coming + t * width
        nodes -= width
        multiply_rows(coming, lattice.factors + t * width, suffix, width)
        row_times(coming, lattice.out_of, width, suffix)
        # Rounding errors do not add up along the sequence.
        scale = 1.0 / multiply_rows(nodes, before, suffix, width)
        scale_row(nodes, scale, width)
        scale_row(suffix, scale, width)
        scale_row(coming, scale, width)
    _products(
        lattice.prefix, lattice.coming + width, length - 1, width, lattice.pairs
    )
    multiply_row(lattice.pairs, lattice.into, k * width)
    if edges == NULL:
        return
    for t in range(1, length):
        before = lattice.prefix + (t - 1) * width
        coming = lattice.coming + t * width
        for i in range(k):
            share = before[i]
            row = lattice.into + i * width
            for j in range(k):
                edges[i * k + j] = share * row[j] * coming[j]
        edges += k * k


cdef inline void _backward_in_logs(
    Lattice* lattice,
    const double* z,
    Py_ssize_t stride,
    Py_ssize_t length,
    double* edges,
) noexcept nogil:
    """Do the same with logarithms.

    Marginals are made from those of the first label and of each label given the one
    before, forwards: large scores make these inaccurate, but never inconsistent.
    """
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, i, j
    cdef double* suffix = lattice.coming + (length - 1) * width
    cdef double* shares = lattice.suffix
    cdef double* nodes = lattice.nodes
    cdef const double* row
    cdef double total, p, share
    # Scores of what follows each label; of later tokens their emissions are added.
    memset(lattice.pairs, 0, width * width * sizeof(double))
    for j in range(k):
        suffix[j] = 0.0
    for t in range(length - 1, 0, -1):
        for j in range(k):
            suffix[j] += z[t * stride + j]
        for i in range(k):
            shares[i] = _log_sum_of(lattice.transitions + i * width, suffix, k)
        total = log_sum(shares, k)
        suffix -= width
        for i in range(k):
            suffix[i] = shares[i] - total
    total = _log_sum_of(lattice.prefix, suffix, k)
    p = 0.0
    for j in range(k):
        nodes[j] = exp(lattice.prefix[j] + suffix[j] - total)
        p += nodes[j]
    for j in range(k):
        nodes[j] /= p
    for t in range(1, length):
        suffix += width
        for j in range(k):
            nodes[width + j] = 0.0
        for i in range(k):
            row = lattice.transitions + i * width
            total = _log_sum_of(row, suffix, k)
            p = 0.0
            for j in range(k):
                shares[j] = 0.0
                if nodes[i] > 0.0:
                    shares[j] = exp(row[j] + suffix[j] - total)
                p += shares[j]
            for j in range(k):
                share = nodes[i] * shares[j] / p if p > 0.0 else 0.0
                nodes[width + j] += share
                lattice.pairs[i * width + j] += share
                if edges != NULL:
                    edges[i * k + j] = share
        nodes += width
        if edges != NULL:
            edges += k * k


cdef inline double _log_sum_of(
    const double* x, const double* y, Py_ssize_t k
) noexcept nogil:
    """Return ln sum exp(x_j + y_j)."""
    cdef Py_ssize_t j
    cdef double high = x[0] + y[0], total = 0.0
    for j in range(1, k):
        high = x[j] + y[j] if x[j] + y[j] > high else high
    if high == -INFINITY:
        return high
    for j in range(k):
        total += exp(x[j] + y[j] - high)
    return high + log(total)


cdef inline double best_labels(
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    double* best,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the labeling with the best score (Viterbi 1967), of equal ones the lowest.

    Labels other than ``own``, unless that is NULL, score one more. The room ``best`` of
    shape (L, k) is for its own use. Returns the score, minus infinity if no labeling is
    allowed.
    """
    cdef Py_ssize_t t, i, j, before
    cdef double score, reached
    cdef double* now = best
    for t in range(length):
        if t == 0:
            memcpy(now, z, k * sizeof(double))
        else:
            _reach(T, k, z + t * k, now - k, now)
        if own != NULL:
            for j in range(k):
                if j != own[t]:
                    now[j] += 1.0
        now += k
    now -= k
    j = _largest(now, k)
    score = now[j]
    labels[length - 1] = j
    # Only along the labeling itself it matters which label is before.
    for t in range(length - 1, 0, -1):
        now -= k
        before, reached = 0, now[0] + T[j]
        for i in range(1, k):
            if now[i] + T[i * k + j] > reached:
                before, reached = i, now[i] + T[i * k + j]
        j = before
        labels[t - 1] = j
    return score


cdef inline void _reach(
    const double* T, Py_ssize_t k, const double* z, const double* before, double* now
) noexcept nogil:
    """Write the best scores with one more token by its label."""
    cdef Py_ssize_t i, j
    cdef double score, reached
    cdef const double* row
    for j in range(k):
        now[j] = before[0] + T[j]
    for i in range(1, k):
        reached = before[i]
        row = T + i * k
        for j in range(k):
            score = reached + row[j]
            now[j] = score if score > now[j] else now[j]
    for j in range(k):
        now[j] += z[j]


cdef inline void _go_on(
    const double* T,
    Py_ssize_t k,
    const double* z,
    const double* before,
    double* now,
    unsigned short* origin,
) noexcept nogil:
    """Write the best scores with one more token by its label, and the label before."""
    cdef Py_ssize_t i, j
    cdef double score, reached
    cdef const double* row
    for j in range(k):
        now[j] = before[0] + T[j]
        origin[j] = 0
    for i in range(1, k):
        reached = before[i]
        row = T + i * k
        for j in range(k):
            score = reached + row[j]
            if score > now[j]:
                now[j] = score
                origin[j] = <unsigned short> i
    for j in range(k):
        now[j] += z[j]


cdef inline Py_ssize_t _largest(const double* x, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t i = 0, j
    for j in range(1, k):
        if x[j] > x[i]:
            i = j
    return i


cdef inline double labels_score(
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* labels,
) noexcept nogil:
    """Return the score of a labeling."""
    cdef Py_ssize_t t
    cdef double score = z[labels[0]]
    for t in range(1, length):
        score += z[t * k + labels[t]] + T[labels[t - 1] * k + labels[t]]
    return score


cdef struct Violations:
    # Room to find violated margins in.
    bint slack  # whether slacks are rescaled, or margins
    double* best
    unsigned short* origins


cdef inline int open_violations(
    Violations* room, Py_ssize_t k, Py_ssize_t longest, bint slack
) except -1:
    cdef size_t n_best = longest * k, n_origins = 0
    if slack:
        # For each number of wrong labels so far.
        n_best = 2 * (longest + 1) * k
        n_origins = longest * (longest + 1) // 2 * k
    room.slack = slack
    room.best = <double*> allocate(
        n_best * sizeof(double) + n_origins * sizeof(unsigned short)
    )
    room.origins = <unsigned short*> (room.best + n_best)
    return 0


cdef inline void close_violations(Violations* room) noexcept nogil:
    free(room.best)


cdef inline double most_violated(
    Violations* room,
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the labeling that the structured hinge is of; return the hinge.

    With Delta the number of labels that are not ``own``, it has the most of Delta +
    score - score(own), or with slack rescaling of Delta (1 + score - score(own)). The
    own labeling, which is allowed, has zero of either.
    """
    cdef double score = labels_score(T, k, z, length, own)
    cdef double most = best_labels(T, k, z, length, own, room.best, labels)
    # The own labeling is one of them, but for rounding.
    most = max(most - score, 0.0)
    if room.slack:
        return _most_slack(room, T, k, z, length, own, score, most, labels)
    return most


cdef inline double _most_slack(
    Violations* room,
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    double score,
    double margin,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the best labelings with each number of wrong labels, and the best of them.

    Of equal ones that with the fewest wrong labels, of these the lowest. The hinge with
    margin rescaling is as much as n + score - score(own) is for any labeling with n
    wrong labels, so that those with n >= margin + 1 have not more than the own one.
    """
    cdef Py_ssize_t most_wrong = <Py_ssize_t> ceil(margin) if margin < length else length
    cdef Py_ssize_t t, i = own[length - 1], j, n, last, n_wrong = 0
    cdef double* now = room.best
    cdef double* before = room.best + (length + 1) * k
    cdef double* swapped
    cdef double most = 0.0, value
    # Entry [n, j] of ``now`` is of label j at token t, with n wrong labels up to there;
    # that of ``origins`` of n wrong labels before it, at most t.
    cdef unsigned short* origins = room.origins
    if most_wrong == 0:
        memcpy(labels, own, length * sizeof(Py_ssize_t))
        return 0.0
    for j in range(k):
        now[j] = -INFINITY
        now[k + j] = z[j]
    now[own[0]] = z[own[0]]
    now[k + own[0]] = -INFINITY
    for t in range(1, length):
        swapped = before
        before = now
        now = swapped
        origins += min(t, most_wrong + 1) * k
        for j in range(k):
            now[j] = -INFINITY
        last = min(t, most_wrong)
        for n in range(last + 1):
            _go_on(
                T, k, z + t * k, before + n * k, now + (n + 1) * k, origins + n * k
            )
            now[n * k + own[t]] = now[(n + 1) * k + own[t]]
        now[(last + 1) * k + own[t]] = -INFINITY
    for n in range(1, most_wrong + 1):
        j = _largest(now + n * k, k)
        value = n * (1.0 + now[n * k + j] - score)
        if value > most:
            most = value
            n_wrong = n
            i = j
    for t in range(length - 1, -1, -1):
        labels[t] = i
        if i != own[t]:
            n_wrong -= 1
        if t > 0:
            i = origins[n_wrong * k + i]
            origins -= min(t, most_wrong + 1) * k
    return most
