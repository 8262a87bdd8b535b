"""Dual ascent step for one sequence of a chain, for the log-likelihood.

The dual variables of sequence i are the marginals mu_i, of labels and of pairs of
adjacent labels, with the entropy H(mu_i). The primal parameters are w = -sum_i steps_i
F_i (mu_i - truth_i) for the features F_i. The marginals are represented by potentials
theta_i of the shape of the scores z:

    mu = mu(theta),  H = ln Z(theta) - <mu, theta>,

No logarithm of a marginal is computed. The potentials have one number for each label of
a token, and one for each transition with a parameter, shared by the tokens of a
sequence. A step moves to theta + gamma (z - theta), where z are the scores at the
current w. If the marginals change by d, the dual objective, divided by the sequence's
weight, increases by

    H(mu + d) - H(mu) + <d, z> - c / 2,  c = steps_i ||F_i d||²,

and its slope along d at the new point is (1 - gamma) q - c, with q = <d, z - theta> >=
0. Because d is approximately proportional to gamma, the slope vanishes near gamma q /
(gamma q + c). One evaluation at the sequence's last gamma is usually enough for a step,
and predicts the next gamma. Further trials follow only if the objective decreased or
the slope is far from zero.

A sequence starts at its true labels, where theta is infinite. The first step moves to
theta = z + B truth. With m expected wrong labels, the slope there is B m - c; m
decreases like exp(-B), and c like m². With c' and m' at a trial B', the root of the
slope therefore satisfies B exp(B) = exp(B') c' / m'.

With an L1 penalty the model is the soft threshold of w. The quadratic term of the dual
is then at most c / 2, so the increase above is a lower bound.
"""

from .chain_features cimport Features, Parameters, squared_gradient
from .lattice cimport Lattice, renew_transitions
from .lattice_sums cimport backward, forward
from .padded_rows cimport shifted_product
from .standard cimport INFINITY, exp, fabs, log, memcpy

# Maximum number of trials of a line search; then the last trial is taken unless the
# objective decreased.
cdef enum:
    MAX_TRIALS = 10


cdef struct Potentials:
    # Potentials of the labels of tokens, (L, width), and of the m transitions with a
    # parameter.
    double* labels
    double* pairs


cdef struct Visit:
    # The current sequence.
    Py_ssize_t k
    Py_ssize_t width
    Py_ssize_t m
    Py_ssize_t length
    double step  # weight of the sequence divided by alpha
    const Py_ssize_t* truth
    Features features
    Potentials z  # scores at w
    Potentials theta  # potentials of the dual variables
    Potentials mu
    double* entropy
    double* rate  # the last gamma, zero at the true labels
    # A trial step.
    Lattice lattice
    const int* places  # indices of the m transitions in the lattice
    const double* ends  # (2, width), or NULL
    double* kept  # (2, width)
    Potentials new
    Potentials d
    double new_entropy
    double new_size
    double q
    double c
    double gain


cdef inline void infer(Visit* v) noexcept nogil:
    """Compute the marginals of the new potentials, and their entropy."""
    cdef Py_ssize_t width = v.width, length = v.length, t, j
    cdef double total, value
    cdef double* last = v.new.labels + (length - 1) * width
    cdef const double* new = v.new.labels
    cdef const double* nodes = v.lattice.nodes
    if length > 1:
        for j in range(v.m):
            v.lattice.transitions[v.places[j]] = v.new.pairs[j]
        renew_transitions(&v.lattice)
    if v.ends != NULL:
        # Forbidden first and last labels are minus infinity in these sums only.
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
    # The rounding error is proportional to the sum of absolute terms.
    v.new_size = fabs(v.lattice.rest) + fabs(total)
    if length > 1:
        v.new_size += (length - 1) * fabs(v.lattice.top)
        for j in range(v.m):
            value = v.lattice.pairs[v.places[j]] * v.new.pairs[j]
            total += value
            v.new_size += fabs(value)
    v.new_entropy = v.lattice.rest - total


cdef inline void _evaluate(Visit* v, const Parameters* p) noexcept nogil:
    """Compute the marginals of a trial, and the increase of the dual objective."""
    cdef Py_ssize_t width = v.width, j, b, c, at
    cdef double product, change
    cdef double along[4]
    cdef double moved[4]
    cdef double* d = v.d.labels
    cdef const double* theta = v.theta.labels
    cdef const double* z = v.z.labels
    cdef const double* nodes = v.lattice.nodes
    cdef const double* mu = v.mu.labels
    infer(v)
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


cdef inline double take_step(Visit* v, const Parameters* p) noexcept nogil:
    """Step towards the scores; return the gap before the step, or zero for no step."""
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
        # ``ratio`` is one where the derivative along the step vanishes; steps with a
        # ratio near one are accepted. For tiny steps the gain is a rounding error, so
        # the derivative decides.
        if (v.gain >= 0.0 or ratio <= 1.0) and 0.5 <= ratio <= 1.6:
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


cdef inline double leave_truth(Visit* v, const Parameters* p, double* reach) noexcept nogil:
    """Leave the true labels; return the gain, or zero for no step.

    ``reach`` is the first trial of B, and receives the last one.
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
        # The slope B m - c vanishes at the maximum. A slope of at most half of the
        # larger of its two terms is accepted.
        if v.gain >= 0.0 and fabs(slope) <= 0.5 * max(B * wrong, v.c):
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
