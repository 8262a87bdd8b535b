"""Products with few dense rows in loops that compilers vectorize.

Arrays are C-contiguous. With q = d + 1 parameters the last is an intercept.
"""

from scipy.linalg.cython_lapack cimport dpotrf, dpotrs

from .standard cimport INFINITY

cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>
    #include "widest.h"

    /* Fill z[i * stride] with the product of row i of X and w, of q numbers. */
    WIDEST static void dense_forward(
        const double *X, ptrdiff_t n, ptrdiff_t d, ptrdiff_t q,
        const double *w, double *z, ptrdiff_t stride)
    {
        for (ptrdiff_t i = 0; i < n; i++, X += d) {
            /* Eighths of a sum do not wait for each other. */
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

    /* Fill g, of q numbers, with the product of the transpose of X and u. */
    WIDEST static void dense_adjoint(
        const double *X, ptrdiff_t n, ptrdiff_t d, ptrdiff_t q,
        const double *u, double *g)
    {
        double total = 0.0;
        memset(g, 0, q * sizeof(double));
        for (ptrdiff_t i = 0; i < n; i++, X += d) {
            const double a = u[i];
            if (a == 0.0) continue;
            total += a;
            for (ptrdiff_t j = 0; j < d; j++) g[j] += a * X[j];
        }
        if (q > d) g[d] = total;
    }

    /* Fill the upper half of H, q x q, with the transpose of X times bend X, eight rows
       at once. With a stride that is an estimate from some of the rows. */
    WIDEST static void dense_gram(
        const double *X, ptrdiff_t n, ptrdiff_t d, ptrdiff_t q,
        const double *bend, ptrdiff_t stride, double *H)
    {
        ptrdiff_t i = 0;
        memset(H, 0, q * q * sizeof(double));
        while (i < n) {
            const double *x[8];
            double c[8], a[8];
            int size = 0;
            for (; i < n && size < 8; i += stride)
                if (bend[i] > 0.0) {
                    x[size] = X + i * d;
                    c[size++] = (double) stride * bend[i];
                }
            if (!size) return;
            for (int m = size; m < 8; m++) {
                x[m] = x[0];
                c[m] = 0.0;
            }
            for (ptrdiff_t j = 0; j < d; j++) {
                double *row = H + j * q;
                for (int m = 0; m < 8; m++) a[m] = c[m] * x[m][j];
                for (ptrdiff_t k = j; k < d; k++)
                    row[k] += ((a[0] * x[0][k] + a[1] * x[1][k])
                               + (a[2] * x[2][k] + a[3] * x[3][k]))
                              + ((a[4] * x[4][k] + a[5] * x[5][k])
                                 + (a[6] * x[6][k] + a[7] * x[7][k]));
                if (q > d)
                    for (int m = 0; m < 8; m++) row[d] += a[m];
            }
            if (q > d)
                for (int m = 0; m < 8; m++) H[d * q + d] += c[m];
        }
    }
    """
    void dense_forward(
        const double* X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t q,
        const double* w, double* z, Py_ssize_t stride,
    ) noexcept nogil
    void dense_adjoint(
        const double* X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t q,
        const double* u, double* g,
    ) noexcept nogil
    void dense_gram(
        const double* X, Py_ssize_t n, Py_ssize_t d, Py_ssize_t q,
        const double* bend, Py_ssize_t stride, double* H,
    ) noexcept nogil


cdef inline bint dense_factor(double* H, Py_ssize_t q) noexcept nogil:
    """Make the upper half of H the R of H = RᵀR; return whether that is possible."""
    cdef int size = <int> q, info = 0
    cdef Py_ssize_t i
    # The upper half is the lower one to LAPACK, which goes by columns.
    dpotrf("L", &size, H, &size, &info)
    if info != 0:
        return False
    for i in range(q):
        if not 0.0 < H[i * q + i] < INFINITY:
            return False
    return True


cdef inline void dense_substitute(double* R, double* p, Py_ssize_t q) noexcept nogil:
    """Replace p by the inverse of RᵀR times p."""
    cdef int size = <int> q, one = 1, info
    dpotrs("L", &size, &one, R, &size, p, &size, &info)


cdef inline bint dense_solve(double* H, double* p, Py_ssize_t q) noexcept nogil:
    """Replace p by the inverse of H times p, and the upper half of H by its R."""
    if not dense_factor(H, q):
        return False
    dense_substitute(H, p, q)
    return True
