"""The lattice of a chain: exponentials of scores, for sums over labelings.

A sequence of L tokens has emissions z of shape (L, k) and transitions T of shape (k, k),
minus infinity where a label or a transition is forbidden. A labeling y scores
sum_t z[t, y_t] + sum_{t > 0} T[y_{t-1}, y_t].

Rows of the lattice are padded with zeros to a multiple of four entries, so that loops
have no remainder and compilers vectorize them.
"""

from .exponentials cimport exponentials
from .padded_rows cimport scale_row
from .rows cimport allocate
from .standard cimport INFINITY, exp, free, memcpy, memset

# Largest power of the pattern of allowed transitions that is tested.
cdef enum:
    MOST_STEPS = 4


cdef struct Lattice:
    Py_ssize_t k
    Py_ssize_t width  # k padded
    Py_ssize_t steps  # tokens within which any label can follow any other, or 0
    bint in_logs  # whether the last sums were computed with logarithms
    double top  # the largest transition, and its difference to the lowest
    double spread
    double* transitions  # (k, width)
    double* into  # exponentials of T - top, (k, width); ``out_of`` is the transpose
    double* out_of
    double* factors  # (L, width): exponentials of emissions, one at each maximum
    double* prefix  # (L, width): distribution of the label given the tokens up to it
    double* coming  # (L, width): see ``backward``
    double* nodes  # (L, width): probabilities of labels
    double* pairs  # (width, width): summed probabilities of pairs of adjacent labels
    double* suffix  # (width,)
    double* ones  # (width,)
    double* highs  # (L,): the largest emission of each token
    double rest  # the result of ``forward`` minus the sum of ``highs``


cdef inline Py_ssize_t padded(Py_ssize_t k) noexcept nogil:
    return (k + 3) // 4 * 4


cdef inline int open_lattice(
    Lattice* lattice, Py_ssize_t k, Py_ssize_t longest
) except -1:
    """Allocate a lattice for sequences of at most ``longest`` tokens."""
    cdef Py_ssize_t width = padded(k), j
    cdef size_t size = (4 * width + 2) * width + longest * (4 * width + 1)
    cdef double* workspace = <double*> allocate(size * sizeof(double))
    memset(workspace, 0, size * sizeof(double))
    lattice.k = k
    lattice.width = width
    lattice.steps = 0
    lattice.in_logs = False
    # Sequences of one token may come before transitions are set.
    lattice.top = lattice.spread = lattice.rest = 0.0
    lattice.transitions = workspace
    lattice.into = workspace + width * width
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
    """Set transitions of shape (k, k) with the pattern given to ``set_pattern``."""
    cdef Py_ssize_t i
    for i in range(lattice.k):
        memcpy(
            lattice.transitions + i * lattice.width, T + i * lattice.k,
            lattice.k * sizeof(double),
        )
    renew_transitions(lattice)


cdef inline void renew_transitions(Lattice* lattice) noexcept nogil:
    """Update the exponentials of ``lattice.transitions``."""
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


cdef inline int set_pattern(
    Lattice* lattice, const double* T, Py_ssize_t stride
) except -1:
    """Find the number of tokens within which any label can follow any other.

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
