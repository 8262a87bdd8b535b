"""Steps of dual ascent along one sequence of a chain, for the log-likelihood.

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

With an L1 penalty the model is what remains of w behind a threshold. The dual then has
another quadratic term, which is nowhere larger than that above.
"""

from .chain_features cimport Features, Parameters, squared_gradient
from .lattice cimport Lattice, renew_some_transitions
from .lattice_sums cimport backward, forward
from .padded_rows cimport shifted_product
from .standard cimport INFINITY, exp, fabs, log, memcpy

# A search for a step takes ten trials at most, and then the last one if it does not go
# down.
cdef enum:
    MAX_TRIALS = 10


cdef struct Potentials:
    # All labels of tokens have potentials (L, width), and the m transitions with a
    # parameter have others.
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


cdef inline void infer(Visit* v) noexcept nogil:
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
        # Forbidden labels have minus infinity for these sums only.
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
    # Rounding takes a share of the terms of the sums.
    v.new_size = fabs(v.lattice.rest) + fabs(total)
    if length > 1:
        v.new_size += (length - 1) * fabs(v.lattice.top)
        for j in range(v.m):
            value = v.lattice.pairs[v.places[j]] * v.new.pairs[j]
            total += value
            v.new_size += fabs(value)
    v.new_entropy = v.lattice.rest - total


cdef inline void _evaluate(Visit* v, const Parameters* p) noexcept nogil:
    """Find the marginals, and what a step to them does to the dual."""
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
        # Where the slope vanishes, the ratio is one; near there the step is taken. Of
        # tiny steps the gain is lost to rounding, but not the slope.
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
        # The slope vanishes where B m and c are equal. They need only agree to one
        # half.
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
