"""Sums over the labelings of a chain, and the marginals that they have.

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
from .standard cimport INFINITY, exp, free, log, memcpy, memset

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
