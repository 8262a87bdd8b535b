"""Dual coordinate ascent over the sequences of chains.

The dual variables of sequence i are marginals mu_i of labels and of pairs of adjacent
labels; w = -sum_i steps_i F_i (mu_i - truth_i) for its features F_i. A sequence's step
goes from mu_i towards the marginals that are best at the current w, exactly far enough
on that line; the dual, in units of the sequence's weight, is on it

    h(mu + gamma d) + gamma <d, z> - gamma² c / 2,  c = steps_i ||F_i d||²,

with the entropy h, or the cost of wrong labels, which is linear.

Features of a sequence are gathered once: ``own[own_ptr[i] : own_ptr[i + 1]]`` are those
of sequence i, and ``local`` of shape (nnz,) has their places among them, in the order
of the stored entries of X, whose values ``data`` are empty where all are one.
Parameters are padded or packed as in ``chain_pairs``, followed by nothing; ``mask``
tells which of the padded ones exist, ``free`` of shape (k, k) which transitions.
``ends`` of shape (2, k) is added to the scores of first and last tokens: zero, or minus
infinity where a sequence cannot begin, or end, with a label.

With an L1 penalty the model is what remains of w behind a threshold. The dual then has
another quadratic term, which is nowhere larger than that above.
"""

from .lattice cimport (
    Lattice,
    Violations,
    backward,
    close_lattice,
    close_violations,
    forward,
    most_violated,
    open_lattice,
    open_violations,
    set_pattern,
    set_transitions,
)
from .pairs cimport add_padded_row, padded_scores
from .rows cimport allocate, index, prefetch
from .standard cimport fabs, free as release, log, memcpy, memset

# A slope of the dual on a line that is this small against that of its quadratic term at
# the end will do; after so many trials, the best one.
cdef double ACCURACY = 0.1
cdef enum:
    MAX_TRIALS = 8
    AHEAD = 8


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


def localize(
    const index[::1] indices,
    const index[::1] indptr,
    const Py_ssize_t[::1] starts,
    int[::1] last,
    int[::1] local,
    int[::1] own,
    Py_ssize_t[::1] own_ptr,
):
    """Write the distinct features of each sequence, and where its entries are in them.

    Parameters
    ----------
    last : ndarray of shape (d,)
        Room for own use, of zeros.
    local, own : ndarray of shape (nnz,)
    own_ptr : ndarray of shape (n + 1,)
        Of ``own``, the first ``own_ptr[n]`` entries are written.
    """
    cdef Py_ssize_t n = starts.shape[0] - 1, i, j, end = 0, first
    own_ptr[0] = 0
    with nogil:
        for i in range(n):
            first = end
            for j in range(indptr[starts[i]], indptr[starts[i + 1]]):
                # Places of features that an earlier sequence had are before its first.
                if last[indices[j]] <= first:
                    own[end] = <int> indices[j]
                    end += 1
                    last[indices[j]] = <int> end
                local[j] = <int> (last[indices[j]] - 1 - first)
            own_ptr[i + 1] = end


cdef inline void _gather(Features* features, const Parameters* p) noexcept nogil:
    cdef Py_ssize_t u, width = p.width
    cdef const int* own = features.own
    if p.stride:
        for u in range(features.size):
            if u + AHEAD < features.size:
                prefetch(p.w + width * own[u + AHEAD])
                prefetch(p.w + width * own[u + AHEAD] + width - 1)
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


cdef inline double _add_terms(
    const double* mu, const double* d, Py_ssize_t k, double gamma, double* new,
    double* slope, double* bend,
) noexcept nogil:
    """Write mu + gamma d for k entries; return their entropy and add its derivatives."""
    cdef Py_ssize_t j
    cdef double x, logarithm, total = 0.0, first = 0.0, second = 0.0
    for j in range(k):
        x = mu[j] + gamma * d[j]
        if x < 0.0:
            x = 0.0
        new[j] = x
        # Of what is zero at the end of the line the logarithm is finite, but large.
        logarithm = log(x if x > 1e-300 else 1e-300)
        total -= x * logarithm
        first -= d[j] * logarithm
        second += d[j] * d[j] / (x if x > 1e-300 else 1e-300)
    slope[0] += first
    bend[0] += second
    return total


cdef inline double _entropy_on_line(
    const double* nodes, const double* edges, const double* dnodes, Py_ssize_t width,
    const double* dedges, Py_ssize_t length, Py_ssize_t k, double gamma,
    double* new_nodes, double* new_edges, double* slope, double* bend,
) noexcept nogil:
    """Return the entropy at mu + gamma d, and write that point and derivatives."""
    cdef Py_ssize_t t
    cdef double total = 0.0, less = 0.0, inner_slope = 0.0, inner_bend = 0.0
    slope[0] = bend[0] = 0.0
    for t in range(length):
        if 0 < t < length - 1:
            less += _add_terms(
                nodes + t * k, dnodes + t * width, k, gamma, new_nodes + t * k,
                &inner_slope, &inner_bend,
            )
        elif length == 1:
            total += _add_terms(
                nodes, dnodes, k, gamma, new_nodes, slope, bend
            )
        else:
            _interpolate(nodes + t * k, dnodes + t * width, k, gamma, new_nodes + t * k)
    if length > 1:
        total += _add_terms(
            edges, dedges, (length - 1) * k * k, gamma, new_edges, slope, bend
        )
    slope[0] -= inner_slope
    bend[0] -= inner_bend
    return total - less


cdef inline void _interpolate(
    const double* mu, const double* d, Py_ssize_t k, double gamma, double* new
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        new[j] = mu[j] + gamma * d[j]
        if new[j] < 0.0:
            new[j] = 0.0


cdef inline double _bend_at_end(
    const double* nodes, const double* edges, const double* dnodes, Py_ssize_t width,
    const double* dedges, Py_ssize_t length, Py_ssize_t k,
) noexcept nogil:
    """Return minus the second derivative of the entropy along d at its end."""
    cdef Py_ssize_t t, j
    cdef double total = 0.0, less = 0.0
    if length == 1:
        for j in range(k):
            total += dnodes[j] * dnodes[j] / (nodes[j] if nodes[j] > 1e-300 else 1e-300)
        return total
    for j in range((length - 1) * k * k):
        total += dedges[j] * dedges[j] / (edges[j] if edges[j] > 1e-300 else 1e-300)
    for t in range(1, length - 1):
        for j in range(k):
            less += (
                dnodes[t * width + j] * dnodes[t * width + j]
                / (nodes[t * k + j] if nodes[t * k + j] > 1e-300 else 1e-300)
            )
    return total - less if total > less else 0.0


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
    const Py_ssize_t[::1] order,
    double[:, ::1] nodes,
    double[:, :, ::1] edges,
    double[::1] entropies,
    double[::1] w,
    double[:, ::1] transitions,
):
    """Ascend along one sequence after the other, in the given order.

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Weights of sequences over alpha; zero to leave one out.
    nodes, edges : ndarray of shape (T, k), (T, k, k)
        Marginals, changed in place; ``edges[t]`` is of the pair that ends at t.
    entropies : ndarray of shape (n,)
        Of the marginals, changed in place.
    w : ndarray
        Parameters of pairs, changed in place.
    transitions : ndarray of shape (k, k)
        Minus infinity where forbidden, changed in place.

    Returns
    -------
    n_trials : int
        Number of evaluations of entropies on lines.
    """
    cdef Py_ssize_t k = nodes.shape[1], width, longest = 1, most = 1, o, i, t, j, a, b
    cdef Py_ssize_t start, length, n_trials = 0, trial, size
    cdef double c, q, gamma, low, high, value, slope, bend, product, gain, step
    cdef const double* entries = &data[0] if data.shape[0] else NULL
    cdef double* room
    cdef double* z
    cdef double* new_nodes
    cdef double* new_edges
    cdef double* p_nodes
    cdef double* dnodes
    cdef double* dedges
    cdef double* moved
    cdef double* T = &transitions[0, 0]
    cdef double* model_T
    cdef Lattice lattice
    cdef Features features
    cdef Parameters params
    _check(
        local, indptr, starts, own, own_ptr, ptr, labels, mask, ends, steps, order,
        nodes, w, stride,
    )
    if edges.shape[0] != nodes.shape[0] or edges.shape[1] != k or edges.shape[2] != k:
        raise ValueError("marginals of labels and of pairs differ in shape.")
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
    size = longest * (3 * k + 2 * width + 2 * k * k) + 2 * most * width + 2 * k * k
    room = <double*> allocate(size * sizeof(double))
    z = room
    p_nodes = z + longest * k + width
    new_nodes = p_nodes + longest * k
    dnodes = new_nodes + longest * k
    dedges = dnodes + longest * width
    new_edges = dedges + (longest - 1) * k * k
    moved = new_edges + (longest - 1) * k * k
    model_T = moved + k * k
    features.params = model_T + k * k
    features.gradient = features.params + most * width
    open_lattice(&lattice, k, longest)
    for j in range(k * k):
        model_T[j] = _soft(T[j], threshold)
    set_pattern(&lattice, model_T)
    set_transitions(&lattice, model_T)
    memset(dnodes, 0, longest * width * sizeof(double))
    with nogil:
        for o in range(order.shape[0]):
            i = order[o]
            if steps[i] == 0.0:
                continue
            start = starts[i]
            length = starts[i + 1] - start
            features.size = own_ptr[i + 1] - own_ptr[i]
            features.own = &own[0] + own_ptr[i]
            _gather(&features, &params)
            for t in range(length):
                a = indptr[start + t]
                padded_scores(
                    entries + a if entries != NULL else NULL, &local[0] + a,
                    indptr[start + t + 1] - a, width, features.params, z + t * k,
                )
            for j in range(k):
                z[j] += ends[0, j]
                z[(length - 1) * k + j] += ends[1, j]
            forward(&lattice, z, length)
            # The marginals at w, and the way to them.
            backward(
                &lattice, z, length, p_nodes, new_edges if length > 1 else NULL, NULL,
                1.0,
            )
            product = 0.0
            for t in range(length):
                for j in range(k):
                    dnodes[t * width + j] = p_nodes[t * k + j] - nodes[start + t, j]
                    # What is forbidden has no marginals.
                    if dnodes[t * width + j] != 0.0:
                        product += dnodes[t * width + j] * z[t * k + j]
            memset(moved, 0, k * k * sizeof(double))
            for t in range(1, length):
                for j in range(k * k):
                    dedges[(t - 1) * k * k + j] = (
                        new_edges[(t - 1) * k * k + j] - (&edges[start + t, 0, 0])[j]
                    )
                    moved[j] += dedges[(t - 1) * k * k + j]
            for j in range(k * k):
                if moved[j] != 0.0:
                    product += moved[j] * model_T[j]
            memset(
                features.gradient, 0, features.size * width * sizeof(double)
            )
            for t in range(length):
                a = indptr[start + t]
                add_padded_row(
                    entries + a if entries != NULL else NULL, &local[0] + a,
                    indptr[start + t + 1] - a, width, dnodes + t * width,
                    features.gradient,
                )
            c = _restrict(&features, &params)
            for a in range(k):
                for b in range(k):
                    if free[a, b]:
                        c += moved[a * k + b] * moved[a * k + b]
                    else:
                        moved[a * k + b] = 0.0
            c *= steps[i]
            q = _bend_at_end(
                p_nodes, new_edges, dnodes, width, dedges, length, k
            )
            # At the end of the line the slope is -c: one step of Newton's method back.
            gamma = q / (q + c) if q + c > 0.0 else 1.0
            low, high = 0.0, 1.0
            for trial in range(MAX_TRIALS):
                n_trials += 1
                value = _entropy_on_line(
                    &nodes[start, 0],
                    &edges[start + 1, 0, 0] if length > 1 else NULL,
                    dnodes, width, dedges, length, k, gamma, new_nodes, new_edges,
                    &slope, &bend,
                )
                slope += product - gamma * c
                bend += c
                gain = value - entropies[i] + gamma * (product - 0.5 * gamma * c)
                if fabs(slope) <= ACCURACY * c * gamma and (slope >= 0.0 or gain >= 0.0):
                    break
                if slope > 0.0:
                    low = gamma
                else:
                    high = gamma
                step = slope / bend if bend > 0.0 else 0.0
                gamma += step
                if not low < gamma < high:
                    gamma = 0.5 * (low + high)
                if high - low < 1e-10:
                    break
            # An unverified step might descend; what is left of it is rounding.
            if not (gain >= 0.0 or slope >= 0.0):
                continue
            entropies[i] = value
            memcpy(&nodes[start, 0], new_nodes, length * k * sizeof(double))
            if length > 1:
                memcpy(
                    &edges[start + 1, 0, 0], new_edges,
                    (length - 1) * k * k * sizeof(double),
                )
            step = gamma * steps[i]
            _move(&features, &params, step)
            for j in range(k * k):
                T[j] -= step * moved[j]
                model_T[j] = _soft(T[j], threshold)
            set_transitions(&lattice, model_T)
        close_lattice(&lattice)
        release(room)
    return n_trials


def sweep_vertices(
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
    const Py_ssize_t[::1] targets,
    bint slack,
    const double[::1] steps,
    const Py_ssize_t[::1] order,
    double[:, ::1] nodes,
    double[:, :, ::1] pairs,
    double[::1] costs,
    double[::1] w,
    double[:, ::1] transitions,
):
    """Do the same for the hinge, whose best marginals are those of one labeling.

    Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt & Pletscher 2013).

    Parameters
    ----------
    targets : ndarray of shape (T,)
        The right labels.
    slack : bool
        Whether slacks are rescaled. In place of marginals mu, for labelings with
        D wrong labels there is truth + D (mu - truth) then.
    pairs : ndarray of shape (n, k, k)
        Sums of the marginals of pairs, changed in place.
    costs : ndarray of shape (n,)
        Mean numbers of wrong labels, changed in place.
    """
    cdef Py_ssize_t k = nodes.shape[1], width, longest = 1, most = 1, o, i, t, j, a, b
    cdef Py_ssize_t start, length, n_wrong
    cdef double c, gap, step, rate
    cdef const double* entries = &data[0] if data.shape[0] else NULL
    cdef double* room
    cdef double* z
    cdef double* dnodes
    cdef double* moved
    cdef double* row
    cdef Py_ssize_t* worst
    cdef const Py_ssize_t* own_labels
    cdef Violations violations
    cdef double* T = &transitions[0, 0]
    cdef double* model_T
    cdef Features features
    cdef Parameters params
    _check(
        local, indptr, starts, own, own_ptr, ptr, labels, mask, ends, steps, order,
        nodes, w, stride,
    )
    if targets.shape[0] != nodes.shape[0]:
        raise ValueError("arrays of tokens differ in length.")
    if pairs.shape[0] != steps.shape[0] or pairs.shape[1] != k or pairs.shape[2] != k:
        raise ValueError("sequences and their marginals of pairs differ in shape.")
    if costs.shape[0] != steps.shape[0]:
        raise ValueError("sequences and their costs differ in number.")
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
    room = <double*> allocate(
        (longest * (k + width) + width + 2 * k * k + 2 * most * width)
        * sizeof(double)
        + longest * sizeof(Py_ssize_t)
    )
    z = room
    dnodes = z + longest * k + width
    moved = dnodes + longest * width
    model_T = moved + k * k
    features.params = model_T + k * k
    features.gradient = features.params + most * width
    worst = <Py_ssize_t*> (features.gradient + most * width)
    try:
        open_violations(&violations, k, longest, slack)
    except MemoryError:
        release(room)
        raise
    memset(dnodes, 0, longest * width * sizeof(double))
    for j in range(k * k):
        model_T[j] = _soft(T[j], threshold)
    with nogil:
        for o in range(order.shape[0]):
            i = order[o]
            if steps[i] == 0.0:
                continue
            start = starts[i]
            length = starts[i + 1] - start
            features.size = own_ptr[i + 1] - own_ptr[i]
            features.own = &own[0] + own_ptr[i]
            _gather(&features, &params)
            for t in range(length):
                a = indptr[start + t]
                padded_scores(
                    entries + a if entries != NULL else NULL, &local[0] + a,
                    indptr[start + t + 1] - a, width, features.params, z + t * k,
                )
            for j in range(k):
                z[j] += ends[0, j]
                z[(length - 1) * k + j] += ends[1, j]
            own_labels = &targets[start]
            most_violated(&violations, model_T, k, z, length, own_labels, worst)
            n_wrong = 0
            for t in range(length):
                n_wrong += worst[t] != own_labels[t]
            rate = n_wrong if slack else 1.0
            # The slope at the start of the line, with the costs of wrong labels.
            gap = n_wrong - costs[i]
            row = &pairs[i, 0, 0]
            for j in range(k * k):
                moved[j] = -row[j]
            for t in range(length):
                for j in range(k):
                    dnodes[t * width + j] = -nodes[start + t, j]
                dnodes[t * width + worst[t]] += rate
                dnodes[t * width + own_labels[t]] += 1.0 - rate
                if t > 0:
                    moved[worst[t - 1] * k + worst[t]] += rate
                    moved[own_labels[t - 1] * k + own_labels[t]] += 1.0 - rate
                for j in range(k):
                    if dnodes[t * width + j] != 0.0:
                        gap += dnodes[t * width + j] * z[t * k + j]
            for j in range(k * k):
                if moved[j] != 0.0:
                    gap += moved[j] * model_T[j]
            if gap <= 0.0:
                continue
            memset(features.gradient, 0, features.size * width * sizeof(double))
            for t in range(length):
                a = indptr[start + t]
                add_padded_row(
                    entries + a if entries != NULL else NULL, &local[0] + a,
                    indptr[start + t + 1] - a, width, dnodes + t * width,
                    features.gradient,
                )
            c = _restrict(&features, &params)
            for a in range(k):
                for b in range(k):
                    if free[a, b]:
                        c += moved[a * k + b] * moved[a * k + b]
            c *= steps[i]
            step = gap / c if gap < c else 1.0
            for t in range(length):
                for j in range(k):
                    nodes[start + t, j] += step * dnodes[t * width + j]
            costs[i] += step * (n_wrong - costs[i])
            for j in range(k * k):
                row[j] += step * moved[j]
            step *= steps[i]
            _move(&features, &params, step)
            for a in range(k):
                for b in range(k):
                    if free[a, b]:
                        T[a * k + b] -= step * moved[a * k + b]
                        model_T[a * k + b] = _soft(T[a * k + b], threshold)
        close_violations(&violations)
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
