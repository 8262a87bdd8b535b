"""Minimization of J(W) = alpha / 2 ||W||² + sum_i s_i (ln sum_c exp(z_ic) - z_iy).

Row i has the scores z_i = x_i W for k classes, and the class y. With the probabilities
P at W, U = s (P - Y) is a dual point, and the Fenchel-Young inequality gives the gap

    J(W) - D(U) = ||alpha W + XᵀU||² / (2 alpha)                                   (1)

if the columns of U sum to zero or there are no free intercepts. Second derivatives by
the parameters of classes a and b are

    alpha I [a = b] + sum_i s_i p_ia ([a = b] - p_ib) x_i x_iᵀ                     (2)

(Böhning 1992, eq. 3.1). Directions are those of L-BFGS (Nocedal 1980) with the inverse
of the estimate

    alpha I + B ⊗ C,   B = sum_i s_i (diag(p_i) - p_i p_iᵀ),                       (3)

as the initial inverse Hessian. It would be exact for probabilities that do not depend
on features; C is the covariance of the features with the weights s_i (1 - ||p_i||²).
With a free intercept the other parameters belong to centered features, so that (3) is
block diagonal. C is diagonal at first, and tridiagonalized as Q T Qᵀ once that is
likely to save more time than it takes.

Rows are dense or sparse, and are processed in blocks that stay in the cache; no array
has an entry for each row and class.
"""

from scipy.linalg.cython_blas cimport dgemm, dsyrk
from scipy.linalg.cython_lapack cimport dormtr, dsyevd, dsytrd

from .exponentials cimport probabilities_of_rows
from .limited_memory cimport (
    MEMORY, Pairs, begin_step, end_step, first_loop, inner, second_loop,
)
from .matrix_rows cimport (
    Matrix, add_products, add_transposed_products, block_of_rows, copy_row, entry_of,
    read_matrix,
)
from .rows cimport allocate
from .standard cimport INFINITY, fabs, free, log, malloc, memcpy, memset, sqrt

cdef enum:
    # A block of rows has about 16,384 features or scores, whichever are more, and stays
    # in the cache.
    BLOCK = 1 << 14
    # Limit on the rows of a block.
    MOST_ROWS = 256
    # The covariance is computed from at least eight rows for each feature.
    # docs/constants.md has the figures.
    ROWS_PER_FEATURE = 8
    # Block size of LAPACK.
    PANEL = 64
    MOST_TRIALS = 40
    # The loop stops after 40 steps without progress.
    PATIENCE = 40

# A step is accepted if it lowers J by 1e-4 times the decrease predicted by its slope.
cdef double SUFFICIENT = 1e-4

# Near the minimum the decrease is below the rounding error of J. A step then is
# accepted if its slope increases to at most half of the first slope in absolute value.
cdef double TOO_FAR = 0.5

# Changes below 1e-13 of J count as rounding errors.
cdef double ROUNDED = 1e-13

# B is recomputed after at least four times as many passes as it costs. Recomputing it
# after as many passes as it costs takes 8.6 s instead of 6.2 with 1,190 classes, and
# .73 s instead of .55 with 200.
cdef double PATIENT = 4.0

# A call of ``minimize`` returns after about 4e9 operations, but not before 40 passes.
cdef double LONG = 4e9
cdef double LEAST_PASSES = 40.0

# Features are correlated if the squares of their correlations sum to 1.5 times the
# number of features. The ratio is 1 for independent features, and 3 for features of two
# random factors. docs/constants.md has the figures.
cdef double CORRELATED = 1.5

# Results of ``minimize``: no step decreases J, the gap is reached, or the limit on
# operations.
cpdef enum:
    STUCK = 0
    REACHED = 1
    MORE = 2


cdef struct Problem:
    Matrix matrix
    const Py_ssize_t* y
    const double* s
    # There are intercepts if a class has q = d + 1 parameters; r of them are penalized.
    Py_ssize_t n, d, q, k, r
    double alpha
    # Parameters, their gradient, a direction, and a workspace, all of shape (q, k).
    double* W
    double* G
    double* p
    double* workspace
    # Workspaces for a block of rows, and two for the scores of its rows.
    Py_ssize_t block
    double* rows
    double* P
    double* U
    # B, its eigenvectors and eigenvalues, and a workspace for them.
    double* B
    double* values
    double* work
    # Weights of rows in C, and means and diagonal of C.
    double* bend
    double* mean
    double* diagonal
    # Factors of the columns, one for the intercept.
    double* factors
    # Householder reflectors of Q with their factors, the off-diagonal of the
    # tridiagonal T, and the pivots of linear systems with (3); or NULL.
    double* Q
    double* tau
    double* beside
    double* pivots
    # Results of ``evaluate``: J, its gap, and whether B or its diagonal belongs to the
    # point.
    double value, gap
    bint curved, by_classes, independent
    Pairs pairs
    # Number of evaluations, each of two products with X.
    Py_ssize_t n_evaluations
    # Number of steps, and the step at which B is computed again. The smallest gap, and
    # the step since which it has hardly decreased. The gap at the last change of the
    # model, and the passes since then.
    Py_ssize_t n_steps, due, best_step, n_paid
    double best, first


cdef class Multinomial:
    """A minimization that can be resumed.

    Parameters
    ----------
    X : ndarray of shape (n, d), of float32 or float64, or tuple
        The arrays of a CSR matrix are data of these types, int32 indices and int64
        indptr.
    sizes : ndarray of shape (d,)
        Positive divisors of the columns in products.
    labels : ndarray of shape (n,)
        Class y of each row, from 0 to k - 1.
    weights : ndarray of shape (n,)
        Weights s, which sum to one.
    alpha : float
    n_penalized : int
        Number of penalized parameters among q k in the order of W; the others are free
        intercepts.
    W : ndarray of shape (q, k)
        Starting point, replaced by the results of steps; with q = d + 1 the last row
        has intercepts. If all entries are zero, free intercepts start at the logarithms
        of the classes' weights.
    """

    cdef Problem o
    cdef double* memory
    cdef tuple kept

    def __cinit__(
        self,
        object X,
        const double[::1] sizes,
        const Py_ssize_t[::1] labels,
        const double[::1] weights,
        double alpha,
        Py_ssize_t n_penalized,
        double[:, ::1] W,
    ):
        cdef Problem* o = &self.o
        cdef Py_ssize_t i, n = labels.shape[0], q = W.shape[0], k = W.shape[1], size
        cdef Py_ssize_t d = sizes.shape[0]
        memset(o, 0, sizeof(Problem))
        if q < max(d, 1) or q > d + 1 or not n or not k or n_penalized not in (d * k, q * k):
            raise ValueError(f"parameters of shape {(q, k)} for {n} rows")
        if weights.shape[0] != n:
            raise ValueError(f"{n} labels, {len(weights)} weights")
        for i in range(n):
            if not 0 <= labels[i] < k:
                raise ValueError(f"the label {labels[i]} is none of {k} classes")
        self.kept = X, labels, weights, W
        o.n, o.d, o.q, o.k, o.r, o.alpha = n, d, q, k, n_penalized // k, alpha
        o.y, o.s = &labels[0], &weights[0]
        read_matrix(&o.matrix, X, n, d)
        o.block = max(min(BLOCK // max(q, k), MOST_ROWS, n), 16)
        size = q * k * (3 + 2 * MEMORY) + o.block * (q + 2 * k)
        size += 3 * k * k + 12 * k + 4 + n + 3 * q
        self.memory = o.G = <double*> allocate(size * sizeof(double))
        o.p = o.G + q * k
        o.workspace = o.p + q * k
        o.pairs.m, o.pairs.dw = q * k, o.workspace + q * k
        o.pairs.dg = o.pairs.dw + MEMORY * q * k
        o.rows = o.pairs.dg + MEMORY * q * k
        o.P = o.rows + o.block * q
        o.U = o.P + o.block * k
        o.B = o.U + o.block * k
        o.values = o.B + k * k
        o.work = o.values + k
        o.bend = o.work + 2 * k * k + 11 * k + 4
        o.mean = o.bend + n
        o.diagonal = o.mean + q
        o.factors = o.diagonal + q
        for i in range(q):
            o.factors[i] = 1.0 / sizes[i] if i < d else 1.0
        o.W = &W[0, 0]
        begin(o)

    def __dealloc__(self):
        free(self.memory)
        free(self.o.Q)

    @property
    def passes(self):
        """Number of products with X or its transpose so far."""
        return 2.0 * self.o.n_evaluations

    def minimize(self, double tol):
        """Take steps until the gap (1) is at most tol |J|.

        Returns
        -------
        status : int
            ``REACHED``; ``MORE`` if the limit on operations is reached and the call can
            be repeated; or ``STUCK`` if the gap no longer decreases.
        """
        cdef int status
        with nogil:
            status = take_steps(&self.o, tol)
        return status


cdef void begin(Problem* o) noexcept nogil:
    """Set intercepts to the logarithms of the classes' weights if all parameters are
    zero.
    """
    cdef Py_ssize_t i, c, k = o.k
    cdef double* b = o.W + o.r * k
    cdef double level = 0.0
    o.best = o.first = INFINITY
    o.value, o.gap = 0.0, INFINITY
    if o.r == o.q:
        return
    for i in range(o.q * k):
        if o.W[i] != 0.0:
            return
    for i in range(o.n):
        b[o.y[i]] += o.s[i]
    for c in range(k):
        b[c] = log(max(b[c], 1e-12))
        level += b[c] / k
    for c in range(k):
        b[c] -= level


cdef int take_steps(Problem* o, double tol) noexcept nogil:
    """Take steps until the gap is small, no step decreases J, or the limit is reached.
    """
    cdef Py_ssize_t i, m = o.q * o.k
    cdef Pairs* pairs = &o.pairs
    cdef double budget = max(LONG / pass_work(o), LEAST_PASSES)
    cdef double slope, step, value, climb, rounding, scale, price
    cdef int trial
    if o.n_steps == 0:
        # The diagonal of B costs nothing, and is accurate enough for the first steps.
        o.by_classes = True
        evaluate(o, True)
        o.first = o.best = o.gap
    while True:
        if o.gap <= tol * fabs(o.value):
            return REACHED
        if budget <= 0.0:
            return MORE
        if o.gap < 0.9 * o.best:
            o.best, o.best_step = o.gap, o.n_steps
        elif o.n_steps - o.best_step > PATIENCE:
            return STUCK
        for i in range(m):
            o.p[i] = -o.G[i]
        if o.curved:
            if o.Q == NULL and gains(o, tol, covariance_price(o)):
                o.independent = covariance_price(o) > 2.0 and not is_correlated(o)
                if not o.independent and not add_covariance(o):
                    return STUCK
            if not renew(o):
                return STUCK
            price = PATIENT * curvature_price(o)
            o.due = o.n_steps + max(o.n_steps, <Py_ssize_t> min(price, 1e9))
            o.due = max(o.due, 8 if o.n_steps > 0 else 3)
            o.by_classes = False
        first_loop(pairs, o.p)
        solve(o, o.p)
        scale = scale_of_model(o)
        for i in range(m):
            o.p[i] *= scale
        second_loop(pairs, o.p)
        slope = inner(o.G, o.p, m)
        if not slope < 0.0:
            return STUCK
        begin_step(pairs, o.W, o.G)
        step, value, rounding = 1.0, o.value, ROUNDED * fabs(o.value)
        for trial in range(MOST_TRIALS):
            for i in range(m):
                o.W[i] += step * o.p[i]
            evaluate(o, renews(o, tol))
            budget -= 1.0
            o.n_paid += 1
            climb = inner(o.G, o.p, m)
            if o.value <= value + SUFFICIENT * step * slope:
                break
            if o.value <= value + rounding and climb <= TOO_FAR * -slope:
                break
            memcpy(o.W, pairs.dw + (pairs.n % MEMORY) * m, m * sizeof(double))
            # The zero of the slope between both points, if it is linear.
            step *= max(0.1, min(0.5, -slope / (climb - slope)))
        else:
            memcpy(o.G, pairs.dg + (pairs.n % MEMORY) * m, m * sizeof(double))
            evaluate(o, False)
            return STUCK
        end_step(pairs, o.W, o.G)
        o.n_steps += 1


cdef bint renews(const Problem* o, double tol) noexcept nogil:
    """Whether to recompute (3) at the next point: after 3, 8, 16, 32, ... steps.

    It is later if B costs many passes, and also recomputed if the covariance is likely
    to be added.
    """
    if o.n_steps + 1 >= o.due:
        return True
    return o.Q == NULL and gains(o, tol, covariance_price(o))


cdef double curvature_price(const Problem* o) noexcept nogil:
    """Return an estimate of the cost of B and its eigenvectors in passes."""
    cdef double k = o.k
    return (o.n + 10.0 * k) * k * k / pass_work(o)


cdef bint gains(const Problem* o, double tol, double price) noexcept nogil:
    """Whether a model is likely to save as many passes as it costs.

    The number of remaining passes follows from the average rate of the gap so far,
    which is uncertain at first. It has to exceed the price by as much as the price
    exceeds the passes so far.
    """
    cdef double rate, rest
    if price <= 2.0:
        return True
    if o.n_paid < 4 or price == INFINITY:
        return False
    rate = log(o.first / o.gap) / o.n_paid
    rest = log(o.gap / (tol * fabs(o.value)))
    return rest * o.n_paid > rate * price * price


cdef double pass_work(const Problem* o) noexcept nogil:
    """Return an estimate of the operations of a pass: products and exponentials."""
    cdef double entries = <double> o.n * o.d
    if o.matrix.indices != NULL:
        # A stored entry of a sparse row takes as long as several entries of a dense
        # block.
        entries = 4.0 * o.matrix.indptr[o.n]
    return o.k * (4.0 * entries + 40.0 * o.n)


cdef Py_ssize_t covariance_stride(const Problem* o) noexcept nogil:
    """Return a stride of the rows for which the covariance costs at most one pass.

    It leaves at least eight rows for each feature, if there are as many.
    """
    cdef double rows = max(pass_work(o) / o.r / o.r, <double> ROWS_PER_FEATURE * o.r)
    return max(<Py_ssize_t> (o.n / rows), 1)


cdef double covariance_price(const Problem* o) noexcept nogil:
    """Return the cost of the covariance in passes, infinite without memory for it."""
    cdef double r = o.r, rows = o.n // covariance_stride(o)
    if o.independent or o.r < 2 or r * (r + o.k) > max(<double> o.n * r, 1e6):
        return INFINITY
    return (rows * r * r + 5.0 * r * r * r) / pass_work(o)


cdef void scale_columns(Problem* o) noexcept nogil:
    """Write W with rows multiplied by the factors of the columns to the workspace."""
    cdef Py_ssize_t j, c
    for j in range(o.q):
        for c in range(o.k):
            o.workspace[j * o.k + c] = o.factors[j] * o.W[j * o.k + c]


cdef void forward(
    const Problem* o, const double* X, Py_ssize_t i, int m, double* Z
) noexcept nogil:
    """Write the scores of m rows; X are dense rows."""
    cdef Py_ssize_t l, c, k = o.k
    cdef const double* b = o.workspace + o.d * k
    for l in range(m):
        for c in range(k):
            Z[l * k + c] = b[c] if o.q > o.d else 0.0
    add_products(&o.matrix, X, i, m, o.workspace, <int> k, Z)


cdef void add_adjoint(Problem* o, const double* X, Py_ssize_t i, int m) noexcept nogil:
    """Add the product of the transpose of m rows with U, stored in place of P, to G."""
    cdef Py_ssize_t l, c, k = o.k
    cdef double* g = o.G + o.d * k
    if o.q > o.d:
        for l in range(m):
            for c in range(k):
                g[c] += o.P[l * k + c]
    add_transposed_products(&o.matrix, X, i, m, o.P, <int> k, o.G)


cdef double of_block(
    const Problem* o, Py_ssize_t i, Py_ssize_t m, double* P
) noexcept nogil:
    """Replace the scores of m rows by probabilities, and return the sum of the losses.
    """
    cdef Py_ssize_t l, k = o.k
    cdef double[MOST_ROWS] own
    cdef double[2 * MOST_ROWS] parts
    cdef double value = 0.0
    for l in range(m):
        own[l] = P[l * k + o.y[i + l]]
    probabilities_of_rows(P, m, k, parts)
    for l in range(m):
        value += o.s[i + l] * ((parts[2 * l] - own[l]) + log(parts[2 * l + 1]))
    return value


cdef void evaluate(Problem* o, bint curved) noexcept nogil:
    """Compute the gradient, J and the gap (1), and with ``curved`` the terms of (3).

    The gap is an estimate at the best intercepts, which change the gradient by means.
    """
    cdef Py_ssize_t i = 0, j, l, c, m, k = o.k
    cdef double excess
    cdef const double* X
    cdef double* p
    cdef double* g
    cdef const double* w
    cdef const double* b = o.G + o.r * k
    o.value = o.gap = 0.0
    o.n_evaluations += 1
    o.curved = curved
    memset(o.G, 0, o.q * k * sizeof(double))
    scale_columns(o)
    if curved:
        memset(o.B, 0, k * k * sizeof(double))
    if curved and o.Q == NULL:
        memset(o.mean, 0, 2 * o.q * sizeof(double))
    while i < o.n:
        m = min(o.block, o.n - i)
        X = block_of_rows(&o.matrix, i, m, o.rows)
        forward(o, X, i, <int> m, o.P)
        o.value += of_block(o, i, m, o.P)
        if curved:
            add_curvature(o, X, i, <int> m)
        p = o.P
        for l in range(i, i + m):
            p[o.y[l]] -= 1.0
            for c in range(k):
                p[c] *= o.s[l]
            p += k
        add_adjoint(o, X, i, <int> m)
        i += m
    if curved and o.Q == NULL:
        finish_curvature(o)
    for j in range(o.r):
        g, w = o.G + j * k, o.W + j * k
        for c in range(k):
            g[c] *= o.factors[j]
            o.value += 0.5 * o.alpha * w[c] * w[c]
            g[c] += o.alpha * w[c]
            excess = g[c] - (o.mean[j] * b[c] if o.r < o.q else 0.0)
            o.gap += excess * excess
    o.gap /= 2.0 * o.alpha


cdef void add_curvature(
    Problem* o, const double* X, Py_ssize_t i, int m
) noexcept nogil:
    """Add the terms of m rows to B, and to the means and squares of features."""
    cdef Py_ssize_t l, c, j, k = o.k
    cdef int size = <int> o.k
    cdef double one = 1.0, minus = -1.0, root, bend, x
    cdef const double* p = o.P
    cdef const Matrix* matrix = &o.matrix
    for l in range(m):
        root, bend = sqrt(o.s[i + l]), 1.0
        for c in range(k):
            o.U[l * k + c] = root * p[c]
            o.B[c * (k + 1)] += o.s[i + l] * p[c]
            if o.by_classes:
                o.B[c * (k + 1)] -= o.s[i + l] * p[c] * p[c]
            bend -= p[c] * p[c]
        o.bend[i + l] = bend = o.s[i + l] * max(bend, 0.0)
        if o.Q != NULL:
            pass
        elif matrix.indices != NULL:
            for j in range(matrix.indptr[i + l], matrix.indptr[i + l + 1]):
                x = entry_of(matrix, j)
                o.mean[matrix.indices[j]] += bend * x
                o.diagonal[matrix.indices[j]] += bend * x * x
        else:
            for j in range(o.d):
                x = bend * X[l * o.d + j]
                o.mean[j] += x
                o.diagonal[j] += x * X[l * o.d + j]
        p += k
    if not o.by_classes:
        dsyrk("L", "N", &size, &m, &minus, o.U, &size, &one, o.B, &size)


cdef void finish_curvature(Problem* o) noexcept nogil:
    """Divide means and squares by the sum of weights, and center the squares."""
    cdef Py_ssize_t i, j
    cdef double total = 0.0
    for i in range(o.n):
        total += o.bend[i]
    total = total if total > 0.0 else 1.0
    for j in range(o.d):
        o.mean[j] *= o.factors[j] / total
        o.diagonal[j] *= o.factors[j] * o.factors[j] / total
        if o.r < o.q:
            o.diagonal[j] = max(o.diagonal[j] - o.mean[j] * o.mean[j], 0.0)
        else:
            o.mean[j] = 0.0
    if o.r > o.d:
        o.diagonal[o.d] = 1.0


cdef bint is_correlated(Problem* o) noexcept nogil:
    """Whether the squares of correlations sum to more than ``CORRELATED`` per feature.

    The sum is the mean square of the products of independent rows, with features in
    units of their standard deviations. It is estimated from at most 256 rows.
    """
    cdef Py_ssize_t i, j, l, a, n = 0, stride = max(o.n // o.block, 1)
    cdef double total = 0.0, product
    cdef double* row = o.rows
    for l in range(o.block):
        i = l * stride
        if i < o.n and o.bend[i] > 0.0:
            centered_row(o, i, 1.0, row)
            for j in range(o.r):
                row[j] /= sqrt(o.diagonal[j]) if o.diagonal[j] > 0.0 else 1.0
            row += o.r
            n += 1
    for a in range(n):
        for l in range(a):
            product = 0.0
            for j in range(o.r):
                product += o.rows[a * o.r + j] * o.rows[l * o.r + j]
            total += product * product
    return total > CORRELATED * o.r * (0.5 * n * (n - 1))


cdef bint add_covariance(Problem* o) noexcept nogil:
    """Tridiagonalize the covariance; return whether that succeeds."""
    cdef Py_ssize_t r = o.r, size = r * r + 2 * r + r * o.k + PANEL * max(r, o.k)
    cdef Py_ssize_t i = 0, m, stride = covariance_stride(o)
    cdef int width = <int> r, count, info = 0
    cdef double total = 0.0, one = 1.0
    cdef double* Q = <double*> malloc(size * sizeof(double))
    if Q == NULL:
        return False
    memset(Q, 0, r * r * sizeof(double))
    while i < o.n:
        m = 0
        while i < o.n and m < o.block:
            if o.bend[i] > 0.0:
                total += o.bend[i]
                centered_row(o, i, sqrt(o.bend[i]), o.rows + m * r)
                m += 1
            i += stride
        count = <int> m
        if m > 0:
            dsyrk(
                "L", "N", &width, &count, &one, o.rows, &width, &one, Q, &width
            )
    for i in range(r * r):
        Q[i] /= total if total > 0.0 else 1.0
    o.Q, o.tau, o.beside = Q, Q + r * r, Q + r * r + r
    o.pivots = o.beside + r
    count = <int> (PANEL * max(r, o.k))
    dsytrd(
        "L", &width, Q, &width, o.diagonal, o.beside, o.tau, o.pivots + r * o.k, &count,
        &info,
    )
    o.n_paid, o.first = 0, o.gap
    return info == 0


cdef void centered_row(
    const Problem* o, Py_ssize_t i, double root, double* row
) noexcept nogil:
    """Write a row minus the means, with a penalized intercept, times ``root``."""
    cdef Py_ssize_t j
    copy_row(&o.matrix, i, row)
    if o.r > o.d:
        row[o.d] = 1.0
    for j in range(o.d):
        row[j] = row[j] * o.factors[j] - o.mean[j]
    for j in range(o.r):
        row[j] *= root


cdef bint renew(Problem* o) noexcept nogil:
    """Compute the eigenvectors of B, and pivots if C is tridiagonalized."""
    cdef int k = <int> o.k, info = 0, size = 1 + 6 * k + 2 * k * k, few = 3 + 5 * k
    cdef Py_ssize_t j, c
    cdef double beside, pivot
    if o.by_classes:
        for c in range(k):
            o.values[c], o.B[c * (k + 1)] = o.B[c * (k + 1)], 1.0
    else:
        dsyevd(
            "V", "L", &k, o.B, &k, o.values, o.work, &size, <int*> (o.work + size),
            &few, &info,
        )
    if info != 0:
        return False
    for c in range(k):
        o.values[c] = max(o.values[c], 0.0)
    o.curved = False
    # Pivots are at least the smallest eigenvalue of a matrix.
    for j in range(o.r if o.Q != NULL else 0):
        for c in range(k):
            pivot = o.values[c] * o.diagonal[j] + o.alpha
            if j > 0:
                beside = o.values[c] * o.beside[j - 1]
                pivot -= beside * beside / o.pivots[(j - 1) * k + c]
            o.pivots[j * k + c] = max(pivot, o.alpha)
    return True


cdef void turn(Problem* o, double* p, bint back) noexcept nogil:
    """Multiply p of shape (r, k) by the transpose of Q, or by Q if ``back``."""
    cdef int k = <int> o.k, r = <int> o.r, info = 0, size = PANEL * max(r, k)
    cdef double* workspace = o.pivots + o.r * o.k
    dormtr(
        "R", "L", "T" if back else "N", &k, &r, o.Q, &r, o.tau, p, &k, workspace, &size,
        &info,
    )


cdef void solve(Problem* o, double* p) noexcept nogil:
    """Replace p by the inverse of (3) times p."""
    cdef Py_ssize_t j, c
    cdef int k = <int> o.k, q = <int> o.q
    cdef double one = 1.0, zero = 0.0, least = 1e-12 * o.values[k - 1], level = 0.0
    cdef double* b = p + o.r * k
    cdef double* z = o.workspace
    cdef bint is_free = o.r < o.q
    if is_free:
        for j in range(o.d):
            for c in range(k):
                p[j * k + c] -= o.mean[j] * b[c]
    if o.Q != NULL:
        turn(o, p, False)
    dgemm("T", "N", &k, &q, &k, &one, o.B, &k, p, &k, &zero, z, &k)
    if o.Q == NULL:
        for j in range(o.r):
            for c in range(k):
                z[j * k + c] /= o.values[c] * o.diagonal[j] + o.alpha
    else:
        for j in range(1, o.r):
            for c in range(k):
                z[j * k + c] -= (
                    o.values[c] * o.beside[j - 1] / o.pivots[(j - 1) * k + c]
                ) * z[(j - 1) * k + c]
        for j in range(o.r - 1, -1, -1):
            for c in range(k):
                if j + 1 < o.r:
                    z[j * k + c] -= o.values[c] * o.beside[j] * z[(j + 1) * k + c]
                z[j * k + c] /= o.pivots[j * k + c]
    if is_free:
        # A constant added to all intercepts has no effect.
        for c in range(k):
            j = o.r * k + c
            z[j] = z[j] / o.values[c] if o.values[c] > least else 0.0
    dgemm("N", "N", &k, &q, &k, &one, o.B, &k, z, &k, &zero, p, &k)
    if o.Q != NULL:
        turn(o, p, True)
    if is_free:
        for j in range(o.d):
            for c in range(k):
                b[c] -= o.mean[j] * p[j * k + c]
        # With the diagonal of B alone a step would add a constant to all intercepts.
        for c in range(k):
            level += b[c] / k
        for c in range(k):
            b[c] -= level


cdef double scale_of_model(Problem* o) noexcept nogil:
    """Return the square root of the scale of (3) that fits the last step.

    The square root is a compromise, since other directions may need another scale.
    """
    cdef Pairs* pairs = &o.pairs
    cdef Py_ssize_t last = (pairs.n - 1) % MEMORY, m = pairs.m
    cdef const double* dg = pairs.dg + last * m
    # The next pair's place in the buffer serves as workspace.
    cdef double* h = pairs.dw + (pairs.n % MEMORY) * m
    if pairs.n == 0:
        return 1.0
    memcpy(h, dg, m * sizeof(double))
    solve(o, h)
    return sqrt(pairs.curvature[last] / inner(dg, h, m))
