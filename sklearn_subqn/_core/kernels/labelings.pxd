"""Working set of labelings of a sequence, as sparse vectors with a Gram matrix."""

from .chain_features cimport Features, Parameters
from .standard cimport free, malloc, memcpy
from .viterbi cimport Violations

# Number of visits with inference after which a labeling of weight zero is removed.
cdef enum:
    MOST_IDLE = 10


cdef struct Labeling:
    Labeling* next
    double share
    double cost  # number of wrong labels
    double rate
    double square  # squared norm of phi
    double slope
    double change  # pending change of the weight, not yet in w
    Py_ssize_t slot
    Py_ssize_t idle
    Py_ssize_t n_bytes
    Py_ssize_t size
    double* values  # (size,): phi
    int* places  # (size,): indices of parameters in phi
    unsigned short* labels  # (L,)


cdef struct Block:
    # The working set of a sequence, and the Gram matrix of its vectors by slots.
    Labeling* first
    Py_ssize_t n_slots
    double* products  # (n_slots, n_slots)


cdef struct Visit:
    Parameters p
    Features features
    double step
    Py_ssize_t n_bytes  # additional memory of labelings
    double* scratch  # (n_params,), of zeros
    # Workspace for inference and for new labelings.
    double* z
    double* T
    Py_ssize_t* worst
    int* touched
    const Py_ssize_t* truth
    const int* of_pairs
    const double* ends
    Violations violations


cdef inline Labeling* kept_labeling(
    Visit* v, Labeling* first, const Py_ssize_t* labels
) noexcept nogil:
    """Return the labeling of the working set with these labels, or NULL."""
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
    """Return the index of the parameter of a feature and a label, or -1."""
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
    """Add x to an entry of the scratch vector; return the number of touched entries."""
    if place < 0 or x == 0.0:
        return size
    # An entry that returned to zero may be listed twice; the second time it is zero.
    if v.scratch[place] == 0.0:
        v.touched[size] = <int> place
        size += 1
    v.scratch[place] += x
    return size


cdef inline Labeling* new_labeling(
    Visit* v, const Py_ssize_t* labels, bint slack, Py_ssize_t n_pairs
) noexcept nogil:
    """Return a new labeling with its vector, or NULL without memory."""
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


cdef inline bint keep(Visit* v, Block* block, Labeling* y) noexcept nogil:
    """Add a labeling and its products to a block; return False without memory."""
    cdef Py_ssize_t j, i, n = block.n_slots, slot = 0, size
    cdef double product
    cdef double* products
    cdef Labeling* x
    # Reuse the slots of removed labelings first.
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


cdef inline Py_ssize_t drop_idle(Labeling** link) noexcept nogil:
    """Remove labelings that had weight zero in more than MOST_IDLE visits.

    Returns the freed memory in bytes.
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
