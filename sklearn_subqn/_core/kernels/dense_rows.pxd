"""Products with dense rows, Gram matrices and Cholesky solves for few parameters.

Arrays are C-contiguous. With q = d + 1 parameters the last one is an intercept.
"""

from scipy.linalg.cython_blas cimport dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs

from .standard cimport INFINITY, memset, sqrt

cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>
    #include "widest.h"

    /* Set z[i * stride] to the product of row i of X and w, of q numbers. */
    WIDEST static void dense_forward(
        const double *X, ptrdiff_t n, ptrdiff_t d, ptrdiff_t q,
        const double *w, double *z, ptrdiff_t stride)
    {
        for (ptrdiff_t i = 0; i < n; i++, X += d) {
            /* Eight partial sums are independent, so the loop vectorizes. */
            double parts[8] = {0.0};
            double total = q > d ? w[d] : 0.0;
            ptrdiff_t j = 0;
            for (; j + 8 <= d; j += 8)
                for (int l = 0; l < 8; l++) parts[l] += X[j + l] * w[j + l];
            for (; j < d; j++) total += X[j] * w[j];
            total += (parts[0] + parts[4]) + (parts[1] + parts[5]);
            z[i * stride] = total + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
        }
    }

    /* Set z[i] to the product of row i of X and w, and sizes[i] to that of their
       absolute values. */
    WIDEST static void dense_with_sizes(
        const double *X, ptrdiff_t n, ptrdiff_t d, const double *w,
        double *z, double *sizes)
    {
        for (ptrdiff_t i = 0; i < n; i++, X += d) {
            double parts[8] = {0.0}, norms[8] = {0.0}, total = 0.0, size = 0.0;
            ptrdiff_t j = 0;
            for (; j + 8 <= d; j += 8)
                for (int l = 0; l < 8; l++) parts[l] += X[j + l] * w[j + l];
            /* A second loop takes less time than two sums in the first one. */
            for (j = 0; j + 8 <= d; j += 8)
                for (int l = 0; l < 8; l++) norms[l] += fabs(X[j + l] * w[j + l]);
            for (; j < d; j++) {
                total += X[j] * w[j];
                size += fabs(X[j] * w[j]);
            }
            total += (parts[0] + parts[4]) + (parts[1] + parts[5]);
            z[i] = total + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
            size += (norms[0] + norms[4]) + (norms[1] + norms[5]);
            sizes[i] = size + ((norms[2] + norms[6]) + (norms[3] + norms[7]));
        }
    }

    /* Round the k numbers of each row to a power of two, at most share times its size
       plus least. The size may overflow where the numbers do not. */
    WIDEST static void dense_round(
        const double *sizes, double least, double share,
        ptrdiff_t n, ptrdiff_t k, double *z)
    {
        for (ptrdiff_t i = 0; i < n; i++, z += k) {
            double unit = share * (sizes[i] + least);
            uint64_t bits;
            unit = unit > 0x1p1000 ? 0x1p1000 : unit < 0x1p-1000 ? 0x1p-1000 : unit;
            memcpy(&bits, &unit, sizeof bits);
            /* Without its mantissa a number is a power of two. */
            bits &= UINT64_C(0x7FF) << 52;
            memcpy(&unit, &bits, sizeof bits);
            for (ptrdiff_t l = 0; l < k; l++) z[l] = rint(z[l] / unit) * unit;
        }
    }

    /* Add the product of the transpose of X and u to g, of q numbers. */
    WIDEST static void dense_add_adjoint(
        const double *X, ptrdiff_t n, ptrdiff_t d, ptrdiff_t q,
        const double *u, double *restrict g)
    {
        double total = 0.0;
        for (ptrdiff_t i = 0; i < n; i++, X += d) {
            const double a = u[i];
            if (a == 0.0) continue;
            total += a;
            for (ptrdiff_t j = 0; j < d; j++) g[j] += a * X[j];
        }
        if (q > d) g[d] += total;
    }
    """
    void dense_forward(
        const double* X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t q,
        const double* w, double* z, Py_ssize_t stride,
    ) noexcept nogil
    void dense_with_sizes(
        const double* X, Py_ssize_t n, Py_ssize_t d, const double* w,
        double* z, double* sizes,
    ) noexcept nogil
    void dense_round(
        const double* sizes, double least, double share,
        Py_ssize_t n, Py_ssize_t k, double* z,
    ) noexcept nogil
    void dense_add_adjoint(
        const double* X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t q,
        const double* u, double* g,
    ) noexcept nogil

cdef enum:
    # Number of rows in one BLAS call for the Gram matrix.
    GRAM_ROWS = 128


cdef inline void dense_gram(
    const double* X,
    Py_ssize_t n,
    Py_ssize_t d,
    Py_ssize_t q,
    const double* bend,
    Py_ssize_t stride,
    double* H,
    double* room,
    const Py_ssize_t* columns=NULL,
    const double* factors=NULL,
) noexcept nogil:
    """Fill the upper triangle of H = Xᵀ diag(bend) X, of shape (q, q).

    With a stride above one, H is estimated from every stride-th row. ``room`` is a
    workspace of GRAM_ROWS rows of q numbers. If ``columns`` are given, H is restricted
    to these q columns; column d is the intercept. ``factors`` of all columns multiply
    them.
    """
    cdef int m, width = <int> q
    cdef Py_ssize_t i = 0, j
    cdef double root, one = 1.0
    cdef double* row
    cdef const double* x
    memset(H, 0, q * q * sizeof(double))
    while i < n:
        m, row = 0, room
        while i < n and m < GRAM_ROWS:
            if bend[i] > 0.0:
                root, x = sqrt(stride * bend[i]), X + i * d
                if columns != NULL:
                    for j in range(q):
                        row[j] = root * (x[columns[j]] if columns[j] < d else 1.0)
                else:
                    for j in range(d):
                        row[j] = root * x[j]
                    if q > d:
                        row[d] = root
                if factors != NULL:
                    for j in range(q):
                        row[j] *= factors[j if columns == NULL else columns[j]]
                row += q
                m += 1
            i += stride
        # BLAS is column-major: a row here is a column there, and the upper triangle
        # here is the lower one there.
        if m > 0:
            dsyrk("L", "N", &width, &m, &one, room, &width, &one, H, &width)


cdef inline bint dense_factor(double* H, Py_ssize_t q) noexcept nogil:
    """Overwrite H with its Cholesky factor R, H = RᵀR; return whether R exists."""
    cdef int size = <int> q, info = 0
    cdef Py_ssize_t i
    # LAPACK is column-major: the upper triangle here is the lower one there.
    dpotrf("L", &size, H, &size, &info)
    if info != 0:
        return False
    for i in range(q):
        if not 0.0 < H[i * q + i] < INFINITY:
            return False
    return True


cdef inline void dense_substitute(double* R, double* p, Py_ssize_t q) noexcept nogil:
    """Replace p by (RᵀR)⁻¹ p."""
    cdef int size = <int> q, one = 1, info
    dpotrs("L", &size, &one, R, &size, p, &size, &info)


cdef inline bint dense_solve(double* H, double* p, Py_ssize_t q) noexcept nogil:
    """Replace p by H⁻¹ p, and the upper triangle of H by its Cholesky factor."""
    if not dense_factor(H, q):
        return False
    dense_substitute(H, p, q)
    return True
