"""The lattice of the labelings of a chain: what their sums are made of.

A sequence of L tokens has emissions z of shape (L, k) and transitions T of shape (k, k),
minus infinity where a label or a transition is forbidden. A labeling y scores
sum_t z[t, y_t] + sum_{t > 0} T[y_{t-1}, y_t].

Rows of the lattice are padded to a width that is a multiple of four, by zeros in place
of exponentials: loops then have no rests, and their sums several terms under way.
"""

from .exponentials cimport exponentials
from .padded_rows cimport scale_row
from .rows cimport allocate
from .standard cimport INFINITY, exp, free, memcpy, memset

# Powers of the pattern of transitions are tried up to this one.
cdef enum:
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
    """Make room for sequences of this many tokens at most."""
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
    """Take over the transitions that were written to ``lattice.transitions``."""
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
    """Take them over where all but m transitions are zero or minus infinity.

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
