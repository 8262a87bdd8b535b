"""Minimizing J(W) = alpha / 2 ||W||² + sum_i s_i (ln sum_c exp(z_ic) - z_iy) in one loop.

Rows are dense, with scores z_i = x_i W of k classes y, and columns are divided by sizes
in products. At the probabilities P of W, U = s (P - Y) is a dual point, and all that
Fenchel-Young's inequality leaves is

    J(W) - D(U) = ||alpha W + XᵀU||² / (2 alpha)                                   (1)

if U sums to zero where there are free intercepts. Newton's method solves systems of all
parameters (Böhning 1992, eq. 3.1), whose blocks for classes a and b are

    alpha I [a = b] + Xᵀ diag(s p_a ([a = b] - p_b)) X,                             (2)

and takes the full step, or half of it and so on, until the slope there is no more than
half of what it was. Where these blocks take much longer than products with X, and not
all digits are asked for, directions are those of L-BFGS first, from the estimate

    alpha I + (sum_i s_i p_a (1 - p_a)) Xᵀ diag(s) X                               (3)

of the blocks a = b, as if classes did not depend on features.
"""

from scipy.linalg.cython_blas cimport dgemm

from .dense_rows cimport (
    GRAM_ROWS, dense_factor, dense_gram, dense_solve, dense_substitute,
)
from .exponentials cimport exponentials
from .limited_memory cimport (
    MEMORY, Pairs, begin_step, end_step, first_loop, inner, second_loop,
)
from .rows cimport allocate
from .standard cimport INFINITY, fabs, free, log, memset

cdef enum:
    MOST_STEPS = 50
    MOST_HALVINGS = 60
    # At first the Hessian is that of 32 rows for each parameter of a class.
    # docs/constants.md has the figures.
    SAMPLED = 32
    # Steps of L-BFGS, at most, before Hessians and without them.
    MOST_PAIRED = 40
    MOST_WITHOUT = 24
    # There are no Hessians of more parameters, whose factors would take too long.
    MOST_PARAMS = 200
    # The blocks have to be as many numbers as this for each product with X.
    # docs/constants.md has the figures.
    DEAR = 40

# All rows have part in the Hessian once a step leaves more than a quarter of the gap.
# docs/constants.md has the figures.
cdef double SLOW = 0.25

# A step may climb with half of the slope with which it began.
cdef double TOO_FAR = 0.5

# Gaps below 1e-10 of J may be rounding errors, where they fall slowly.
cdef double NEARLY_ROUNDED = 1e-10

# Newton's method finds the last digits sooner: it is alone from this tolerance on.
cdef double FEW_DIGITS = 1e-9


cdef struct Problem:
    const double* X
    const Py_ssize_t* y
    const double* s
    # There are intercepts if q parameters of a class are one more than d features.
    Py_ssize_t n, d, q, k, n_penalized
    double alpha
    # Parameters W and the gradient class by class, scores and probabilities by rows.
    double* W
    double* Z
    double* P
    double* G
    # What multiplies columns, of an intercept one, and room for such products.
    double* factors
    double* scaled
    # Room of ``dense_gram``.
    double* block
    # Whether there is room for Hessians.
    bint has_room
    # What ``evaluate`` finds: J and its gap.
    double value, gap


def minimize(
    const double[:, ::1] X,
    const double[::1] sizes,
    const Py_ssize_t[::1] labels,
    const double[::1] weights,
    double alpha,
    Py_ssize_t n_penalized,
    double tol,
    double[:, ::1] W,
    double[:, ::1] dual,
):
    """Minimize until the gap (1) is at most tol |J|, or shrinks no more.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    sizes : ndarray of shape (d,)
        Positive numbers by which the columns are divided in products.
    labels : ndarray of shape (n,)
        y, from 0 to k - 1.
    weights : ndarray of shape (n,)
        s.
    alpha : float
    n_penalized : int
        Of q k parameters in the order of W, those from this one on are free: the
        intercepts or none.
    tol : float
    W : ndarray of shape (q, k)
        The start; on return the minimizer. With q = d + 1 the last row has intercepts.
    dual : ndarray of shape (n, k)
        On return U.

    Returns
    -------
    reached : bool
        Whether the gap is so small.
    """
    cdef Py_ssize_t i, n = X.shape[0], d = X.shape[1], q = W.shape[0], k = W.shape[1]
    cdef bint reached
    cdef Problem o
    if q < d or q > d + 1 or not n or not k or n_penalized not in (d * k, q * k):
        raise ValueError(f"parameters of shape {(q, k)} for {n} rows of {d} features")
    if sizes.shape[0] != d:
        raise ValueError(f"{len(sizes)} sizes of {d} features")
    if labels.shape[0] != n or weights.shape[0] != n:
        raise ValueError(f"{len(labels)} labels, {len(weights)} weights for {n} rows")
    if dual.shape[0] != n or dual.shape[1] != k:
        raise ValueError(f"dual variables are not of shape {(n, k)}")
    for i in range(n):
        if not 0 <= labels[i] < k:
            raise ValueError(f"the label {labels[i]} is none of {k} classes")
    o.has_room = q * k <= MOST_PARAMS
    cdef Py_ssize_t c, j, size = n * (3 * k + 1) + GRAM_ROWS * (q + k) + q * q
    size += q * k * ((q * k if o.has_room else q) + 4 + 2 * MEMORY) + q
    cdef double* room = <double*> allocate(size * sizeof(double))
    o.X, o.y, o.s = &X[0, 0], &labels[0], &weights[0]
    o.n, o.d, o.q, o.k, o.n_penalized, o.alpha = n, d, q, k, n_penalized // k, alpha
    o.P, o.Z, o.G, o.W = room, room + n * k, room + 2 * n * k, room + (2 * n + q) * k
    o.factors, o.scaled = o.W + q * k, o.W + q * k + q
    o.block = o.scaled + q * k
    for j in range(q):
        o.factors[j] = 1.0 / sizes[j] if j < d else 1.0
    try:
        with nogil:
            for c in range(k):
                for j in range(q):
                    o.W[c * q + j] = W[j, c]
            reached = take_steps(&o, tol, o.block + GRAM_ROWS * (q + k))
            for c in range(k):
                for j in range(q):
                    W[j, c] = o.W[c * q + j]
            to_dual(&o, &dual[0, 0])
    finally:
        free(room)
    return bool(reached)


cdef bint take_steps(Problem* o, double tol, double* room) noexcept nogil:
    """Take steps; the room is for direction, its scores, Hessians and pairs."""
    cdef Py_ssize_t i, m = o.q * o.k, size = o.n * o.k
    cdef Py_ssize_t stride = max(o.n // (SAMPLED * o.q), 1)
    cdef double* p = room
    cdef double* dz = p + m
    cdef double* H = dz + size
    cdef double* gram = H + m * (m if o.has_room else o.q)
    cdef int most = MOST_PAIRED if o.has_room else MOST_WITHOUT
    cdef double step, slope, before = INFINITY
    cdef int trial, halving
    cdef bint paired = tol > FEW_DIGITS and o.q * (o.k - 1) > DEAR
    cdef Pairs pairs
    pairs.m, pairs.n, pairs.dw = m, 0, gram + o.q * o.q + o.n
    pairs.dg = pairs.dw + MEMORY * m
    forward(o, o.W, o.Z)
    evaluate(o)
    paired = paired and estimate(o, stride, H, gram)
    for trial in range(most + (MOST_STEPS if o.has_room else 0)):
        if o.gap <= tol * fabs(o.value):
            return True
        for i in range(m):
            p[i] = -o.G[i]
        if paired and trial in (3, 8, 16, 32):
            paired = estimate(o, 0, H, gram)
        paired = paired and trial < most
        if paired:
            first_loop(&pairs, p)
            for i in range(o.k):
                dense_substitute(H + i * o.q * o.q, p + i * o.q, o.q)
            second_loop(&pairs, p)
        elif not o.has_room:
            return False
        else:
            if o.gap > SLOW * before:
                if stride == 1 and o.gap <= NEARLY_ROUNDED * fabs(o.value):
                    return False
                stride = 1
            before = o.gap
            hessian(o, stride, H, gram)
            if not dense_solve(H, p, m):
                return False
        slope = inner(o.G, p, m)
        if not slope < 0.0:
            return False
        forward(o, p, dz)
        begin_step(&pairs, o.W, o.G)
        step = 1.0
        for halving in range(MOST_HALVINGS):
            for i in range(m):
                o.W[i] += step * p[i]
            for i in range(size):
                o.Z[i] += step * dz[i]
            evaluate(o)
            if inner(o.G, p, m) <= TOO_FAR * -slope:
                break
            # Back by half of the way that was gone.
            step = -0.5 * fabs(step)
        end_step(&pairs, o.W, o.G)
    return False


cdef void evaluate(Problem* o) noexcept nogil:
    """Find probabilities and the gradient, J and the gap (1)."""
    cdef Py_ssize_t i, j, c, k = o.k
    cdef const double* z = o.Z
    cdef double* p = o.P
    cdef double* g
    cdef const double* w
    cdef double largest, total, level = 0.0
    o.value = o.gap = 0.0
    for i in range(o.n):
        largest = z[0]
        for c in range(1, k):
            largest = max(largest, z[c])
        for c in range(k):
            p[c] = z[c] - largest
        o.value -= o.s[i] * p[o.y[i]]
        z += k
        p += k
    exponentials(o.P, o.n * k)
    p = o.P
    for i in range(o.n):
        total = 0.0
        for c in range(k):
            total += p[c]
        o.value += o.s[i] * log(total)
        for c in range(k):
            p[c] /= total
        p += k
    adjoint(o)
    for c in range(k):
        level += o.W[(c + 1) * o.q - 1] / k
    for c in range(k):
        g, w = o.G + c * o.q, o.W + c * o.q
        for j in range(o.n_penalized):
            o.value += 0.5 * o.alpha * w[j] * w[j]
            g[j] += o.alpha * w[j]
            o.gap += g[j] * g[j] / (2.0 * o.alpha)
        # Moving probability between classes costs the difference of their intercepts,
        # and the square of what is moved by the curvature of the entropy.
        for j in range(o.n_penalized, o.q):
            o.gap += fabs(g[j] * (w[j] - level)) + k * g[j] * g[j]


cdef void adjoint(Problem* o) noexcept nogil:
    """Fill G = UᵀX, by blocks of rows."""
    cdef int m, d = <int> o.d, q = <int> o.q, k = <int> o.k
    cdef Py_ssize_t i = 0, l, c
    cdef double one = 1.0
    cdef double* u
    memset(o.G, 0, o.q * o.k * sizeof(double))
    while i < o.n:
        m, u = <int> min(GRAM_ROWS, o.n - i), o.block
        for l in range(i, i + m):
            for c in range(o.k):
                u[c] = o.s[l] * (o.P[l * o.k + c] - (1.0 if c == o.y[l] else 0.0))
                if o.q > o.d:
                    o.G[c * o.q + o.d] += u[c]
            u += k
        dgemm(
            "N", "T", &d, &k, &m, &one, <double*> o.X + i * o.d, &d, o.block, &k,
            &one, o.G, &q,
        )
        i += m
    for i in range(o.q * o.k):
        o.G[i] *= o.factors[i % o.q]


cdef bint estimate(
    Problem* o, Py_ssize_t stride, double* R, double* gram
) noexcept nogil:
    """Fill in the factors of the blocks (3) at the shares of the labels."""
    cdef Py_ssize_t i, j, a, q = o.q
    cdef double share
    if stride > 0:
        dense_gram(o.X, o.n, o.d, q, o.s, stride, gram, o.block, NULL, o.factors)
    for a in range(o.k):
        share = 0.0
        for i in range(o.n):
            share += o.s[i] * o.P[i * o.k + a] * (1.0 - o.P[i * o.k + a])
        for i in range(q * q):
            R[i] = share * gram[i]
        for j in range(o.n_penalized):
            R[j * (q + 1)] += o.alpha
        if not dense_factor(R, q):
            return False
        R += q * q
    return True


cdef void hessian(
    Problem* o, Py_ssize_t stride, double* H, double* block
) noexcept nogil:
    """Fill the upper half of H by its blocks (2); those of a class sum to zero."""
    cdef Py_ssize_t i, j, l, a, b, k = o.k, q = o.q, m = o.q * o.k
    cdef double* bend = block + q * q
    cdef double entry
    memset(H, 0, m * m * sizeof(double))
    for a in range(k):
        for b in range(a + 1, k):
            i = 0
            while i < o.n:
                bend[i] = o.s[i] * o.P[i * k + a] * o.P[i * k + b]
                i += stride
            dense_gram(
                o.X, o.n, o.d, q, bend, stride, block, o.block, NULL, o.factors
            )
            for j in range(q):
                for l in range(j, q):
                    entry = block[j * q + l]
                    H[(a * q + j) * m + a * q + l] += entry
                    H[(b * q + j) * m + b * q + l] += entry
                    H[(a * q + j) * m + b * q + l] = -entry
                    H[(a * q + l) * m + b * q + j] = -entry
    for a in range(k):
        for j in range(o.n_penalized):
            H[(a * q + j) * (m + 1)] += o.alpha
        # A constant in all intercepts changes nothing: here it costs something.
        for j in range(o.n_penalized, q):
            for b in range(a, k):
                H[(a * q + j) * m + b * q + j] += 1.0 / k


cdef void forward(const Problem* o, const double* W, double* Z) noexcept nogil:
    """Fill Z = X W."""
    cdef int n = <int> o.n, d = <int> o.d, q = <int> o.q, k = <int> o.k
    cdef Py_ssize_t i, c
    cdef double one = 1.0
    for i in range(o.q * o.k):
        o.scaled[i] = o.factors[i % o.q] * W[i]
    for i in range(o.n):
        for c in range(o.k):
            Z[i * o.k + c] = o.scaled[c * o.q + o.d] if o.q > o.d else 0.0
    dgemm(
        "T", "N", &k, &n, &d, &one, o.scaled, &q, <double*> o.X, &d, &one, Z, &k
    )


cdef void to_dual(const Problem* o, double* dual) noexcept nogil:
    """Fill in U, whose rows sum to zero."""
    cdef Py_ssize_t i, c, k = o.k
    cdef double others
    for i in range(o.n):
        others = 0.0
        for c in range(k):
            if c != o.y[i]:
                dual[i * k + c] = o.s[i] * o.P[i * k + c]
                others += dual[i * k + c]
        dual[i * k + o.y[i]] = -others
