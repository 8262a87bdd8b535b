"""Loops over rows padded to a multiple of four, in C for the keyword ``restrict``.

Outputs do not overlap inputs, so compilers vectorize without testing for overlap. Sizes
are multiples of four, and sums have four independent parts.
"""

cdef extern from *:
    """
    #include <stddef.h>

    /* out += x */
    static inline void add_row(
        double *restrict out, const double *restrict x, ptrdiff_t size)
    {
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++)
                out[j + c] += x[j + c];
    }

    /* out += a x */
    static inline void add_scaled_row(
        double *restrict out, double a, const double *restrict x, ptrdiff_t size)
    {
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++)
                out[j + c] += a * x[j + c];
    }

    /* out += a[0] x + a[1] (x + stride) + a[2] (x + 2 stride) + a[3] (x + 3 stride) */
    static inline void add_four_rows(
        double *restrict out, const double *restrict a, const double *restrict x,
        ptrdiff_t stride, ptrdiff_t size)
    {
        const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
        const double *y = x + 2 * stride;
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++)
                out[j + c] += (a0 * x[j + c] + a1 * x[stride + j + c])
                    + (a2 * y[j + c] + a3 * y[stride + j + c]);
    }

    /* The product of a row x with a square matrix A. */
    static inline void row_times(
        const double *restrict x, const double *restrict A, ptrdiff_t size,
        double *restrict out)
    {
        for (ptrdiff_t j = 0; j < size; j++)
            out[j] = 0.0;
        for (ptrdiff_t i = 0; i < size; i += 4)
            add_four_rows(out, x + i, A + i * size, size, size);
    }

    /* out = x * y, entry by entry; returns the sum of out. */
    static inline double multiply_rows(
        double *restrict out, const double *restrict x, const double *restrict y,
        ptrdiff_t size)
    {
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++) {
                const double product = x[j + c] * y[j + c];
                out[j + c] = product;
                sums[c] += product;
            }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    /* out = x */
    static inline void copy_row(
        double *restrict out, const double *restrict x, ptrdiff_t size)
    {
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++)
                out[j + c] = x[j + c];
    }

    /* Set entries without a bit in the mask, four bits to a byte, to zero; add the
       squares to four sums. ``ones`` has four factors 0 or 1 for each bit pattern. */
    static inline void restrict_row(
        double *restrict x, const double *restrict ones,
        const unsigned char *restrict mask, ptrdiff_t size, double *restrict sums)
    {
        double squares[4] = {0.0, 0.0, 0.0, 0.0};
        for (ptrdiff_t j = 0; j < size; j += 4) {
            const double *one = ones + 4 * mask[j >> 2];
            for (int c = 0; c < 4; c++) {
                const double kept = x[j + c] * one[c];
                x[j + c] = kept;
                squares[c] += kept * kept;
            }
        }
        for (int c = 0; c < 4; c++)
            sums[c] += squares[c];
    }

    /* out *= x, entry by entry. */
    static inline void multiply_row(
        double *restrict out, const double *restrict x, ptrdiff_t size)
    {
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++)
                out[j + c] *= x[j + c];
    }

    /* x *= a */
    static inline void scale_row(double *restrict x, double a, ptrdiff_t size)
    {
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++)
                x[j + c] *= a;
    }

    /* The largest of ``size`` entries, any number of them. */
    static inline double largest_of_row(const double *restrict x, ptrdiff_t size)
    {
        double high = x[0];
        ptrdiff_t j = 0;
        if (size >= 8) {
            double highs[4] = {x[0], x[1], x[2], x[3]};
            for (j = 4; j + 4 <= size; j += 4)
                for (int c = 0; c < 4; c++)
                    highs[c] = x[j + c] > highs[c] ? x[j + c] : highs[c];
            for (int c = 0; c < 4; c++)
                high = highs[c] > high ? highs[c] : high;
        }
        for (; j < size; j++)
            high = x[j] > high ? x[j] : high;
        return high;
    }

    /* The sum of the products of x with y - shift. */
    static inline double shifted_product(
        const double *restrict x, const double *restrict y, double shift,
        ptrdiff_t size)
    {
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        for (ptrdiff_t j = 0; j < size; j += 4)
            for (int c = 0; c < 4; c++)
                sums[c] += x[j + c] * (y[j + c] - shift);
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    """
    void add_row(double* out, const double* x, Py_ssize_t size) noexcept nogil
    void add_scaled_row(
        double* out, double a, const double* x, Py_ssize_t size
    ) noexcept nogil
    void add_four_rows(
        double* out, const double* a, const double* x, Py_ssize_t stride, Py_ssize_t size
    ) noexcept nogil
    void row_times(
        const double* x, const double* A, Py_ssize_t size, double* out
    ) noexcept nogil
    void copy_row(double* out, const double* x, Py_ssize_t size) noexcept nogil
    void restrict_row(
        double* x, const double* ones, const unsigned char* mask, Py_ssize_t size,
        double* sums
    ) noexcept nogil
    void multiply_row(double* out, const double* x, Py_ssize_t size) noexcept nogil
    double multiply_rows(
        double* out, const double* x, const double* y, Py_ssize_t size
    ) noexcept nogil
    void scale_row(double* x, double a, Py_ssize_t size) noexcept nogil
    double largest_of_row(const double* x, Py_ssize_t size) noexcept nogil
    double shifted_product(
        const double* x, const double* y, double shift, Py_ssize_t size
    ) noexcept nogil
