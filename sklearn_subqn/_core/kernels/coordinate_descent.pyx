"""Coordinate descent on quadratic models with L1 norms, or norms of groups.

All sweeps minimize the model <g, v - w> + <v - w, H (v - w)> / 2 + l1 |v| + l2 v² / 2
over one coordinate of v after the other; penalties are zero for free coordinates. The
violation of a coordinate is the smallest absolute value of its subgradients. A
coordinate without curvature becomes zero if the L1 penalty exceeds its slope, and is
skipped otherwise.
"""

from .compressed cimport check_some
from .dense_rows cimport dense_forward
from .rows cimport allocate, index, real, row_index, same_length, sparse_product
from .standard cimport INFINITY, fabs, free as free_memory, sqrt


cdef inline double _minimizer(
    double v, double slope, double curvature, double l1
) noexcept nogil:
    """Return argmin over t of slope (t - v) + curvature (t - v)² / 2 + l1 |t|."""
    cdef double target = curvature * v - slope
    if target > l1:
        return (target - l1) / curvature
    if target < -l1:
        return (target + l1) / curvature
    return 0.0


cdef inline double _violation(double v, double slope, double l1) noexcept nogil:
    if v > 0.0:
        return fabs(slope + l1)
    if v < 0.0:
        return fabs(slope - l1)
    slope = fabs(slope) - l1
    return slope if slope > 0.0 else 0.0


def sweep_gram(
    const double[:, ::1] gram,
    double[::1] gradient,
    double[::1] coef,
    const double[::1] l1,
    const double[::1] l2,
    double tol,
    Py_ssize_t max_sweeps,
):
    """Minimize a model with the Gram matrix H = ``gram`` of shape (q, q), in place.

    ``gradient`` is g + H (v - w), without penalties, and is updated with ``coef``,
    which is v. Sweeps over the non-zero coordinates alternate with sweeps over all
    coordinates. Returns the largest violation of the last full sweep, at most ``tol``
    unless ``max_sweeps`` is reached, and the number of sweeps.
    """
    cdef Py_ssize_t q = gram.shape[0], i, j, sweep = 0
    cdef double old, new, step, curvature, slope, violation, worst = 0.0
    cdef bint whole = True
    same_length(q, gram.shape[1], gradient.shape[0], coef.shape[0])
    same_length(q, l1.shape[0], l2.shape[0])
    with nogil:
        while sweep < max_sweeps:
            sweep += 1
            worst = 0.0
            for j in range(q):
                old = coef[j]
                if not whole and old == 0.0 and l1[j] > 0.0:
                    continue
                curvature = gram[j, j] + l2[j]
                slope = gradient[j] + l2[j] * old
                if curvature <= 0.0 and fabs(slope) >= l1[j]:
                    continue
                violation = _violation(old, slope, l1[j])
                if violation > worst:
                    worst = violation
                if violation == 0.0:
                    continue
                new = _minimizer(old, slope, curvature, l1[j])
                step = new - old
                if step != 0.0:
                    coef[j] = new
                    for i in range(q):
                        gradient[i] += step * gram[j, i]
            if worst <= tol:
                if whole:
                    break
                whole = True
            else:
                whole = sweep % 10 == 0
    return worst, sweep


cdef inline double _threshold(double v, double l1, double side) noexcept nogil:
    """Return the soft threshold of v, of one sign only unless ``side`` is zero."""
    if side >= 0.0 and v > l1:
        return v - l1
    if side <= 0.0 and v < -l1:
        return v + l1
    return 0.0


cdef double _prox_step(
    const double* v,
    const double* slopes,
    const double* side,
    Py_ssize_t n,
    double l1,
    double norm,
    double l2,
    double bound,
    double* new,
) noexcept nogil:
    """Minimize slopes (t - v) + bound (t - v)² / 2 + penalties over a group.

    Returns the length of the step times the bound, which vanishes at a minimizer only.
    A group without curvature becomes zero if the penalty exceeds its slopes.
    """
    cdef Py_ssize_t i
    cdef double size = 0.0, moved = 0.0, factor = 0.0
    for i in range(n):
        new[i] = _threshold(bound * v[i] - slopes[i], l1, side[i])
        size += new[i] * new[i]
    size = sqrt(size)
    if bound + l2 <= 0.0 and (size > norm or l1 + norm == 0.0):
        return 0.0
    if size > norm:
        factor = (1.0 - norm / size) / (bound + l2)
    for i in range(n):
        new[i] *= factor
        moved += (new[i] - v[i]) * (new[i] - v[i])
    if bound + l2 <= 0.0:
        return l1 + norm if moved > 0.0 else 0.0
    return sqrt(moved) * (bound + l2)


cdef inline bint _change(
    const double* new,
    const double* old,
    const double[:, ::1] metric,
    double* change,
) noexcept nogil:
    """Write the metric times new - old; return whether they differ."""
    cdef Py_ssize_t k, l, K = metric.shape[0]
    cdef bint moved = False
    cdef double step
    for l in range(K):
        change[l] = 0.0
    for k in range(K):
        step = new[k] - old[k]
        if step != 0.0:
            moved = True
            for l in range(K):
                change[l] += step * metric[k, l]
    return moved


def sweep_groups(
    const double[:, ::1] rows,
    const double[::1] blocks,
    const double[:, ::1] metric,
    double[:, ::1] gradient,
    image,
    double[:, ::1] coef,
    const Py_ssize_t[::1] order,
    const Py_ssize_t[::1] starts,
    const double[::1] bounds,
    const double[::1] l1,
    const double[::1] norm,
    const double[::1] l2,
    const double[:, ::1] side,
    double tol,
    Py_ssize_t max_sweeps,
):
    """Minimize a model over one group of coordinates after the other, in place.

    The method is that of ``sweep_gram`` for K scores, whose coefficients have the shape
    (K, q). The Hessian H is the Kronecker product of ``metric`` and G. The penalties of group g are l1 ||v_g||_1 +
    norm ||v_g|| + l2 ||v_g||² / 2. It has the columns ``order[starts[g]:starts[g + 1]]``
    of the coefficients, and ``bounds`` those of the eigenvalues of its block of H;
    ``blocks`` has the blocks of G, one after the other. Either ``rows`` is G, ``image``
    is None, and ``gradient`` is updated. Or G is A Aᵀ for the ``rows`` A of shape (q,
    n); then ``image`` is the metric times (v - w) A, of shape (K, n), and is updated.
    ``side`` is the sign of each coordinate, zero for both. Steps on one block repeat
    until they have shrunk to a tenth. Returns the longest first step of the last full
    sweep times the bound, infinity without one, and the number of sweeps.
    """
    cdef Py_ssize_t q = rows.shape[0], n_groups = starts.shape[0] - 1
    cdef Py_ssize_t K = metric.shape[0], size = rows.shape[1], block, n_entries = 0
    cdef bint by_columns = image is not None
    cdef double[:, ::1] state = image if by_columns else gradient
    cdef Py_ssize_t i, j, k, l, g, n, most = 0, sweep = 0, again
    cdef double first, left, worst, last = INFINITY
    cdef bint whole = True, zero
    cdef const Py_ssize_t* places
    cdef double* v
    cdef double* new
    cdef double* old
    cdef double* slopes
    cdef double* signs
    cdef double* change
    same_length(size, state.shape[1])
    same_length(q, gradient.shape[1], coef.shape[1], order.shape[0], side.shape[1])
    same_length(K, metric.shape[1], gradient.shape[0], coef.shape[0], state.shape[0])
    same_length(K, side.shape[0])
    same_length(n_groups, bounds.shape[0], l1.shape[0], norm.shape[0], l2.shape[0])
    if starts[0] != 0 or starts[n_groups] != q:
        raise ValueError("groups must hold all coordinates.")
    for g in range(n_groups):
        if starts[g + 1] < starts[g]:
            raise ValueError("starts of groups must ascend.")
        n = starts[g + 1] - starts[g]
        most = max(most, n * K)
        n_entries += n * n
    same_length(n_entries, blocks.shape[0])
    for i in range(q):
        if not 0 <= order[i] < q:
            raise ValueError("a coordinate of a group is out of range.")
    v = <double*> allocate((5 * most + K + 1) * sizeof(double))
    new, old, slopes, signs = v + most, v + 2 * most, v + 3 * most, v + 4 * most
    change = v + 5 * most
    with nogil:
        while sweep < max_sweeps:
            sweep += 1
            worst = 0.0
            block = n_entries = 0
            for g in range(n_groups):
                n = starts[g + 1] - starts[g]
                block, n_entries = n_entries, n_entries + n * n
                if n == 0:
                    continue
                places = &order[starts[g]]
                zero = True
                for i in range(n):
                    for k in range(K):
                        v[i * K + k] = old[i * K + k] = coef[k, places[i]]
                        zero = zero and v[i * K + k] == 0.0
                if not whole and zero and l1[g] + norm[g] > 0.0:
                    continue
                for i in range(n):
                    for k in range(K):
                        slopes[i * K + k] = gradient[k, places[i]]
                        if by_columns and size:
                            dense_forward(
                                &rows[places[i], 0], 1, size, size, &state[k, 0], &left, 1
                            )
                            slopes[i * K + k] += left
                        signs[i * K + k] = side[k, places[i]]
                first = 0.0
                for again in range(10):
                    left = _prox_step(
                        v, slopes, signs, n * K, l1[g], norm[g], l2[g], bounds[g], new
                    )
                    if again == 0:
                        first = left
                    if left == 0.0 or (again > 0 and left <= 0.1 * first):
                        break
                    for i in range(n):
                        if n * K > 1 and _change(new + i * K, v + i * K, metric, change):
                            for j in range(n):
                                for l in range(K):
                                    slopes[j * K + l] += (
                                        change[l] * blocks[block + i * n + j]
                                    )
                        for k in range(K):
                            v[i * K + k] = new[i * K + k]
                    if n * K == 1:
                        break
                if first > worst:
                    worst = first
                for i in range(n):
                    if not _change(v + i * K, old + i * K, metric, change):
                        continue
                    j = places[i]
                    for l in range(K):
                        coef[l, j] = v[i * K + l]
                        if change[l] != 0.0:
                            for k in range(size):
                                state[l, k] += change[l] * rows[j, k]
            if whole:
                last = worst
            if worst <= tol:
                if whole:
                    break
                whole = True
            else:
                whole = sweep % 10 == 0
    free_memory(v)
    return last, sweep


def sweep_columns(
    const index[::1] indptr,
    const row_index[::1] indices,
    const real[::1] values,
    const Py_ssize_t[::1] columns,
    double[::1] image,
    const double[::1] gradient,
    const double[::1] squares,
    double[::1] coef,
    double l1,
    double l2,
):
    """Minimize a model with H = AᵀA over the given columns of A, one after the other.

    A is in CSC format. For each of ``columns``, the arrays ``gradient``, ``squares``
    and ``coef`` have g, the diagonal of H, and v. ``image`` is A (v - w), and is
    updated. Returns the largest violation found.
    """
    cdef Py_ssize_t m = columns.shape[0], i, j, k, start, stop
    cdef double old, step, curvature, slope, violation, worst = 0.0
    same_length(m, gradient.shape[0], squares.shape[0], coef.shape[0])
    with nogil:
        check_some(indptr, indices, values.shape[0], columns, image.shape[0])
        for k in range(m):
            old = coef[k]
            curvature = squares[k] + l2
            j = columns[k]
            start, stop = indptr[j], indptr[j + 1]
            slope = gradient[k] + l2 * old
            if stop > start:
                slope += sparse_product(
                    &values[start], &indices[start], stop - start, &image[0]
                )
            if curvature <= 0.0 and fabs(slope) >= l1:
                continue
            violation = _violation(old, slope, l1)
            if violation > worst:
                worst = violation
            if violation == 0.0:
                continue
            coef[k] = _minimizer(old, slope, curvature, l1)
            step = coef[k] - old
            if step != 0.0:
                for i in range(start, stop):
                    image[indices[i]] += step * values[i]
    return worst


def sweep_blocks(
    const index[::1] indptr,
    const index[::1] indices,
    const real[::1] values,
    const Py_ssize_t[::1] columns,
    const double[:, ::1] a,
    const double[::1] s,
    const double[:, ::1] p,
    double[:, ::1] product,
    const double[:, ::1] gradient,
    const double[:, ::1] bounds,
    double[:, ::1] coef,
    double l1,
    double l2,
    const double[::1] free_gradient,
    const double[::1] free_bounds,
    double[::1] free,
):
    """Minimize a model of k scores per row over the given columns of X, in place.

    The Hessian of row i is M_i = diag(a_i) - s_i p_i p_iᵀ, and X is in CSC format. For
    each of ``columns``, ``gradient``, ``bounds`` and ``coef`` of shape (m, k) have g, a
    diagonal upper bound of the column's Hessian block, and v. All classes of a column
    take a step at once. ``product`` of shape (n, k) is M_i times the change of the
    scores, and is updated. ``free`` is empty, or has k intercepts with the gradient
    ``free_gradient`` at w. Returns the largest violation found.
    """
    cdef Py_ssize_t n = product.shape[0], k = product.shape[1], m = columns.shape[0]
    cdef Py_ssize_t i, j, c, l, row
    cdef double x, scaled, new, violation, worst = 0.0
    cdef bint moved
    cdef double* slopes
    cdef double* steps
    same_length(n, a.shape[0], p.shape[0], s.shape[0])
    same_length(k, a.shape[1], p.shape[1], gradient.shape[1], bounds.shape[1])
    same_length(k, coef.shape[1])
    same_length(m, gradient.shape[0], bounds.shape[0], coef.shape[0])
    if free.shape[0]:
        same_length(k, free.shape[0], free_gradient.shape[0], free_bounds.shape[0])
    check_some(indptr, indices, values.shape[0], columns, n)
    slopes = <double*> allocate(2 * k * sizeof(double))
    steps = slopes + k
    with nogil:
        if free.shape[0]:
            for l in range(k):
                slopes[l] = free_gradient[l]
            for i in range(n):
                for l in range(k):
                    slopes[l] += product[i, l]
            for l in range(k):
                if fabs(slopes[l]) > worst:
                    worst = fabs(slopes[l])
                steps[l] = 0.0
                if free_bounds[l] > 0.0:
                    steps[l] = -slopes[l] / free_bounds[l]
                free[l] += steps[l]
            for i in range(n):
                scaled = 0.0
                for l in range(k):
                    scaled += p[i, l] * steps[l]
                scaled *= s[i]
                for l in range(k):
                    product[i, l] += a[i, l] * steps[l] - scaled * p[i, l]
        for c in range(m):
            j = columns[c]
            for l in range(k):
                slopes[l] = gradient[c, l] + l2 * coef[c, l]
            for i in range(indptr[j], indptr[j + 1]):
                row = indices[i]
                x = values[i]
                for l in range(k):
                    slopes[l] += x * product[row, l]
            moved = False
            for l in range(k):
                steps[l] = 0.0
                if bounds[c, l] + l2 <= 0.0 and fabs(slopes[l]) >= l1:
                    continue
                violation = _violation(coef[c, l], slopes[l], l1)
                if violation > worst:
                    worst = violation
                if violation == 0.0:
                    continue
                new = _minimizer(coef[c, l], slopes[l], bounds[c, l] + l2, l1)
                steps[l] = new - coef[c, l]
                coef[c, l] = new
                moved = moved or steps[l] != 0.0
            if not moved:
                continue
            for i in range(indptr[j], indptr[j + 1]):
                row = indices[i]
                x = values[i]
                scaled = 0.0
                for l in range(k):
                    scaled += p[row, l] * steps[l]
                scaled *= s[row]
                for l in range(k):
                    product[row, l] += x * (
                        a[row, l] * steps[l] - scaled * p[row, l]
                    )
        free_memory(slopes)
    return worst
