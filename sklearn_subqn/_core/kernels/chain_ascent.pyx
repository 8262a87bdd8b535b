"""Dual coordinate ascent over the sequences of chains, for the log-likelihood.

The dual variables of sequence i are the marginals mu_i of a chain, of labels and of
pairs of adjacent labels, with the entropy H(mu_i); w = -sum_i steps_i F_i (mu_i -
truth_i) for its features F_i. They are those of potentials theta_i, of the shape of the
scores z:

    mu = mu(theta),  H = ln Z(theta) - <mu, theta>,

so that no logarithm of a marginal is taken, and theta has one number for each label of a
token and one for each transition with a parameter, which the tokens of a sequence share.
A step goes to theta + gamma (z - theta) for the scores z at the current w. With the
change d of the marginals the dual grows, in units of the sequence's weight, by

    H(mu + d) - H(mu) + <d, z> - c / 2,  c = steps_i ||F_i d||²,

and its slope there along d is (1 - gamma) q - c with q = <d, z - theta> >= 0. Since d is
about proportional to gamma it vanishes near gamma q / (gamma q + c). One evaluation at
the sequence's last gamma serves as a step and predicts the next, unless it went down or
ended far from where the slope vanishes.

A sequence begins at its true labels, where theta is infinite. It leaves them for theta =
z + B truth: with m wrong labels expected, the slope is B m - c there, m falls about as
exp(-B) and c as m², so that B exp(B) = exp(B') c' / m' for those of a trial B'.

Features of a sequence are gathered once: ``own[own_ptr[i] : own_ptr[i + 1]]`` are those
of sequence i, and ``local`` of shape (nnz,) has their places among them, in the order
of the stored entries of X, whose values ``data`` are empty where all are one.

With an L1 penalty the model is what remains of w behind a threshold. The dual then has
another quadratic term, which is nowhere larger than that above.
"""

from .chain_features cimport (
    Features,
    Parameters,
    check_features,
    gather,
    move,
    set_patterns,
    soft,
    squared_gradient,
    write_scores,
)
from .lattice cimport (
    Lattice,
    backward,
    close_lattice,
    forward,
    open_lattice,
    padded,
    renew_some_transitions,
    set_pattern,
)
from .padded_rows cimport shifted_product
from .rows cimport allocate, index
from .standard cimport INFINITY, exp, fabs, free, log, memcpy, memset

# A step is taken where gamma + c / q, which is one where the slope vanishes, is within
# these; of those out of the true labels, where c and B m differ by this share at most.
# After so many trials the last one that does not go down is taken.
cdef double LEAST = 0.5
cdef double MOST = 1.6
cdef double ACCURACY = 0.5
cdef enum:
    MAX_TRIALS = 10


cdef struct Potentials:
    # Of all labels of tokens, (L, width), and of the m transitions with a parameter.
    double* labels
    double* pairs


cdef struct Visit:
    # The sequence under way.
    Py_ssize_t k
    Py_ssize_t width
    Py_ssize_t m
    Py_ssize_t length
    double step  # its weight over alpha
    const Py_ssize_t* truth
    Features features
    Potentials z  # scores at w
    Potentials theta  # dual variables
    Potentials mu
    double* entropy
    double* rate  # the last gamma, zero at the true labels
    # A trial.
    Lattice lattice
    const int* places  # of the m transitions in those of the lattice
    int* mirrored  # in those of the transpose
    double* others  # see ``renew_some_transitions``
    const double* ends  # (2, width), or NULL
    double* kept  # (2, width)
    Potentials new
    Potentials d
    double new_entropy
    double new_size
    double q
    double c
    double gain


cdef inline void _infer(Visit* v) noexcept nogil:
    """Find the marginals of the new potentials, and their entropy."""
    cdef Py_ssize_t width = v.width, length = v.length, t, j
    cdef double total, value
    cdef double* last = v.new.labels + (length - 1) * width
    cdef const double* new = v.new.labels
    cdef const double* nodes = v.lattice.nodes
    if length > 1:
        renew_some_transitions(
            &v.lattice, v.new.pairs, v.m, v.places, v.mirrored, v.others
        )
    if v.ends != NULL:
        # What is forbidden is minus infinity for these sums only.
        memcpy(v.kept, v.new.labels, width * sizeof(double))
        memcpy(v.kept + width, last, width * sizeof(double))
        for j in range(width):
            v.new.labels[j] += v.ends[j]
        for j in range(width):
            last[j] += v.ends[width + j]
    forward(&v.lattice, v.new.labels, width, length)
    backward(&v.lattice, v.new.labels, width, length, NULL)
    if v.ends != NULL:
        memcpy(v.new.labels, v.kept, width * sizeof(double))
        memcpy(last, v.kept + width, width * sizeof(double))
    total = 0.0
    for t in range(length):
        total += shifted_product(nodes, new, v.lattice.highs[t], width)
        nodes += width
        new += width
    # Of the sums, what is lost to rounding is a share of their terms.
    v.new_size = fabs(v.lattice.rest) + fabs(total)
    if length > 1:
        v.new_size += (length - 1) * fabs(v.lattice.top)
        for j in range(v.m):
            value = v.lattice.pairs[v.places[j]] * v.new.pairs[j]
            total += value
            v.new_size += fabs(value)
    v.new_entropy = v.lattice.rest - total


cdef inline void _evaluate(Visit* v, const Parameters* p) noexcept nogil:
    """Do so, and find what going there does."""
    cdef Py_ssize_t width = v.width, j, b, c, at
    cdef double product, change
    cdef double along[4]
    cdef double moved[4]
    cdef double* d = v.d.labels
    cdef const double* theta = v.theta.labels
    cdef const double* z = v.z.labels
    cdef const double* nodes = v.lattice.nodes
    cdef const double* mu = v.mu.labels
    _infer(v)
    for c in range(4):
        along[c] = moved[c] = 0.0
    for b in range(v.length * width >> 2):
        for c in range(4):
            change = nodes[c] - mu[c]
            d[c] = change
            along[c] += change * (z[c] - theta[c])
            moved[c] += change * z[c]
        d += 4
        mu += 4
        nodes += 4
        z += 4
        theta += 4
    v.q = (along[0] + along[1]) + (along[2] + along[3])
    product = (moved[0] + moved[1]) + (moved[2] + moved[3])
    v.c = squared_gradient(&v.features, p, v.d.labels)
    for j in range(v.m):
        at = v.places[j]
        change = v.lattice.pairs[at] - v.mu.pairs[j]
        v.d.pairs[j] = change
        v.q += change * (v.z.pairs[j] - v.theta.pairs[j])
        product += change * v.z.pairs[j]
        v.c += change * change
    v.c *= v.step
    v.gain = v.new_entropy - v.entropy[0] + product - 0.5 * v.c


cdef inline double _step(Visit* v, const Parameters* p) noexcept nogil:
    """Go towards the scores; return the gap there was, or zero for no step."""
    cdef Py_ssize_t j, n
    cdef double gamma = v.rate[0], low = 0.0, high = 1.0, ratio, best
    for n in range(MAX_TRIALS):
        for j in range(v.length * v.width):
            v.new.labels[j] = v.theta.labels[j] + gamma * (
                v.z.labels[j] - v.theta.labels[j]
            )
        for j in range(v.m):
            v.new.pairs[j] = v.theta.pairs[j] + gamma * (
                v.z.pairs[j] - v.theta.pairs[j]
            )
        _evaluate(v, p)
        if not v.q > 0.0:
            return 0.0
        ratio = gamma + v.c / v.q
        best = gamma * v.q / (gamma * v.q + v.c)
        # Of tiny steps the gain is lost to rounding, but not the slope.
        if (v.gain >= 0.0 or ratio <= 1.0) and LEAST <= ratio <= MOST:
            break
        if ratio > 1.0:
            high = gamma
        else:
            low = gamma
        if n == MAX_TRIALS - 1:
            if v.gain < 0.0 and ratio > 1.0:
                v.rate[0] = 0.5 * gamma
                return 0.0
            break
        gamma = best if low < best < high else 0.5 * (low + high)
    v.rate[0] = best
    return 0.5 * v.q / gamma


cdef inline double _leave(Visit* v, const Parameters* p, double* reach) noexcept nogil:
    """Leave the true labels; return the gain, or zero for no step.

    ``reach`` is where to begin to look for B, and where it ended.
    """
    cdef Py_ssize_t width = v.width, t, n
    cdef double B = reach[0], low = 0.0, high = INFINITY, wrong, slope, next
    for n in range(MAX_TRIALS):
        memcpy(v.new.labels, v.z.labels, v.length * width * sizeof(double))
        memcpy(v.new.pairs, v.z.pairs, v.m * sizeof(double))
        for t in range(v.length):
            v.new.labels[t * width + v.truth[t]] += B
        _evaluate(v, p)
        wrong = 0.0
        for t in range(v.length):
            wrong -= v.d.labels[t * width + v.truth[t]]
        if not wrong > 0.0:
            return 0.0
        slope = B * wrong - v.c
        if v.gain >= 0.0 and fabs(slope) <= ACCURACY * max(B * wrong, v.c):
            break
        if slope > 0.0:
            high = B
        else:
            low = B
        if n == MAX_TRIALS - 1:
            if v.gain < 0.0:
                return 0.0
            break
        next = _balanced(v.c / wrong, B)
        if not low < next < high:
            next = 0.5 * (low + high) if high < INFINITY else 2.0 * B + 1.0
        B = next
    reach[0] = B
    v.rate[0] = 1.0 / (1.0 + B)
    return v.gain


cdef inline double _balanced(double share, double B) noexcept nogil:
    """Return x with x exp(x) = share exp(B): Lambert's function, by Newton's method."""
    cdef Py_ssize_t n
    cdef double y, x
    if share <= 0.0:
        return 0.0
    y = log(share) + B
    x = y - log(y) if y > 1.0 else exp(y - 1.0)
    for n in range(3):
        x *= (1.0 + y - log(x)) / (1.0 + x)
    return x


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
    double threshold,
    const double[::1] steps,
    const Py_ssize_t[::1] targets,
    double[::1] w,
    double[::1] T,
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
    const Py_ssize_t[::1] order,
    double[:, ::1] theta,
    double[:, ::1] theta_pairs,
    double[:, ::1] mu,
    double[:, ::1] mu_pairs,
    double[::1] entropies,
    double[::1] sizes,
    double[::1] rates,
    double[::1] gaps,
):
    """Ascend along one sequence after the other, in the given order.

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Weights of sequences over alpha; zero to leave one out.
    targets : ndarray of shape (T,)
        The true labels.
    w : ndarray
        Parameters of pairs, changed in place.
    T : ndarray of shape (m,)
        Parameters of transitions, changed in place.
    pattern : ndarray of shape (k, width)
        Minus infinity where a transition is forbidden or padding, else zero.
    places : ndarray of shape (m,)
        Where in ``pattern`` the transitions with a parameter are.
    ends : ndarray of shape (2, width)
        What is added to the scores of first and last tokens: zero or minus infinity.
        Without rows for nothing.
    theta, theta_pairs : ndarray of shape (T, width) and (n, m)
        Potentials, changed in place; of sequences at their true labels not read.
    mu, mu_pairs : ndarray of shape (T, width) and (n, m)
        Their marginals, those of pairs summed over each sequence.
    entropies, sizes : ndarray of shape (n,)
        Entropies, and the absolute sums of the terms that they are made of.
    rates : ndarray of shape (n,)
        Of each sequence the last gamma; zero where it is at its true labels.
    gaps : ndarray of shape (n,)
        Receives about how far each sequence was from its best at this w.
    """
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), m = places.shape[0]
    cdef Py_ssize_t longest = 1, most = 1, o, i, j
    cdef double gap, reach = 1.0
    cdef double* room
    cdef Visit v
    cdef Parameters p
    check_features(
        local, indptr, starts, own, own_ptr, ptr, labels, mask, w, stride, k, order
    )
    _check_state(
        pattern, places, ends, starts, theta, theta_pairs, mu, mu_pairs, entropies, sizes
    )
    if T.shape[0] != m or targets.shape[0] != theta.shape[0]:
        raise ValueError("arrays of tokens or transitions differ in length.")
    if (
        steps.shape[0] != entropies.shape[0] or rates.shape[0] != entropies.shape[0]
        or gaps.shape[0] != entropies.shape[0]
    ):
        raise ValueError("arrays of sequences differ in length.")
    for o in range(order.shape[0]):
        i = order[o]
        longest = max(longest, starts[i + 1] - starts[i])
        most = max(most, own_ptr[i + 1] - own_ptr[i])
    p.k, p.width, p.stride = k, width, stride
    p.ptr = &ptr[0]
    p.labels = &labels[0] if labels.shape[0] else NULL
    p.mask = &mask[0] if mask.shape[0] else NULL
    p.w = &w[0] if w.shape[0] else NULL
    p.threshold = threshold
    set_patterns(&p)
    room = <double*> allocate(2 * width * most * sizeof(double))
    v.features.params = room
    v.features.gradient = room + most * width
    try:
        _open(&v, longest, pattern, places, ends)
    except MemoryError:
        free(room)
        raise
    v.features.data = &data[0] if data.shape[0] else NULL
    v.features.local = &local[0] if local.shape[0] else NULL
    with nogil:
        for j in range(m):
            v.z.pairs[j] = soft(T[j], threshold)
        for o in range(order.shape[0]):
            i = order[o]
            if steps[i] == 0.0:
                continue
            v.length = v.features.length = starts[i + 1] - starts[i]
            v.m = m if v.length > 1 else 0
            v.step = steps[i]
            v.truth = &targets[starts[i]]
            v.theta.labels = &theta[starts[i], 0]
            v.mu.labels = &mu[starts[i], 0]
            if m:
                v.theta.pairs = &theta_pairs[i, 0]
                v.mu.pairs = &mu_pairs[i, 0]
            v.entropy, v.rate = &entropies[i], &rates[i]
            v.features.indptr = &indptr[starts[i]]
            v.features.size = own_ptr[i + 1] - own_ptr[i]
            v.features.own = &own[0] + own_ptr[i]
            gather(&v.features, &p)
            write_scores(&v.features, &p, v.z.labels)
            if rates[i] == 0.0:
                gap = _leave(&v, &p, &reach)
            else:
                gap = _step(&v, &p)
            gaps[i] = gap
            if gap == 0.0:
                continue
            entropies[i], sizes[i] = v.new_entropy, v.new_size
            memcpy(
                v.theta.labels, v.new.labels, v.length * width * sizeof(double)
            )
            memcpy(
                v.mu.labels, v.lattice.nodes, v.length * width * sizeof(double)
            )
            move(&v.features, &p, steps[i])
            for j in range(v.m):
                v.theta.pairs[j] = v.new.pairs[j]
                v.mu.pairs[j] = v.lattice.pairs[places[j]]
                T[j] -= steps[i] * v.d.pairs[j]
                v.z.pairs[j] = soft(T[j], threshold)
        _close(&v)
        free(room)


def begin(
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
    const Py_ssize_t[::1] starts,
    const double[:, ::1] theta,
    const double[:, ::1] theta_pairs,
    double[:, ::1] mu,
    double[:, ::1] mu_pairs,
    double[::1] entropies,
    double[::1] sizes,
):
    """Write marginals, entropies and the sizes of their terms for given potentials.

    Arrays are those of ``sweep``.
    """
    cdef Py_ssize_t width = padded(pattern.shape[0]), m = places.shape[0]
    cdef Py_ssize_t n = entropies.shape[0], longest = 1, i, j
    cdef Visit v
    _check_state(
        pattern, places, ends, starts, theta, theta_pairs, mu, mu_pairs, entropies, sizes
    )
    for i in range(n):
        longest = max(longest, starts[i + 1] - starts[i])
    _open(&v, longest, pattern, places, ends)
    with nogil:
        for i in range(n):
            v.length = starts[i + 1] - starts[i]
            v.m = m if v.length > 1 else 0
            memcpy(
                v.new.labels, &theta[starts[i], 0], v.length * width * sizeof(double)
            )
            for j in range(v.m):
                v.new.pairs[j] = theta_pairs[i, j]
            _infer(&v)
            entropies[i], sizes[i] = v.new_entropy, v.new_size
            memcpy(
                &mu[starts[i], 0], v.lattice.nodes, v.length * width * sizeof(double)
            )
            for j in range(v.m):
                mu_pairs[i, j] = v.lattice.pairs[places[j]]
        _close(&v)


cdef int _open(
    Visit* v,
    Py_ssize_t longest,
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
) except -1:
    """Make room for trials of sequences of so many tokens at most."""
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), m = places.shape[0]
    cdef Py_ssize_t square = width * width, i, j
    cdef bint other = False
    cdef double* room = <double*> allocate(
        (3 * (longest * width + m) + 2 * width + 2 * square) * sizeof(double)
        + m * sizeof(int)
    )
    try:
        open_lattice(&v.lattice, k, longest)
    except MemoryError:
        free(room)
        raise
    v.k, v.width = k, width
    v.z.labels = room
    v.new.labels = v.z.labels + longest * width
    v.d.labels = v.new.labels + longest * width
    v.z.pairs = v.d.labels + longest * width
    v.new.pairs = v.z.pairs + m
    v.d.pairs = v.new.pairs + m
    v.kept = v.d.pairs + m
    v.others = v.kept + 2 * width
    v.mirrored = <int*> (v.others + 2 * square)
    v.ends = &ends[0, 0] if ends.shape[0] else NULL
    v.places = &places[0] if m else NULL
    memset(v.others, 0, 2 * square * sizeof(double))
    for i in range(k):
        for j in range(k):
            v.others[i * width + j] = pattern[i, j] == 0.0
    for j in range(m):
        v.others[places[j]] = 0.0
        v.mirrored[j] = <int> (places[j] % width * width + places[j] // width)
    for i in range(k):
        for j in range(k):
            v.others[square + j * width + i] = v.others[i * width + j]
            other = other or v.others[i * width + j] != 0.0
    if not other:
        v.others = NULL
    try:
        set_pattern(&v.lattice, &pattern[0, 0], width)
    except MemoryError:
        _close(v)
        raise
    memcpy(v.lattice.transitions, &pattern[0, 0], k * width * sizeof(double))
    return 0


cdef void _close(Visit* v) noexcept nogil:
    close_lattice(&v.lattice)
    free(v.z.labels)


cdef int _check_state(
    const double[:, ::1] pattern,
    const int[::1] places,
    const double[:, ::1] ends,
    const Py_ssize_t[::1] starts,
    const double[:, ::1] theta,
    const double[:, ::1] theta_pairs,
    const double[:, ::1] mu,
    const double[:, ::1] mu_pairs,
    const double[::1] entropies,
    const double[::1] sizes,
) except -1:
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), m = places.shape[0]
    cdef Py_ssize_t n = entropies.shape[0], j
    if pattern.shape[1] != width or ends.shape[1] != width or ends.shape[0] not in (0, 2):
        raise ValueError(f"rules of {k} labels are not padded to {width}.")
    if theta.shape[1] != width or mu.shape[1] != width:
        raise ValueError(f"potentials of {k} labels are not padded to {width}.")
    if theta_pairs.shape[1] != m or mu_pairs.shape[1] != m:
        raise ValueError("transitions differ in number.")
    if starts.shape[0] != n + 1 or sizes.shape[0] != n:
        raise ValueError("arrays of sequences differ in length.")
    if theta_pairs.shape[0] != n or mu_pairs.shape[0] != n:
        raise ValueError("arrays of sequences differ in length.")
    if theta.shape[0] != starts[n] or mu.shape[0] != starts[n]:
        raise ValueError("arrays of tokens differ in length.")
    for j in range(m):
        if not 0 <= places[j] < k * width:
            raise ValueError(f"transition {places[j]} is none of {k} labels.")
    return 0
