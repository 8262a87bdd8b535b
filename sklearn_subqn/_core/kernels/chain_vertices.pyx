"""Block-coordinate Frank-Wolfe for the structured hinge (to be replaced)."""

from .lattice cimport (
    Violations,
    close_violations,
    most_violated,
    open_violations,
)
from .pairs cimport add_padded_row, padded_scores
from .rows cimport allocate
from .standard cimport free as release, memcpy, memset

cdef struct Features:
    # Of a sequence: how many it has, which, and their parameters and gradient.
    Py_ssize_t size
    const int* own
    double* params  # (size, stride)
    double* gradient  # (size, stride)


cdef struct Parameters:
    Py_ssize_t k
    Py_ssize_t width  # k padded
    Py_ssize_t stride  # width, 0 if packed
    const int* ptr
    const unsigned short* labels
    const unsigned char* mask
    double* w
    double threshold


cdef inline double _soft(double x, double threshold) noexcept nogil:
    if x > threshold:
        return x - threshold
    return x + threshold if x < -threshold else 0.0


cdef inline void _gather(Features* features, const Parameters* p) noexcept nogil:
    cdef Py_ssize_t u, width = p.width
    cdef const int* own = features.own
    if p.stride:
        for u in range(features.size):
            memcpy(
                features.params + u * width, p.w + width * own[u],
                width * sizeof(double),
            )
    else:
        _gather_packed(features, p)
    if p.threshold > 0.0:
        for u in range(features.size * width):
            features.params[u] = _soft(features.params[u], p.threshold)


cdef inline void _gather_packed(
    Features* features, const Parameters* p
) noexcept nogil:
    cdef Py_ssize_t u, q, width = p.width
    cdef const int* own = features.own
    memset(features.params, 0, features.size * width * sizeof(double))
    for u in range(features.size):
        for q in range(p.ptr[own[u]], p.ptr[own[u] + 1]):
            features.params[u * width + p.labels[q]] = p.w[q]


cdef inline double _restrict(Features* features, const Parameters* p) noexcept nogil:
    """Take what has no parameter out of the gradient; return its squared norm."""
    cdef Py_ssize_t u, q, c, width = p.width
    cdef double total = 0.0
    cdef double* row
    cdef const unsigned char* mask
    for u in range(features.size):
        row = features.gradient + u * width
        if p.stride:
            mask = p.mask + width * features.own[u]
            for c in range(width):
                row[c] *= mask[c]
                total += row[c] * row[c]
        else:
            for q in range(p.ptr[features.own[u]], p.ptr[features.own[u] + 1]):
                total += row[p.labels[q]] * row[p.labels[q]]
    return total


cdef inline void _move(
    const Features* features, const Parameters* p, double step
) noexcept nogil:
    """Subtract ``step`` times the gradient from the parameters."""
    cdef Py_ssize_t u, q, c, width = p.width
    cdef const double* row
    cdef double* w
    for u in range(features.size):
        row = features.gradient + u * width
        if p.stride:
            w = p.w + width * features.own[u]
            for c in range(width):
                w[c] -= step * row[c]
        else:
            for q in range(p.ptr[features.own[u]], p.ptr[features.own[u] + 1]):
                p.w[q] -= step * row[p.labels[q]]


cdef struct Visit:
    # The sequence under way: its scores and dual variables, and the way to go.
    Py_ssize_t k
    Py_ssize_t width
    Py_ssize_t length
    double step  # its weight over alpha
    double* z  # (L, k)
    const double* transitions  # (k, k), behind the threshold
    const unsigned char* free  # (k, k)
    double* nodes  # (L, k)
    double* edges  # (L - 1, k, k), or their sums (k, k)
    double* value  # entropy, or mean number of wrong labels
    double* dnodes  # (L, width)
    double* moved  # (k, k), sums of changes of pairs
    # The features of its tokens.
    const double* data
    const int* local
    const Py_ssize_t* indptr
    Features features


cdef struct Vertex:
    const Py_ssize_t* targets
    Py_ssize_t* worst
    Violations violations


cdef inline double _squared_change(Visit* v, const Parameters* p) noexcept nogil:
    """Write the change of the parameters' gradient; return its squared norm."""
    cdef Py_ssize_t t, j, first, width = v.width
    cdef double total
    memset(v.features.gradient, 0, v.features.size * width * sizeof(double))
    for t in range(v.length):
        first = v.indptr[t]
        add_padded_row(
            v.data + first if v.data != NULL else NULL, v.local + first,
            v.indptr[t + 1] - first, width, v.dnodes + t * width, v.features.gradient,
        )
    total = _restrict(&v.features, p)
    for j in range(v.k * v.k):
        if v.free[j]:
            total += v.moved[j] * v.moved[j]
    return total


cdef inline double _vertex_step(
    Visit* v, const Parameters* p, Vertex* vertex
) noexcept nogil:
    """Go towards the most violated labeling; return how far, zero for not at all."""
    cdef Py_ssize_t k = v.k, width = v.width, length = v.length, t, j, n_wrong = 0
    cdef double c, gap, step, rate = 1.0
    cdef const Py_ssize_t* own = vertex.targets
    cdef Py_ssize_t* worst = vertex.worst
    most_violated(&vertex.violations, v.transitions, k, v.z, length, own, worst)
    for t in range(length):
        n_wrong += worst[t] != own[t]
    if vertex.violations.slack:
        rate = n_wrong
    # The slope at the start of the line, with the costs of wrong labels.
    gap = n_wrong - v.value[0]
    for j in range(k * k):
        v.moved[j] = -v.edges[j]
    for t in range(length):
        for j in range(k):
            v.dnodes[t * width + j] = -v.nodes[t * k + j]
        v.dnodes[t * width + worst[t]] += rate
        v.dnodes[t * width + own[t]] += 1.0 - rate
        if t > 0:
            v.moved[worst[t - 1] * k + worst[t]] += rate
            v.moved[own[t - 1] * k + own[t]] += 1.0 - rate
        for j in range(k):
            if v.dnodes[t * width + j] != 0.0:
                gap += v.dnodes[t * width + j] * v.z[t * k + j]
    for j in range(k * k):
        if v.moved[j] != 0.0:
            gap += v.moved[j] * v.transitions[j]
    if gap <= 0.0:
        return 0.0
    c = v.step * _squared_change(v, p)
    step = gap / c if gap < c else 1.0
    for t in range(length):
        for j in range(k):
            v.nodes[t * k + j] += step * v.dnodes[t * width + j]
    for j in range(k * k):
        v.edges[j] += step * v.moved[j]
    v.value[0] += step * (n_wrong - v.value[0])
    return step


def sweep(
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
    const unsigned char[:, ::1] free,
    const double[:, ::1] ends,
    double threshold,
    const double[::1] steps,
    const Py_ssize_t[::1] targets,
    bint slack,
    const Py_ssize_t[::1] order,
    double[:, ::1] nodes,
    double[:, :, ::1] edges,
    double[::1] values,
    double[::1] w,
    double[:, ::1] transitions,
):
    """Ascend along one sequence after the other, in the given order.

    Of the log-likelihood, or with ``targets`` of the hinge, whose best marginals are
    those of one labeling: block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt
    & Pletscher 2013).

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Weights of sequences over alpha; zero to leave one out.
    targets : ndarray of shape (T,) or None
        The right labels.
    slack : bool
        Whether the hinge rescales slacks. In place of marginals mu, for labelings with
        D wrong labels there is truth + D (mu - truth) then.
    nodes : ndarray of shape (T, k)
        Marginals of labels, changed in place.
    edges : ndarray of shape (T, k, k), or of the hinge (n, k, k)
        Of pairs, ``edges[t]`` of the one that ends at t, or their sums of sequences,
        changed in place.
    values : ndarray of shape (n,)
        Entropies, or mean numbers of wrong labels, changed in place.
    w : ndarray
        Parameters of pairs, changed in place.
    transitions : ndarray of shape (k, k)
        Minus infinity where forbidden, changed in place.
    """
    cdef Py_ssize_t k = nodes.shape[1], width, longest = 1, most = 1, o, i, t, j, size
    cdef Py_ssize_t n_edges = nodes.shape[0] if targets is None else steps.shape[0]
    cdef double gamma
    cdef double* room
    cdef double* T = &transitions[0, 0]
    cdef double* model_T
    cdef Visit v
    cdef Vertex vertex
    cdef Parameters params
    _check(
        local, indptr, starts, own, own_ptr, ptr, labels, mask, ends, steps, order,
        nodes, w, stride,
    )
    if edges.shape[0] != n_edges or edges.shape[1] != k or edges.shape[2] != k:
        raise ValueError("marginals of labels and of pairs differ in shape.")
    if values.shape[0] != steps.shape[0]:
        raise ValueError("arrays of sequences differ in length.")
    if targets is not None and targets.shape[0] != nodes.shape[0]:
        raise ValueError("arrays of tokens differ in length.")
    for o in range(order.shape[0]):
        i = order[o]
        longest = max(longest, starts[i + 1] - starts[i])
        most = max(most, own_ptr[i + 1] - own_ptr[i])
    width = stride if stride else (k + 3) // 4 * 4
    params.k, params.width, params.stride = k, width, stride
    params.ptr = &ptr[0]
    params.labels = &labels[0] if labels.shape[0] else NULL
    params.mask = &mask[0] if mask.shape[0] else NULL
    params.w = &w[0] if w.shape[0] else NULL
    params.threshold = threshold
    size = longest * (k + width) + width + 2 * k * k + 2 * most * width
    size += longest
    room = <double*> allocate(size * sizeof(double))
    v.k, v.width = k, width
    v.z = room
    v.dnodes = v.z + longest * k + width
    v.moved = v.dnodes + longest * width
    model_T = v.moved + k * k
    v.features.params = model_T + k * k
    v.features.gradient = v.features.params + most * width
    v.transitions = model_T
    v.free = &free[0, 0]
    v.data = &data[0] if data.shape[0] else NULL
    v.local = &local[0] if local.shape[0] else NULL
    memset(v.dnodes, 0, longest * width * sizeof(double))
    for j in range(k * k):
        model_T[j] = _soft(T[j], threshold)
    try:
        vertex.worst = <Py_ssize_t*> (v.features.gradient + most * width)
        open_violations(&vertex.violations, k, longest, slack)
    except MemoryError:
        release(room)
        raise
    with nogil:
        for o in range(order.shape[0]):
            i = order[o]
            if steps[i] == 0.0:
                continue
            v.length = starts[i + 1] - starts[i]
            v.step = steps[i]
            v.nodes = &nodes[starts[i], 0]
            v.value = &values[i]
            v.indptr = &indptr[starts[i]]
            v.features.size = own_ptr[i + 1] - own_ptr[i]
            v.features.own = &own[0] + own_ptr[i]
            _gather(&v.features, &params)
            for t in range(v.length):
                j = v.indptr[t]
                padded_scores(
                    v.data + j if v.data != NULL else NULL, v.local + j,
                    v.indptr[t + 1] - j, width, v.features.params, v.z + t * k,
                )
            for j in range(k):
                v.z[j] += ends[0, j]
                v.z[(v.length - 1) * k + j] += ends[1, j]
            v.edges = &edges[i, 0, 0]
            vertex.targets = &targets[starts[i]]
            gamma = _vertex_step(&v, &params, &vertex)
            if gamma == 0.0:
                continue
            _move(&v.features, &params, gamma * steps[i])
            for j in range(k * k):
                if v.free[j]:
                    T[j] -= gamma * steps[i] * v.moved[j]
                    model_T[j] = _soft(T[j], threshold)
        close_violations(&vertex.violations)
        release(room)


cdef int _check(
    const int[::1] local,
    const Py_ssize_t[::1] indptr,
    const Py_ssize_t[::1] starts,
    const int[::1] own,
    const Py_ssize_t[::1] own_ptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    const unsigned char[::1] mask,
    const double[:, ::1] ends,
    const double[::1] steps,
    const Py_ssize_t[::1] order,
    const double[:, ::1] nodes,
    const double[::1] w,
    Py_ssize_t stride,
) except -1:
    cdef Py_ssize_t n = steps.shape[0], d = ptr.shape[0] - 1, k = nodes.shape[1], o
    cdef Py_ssize_t n_tokens = nodes.shape[0]
    if starts.shape[0] != n + 1 or own_ptr.shape[0] != n + 1:
        raise ValueError("arrays of sequences differ in length.")
    if own_ptr[n] > own.shape[0]:
        raise ValueError("sequences and their features differ in number.")
    if starts[n] != n_tokens or indptr.shape[0] != n_tokens + 1:
        raise ValueError("arrays of tokens differ in length.")
    if indptr[n_tokens] != local.shape[0]:
        raise ValueError("tokens and their features differ in number.")
    if ends.shape[0] != 2 or ends.shape[1] != k:
        raise ValueError("labels and what sequences may begin and end with differ.")
    if stride and (stride < k or stride % 4 or w.shape[0] < d * stride):
        raise ValueError(f"parameters of {k} labels are not padded to {stride}.")
    if stride and mask.shape[0] != d * stride:
        raise ValueError("parameters and their mask differ in length.")
    if not stride and (ptr[d] > labels.shape[0] or w.shape[0] < labels.shape[0]):
        raise ValueError("pairs and parameters differ in length.")
    for o in range(order.shape[0]):
        if not 0 <= order[o] < n:
            raise ValueError(f"sequence {order[o]} is none of {n}.")
    return 0
