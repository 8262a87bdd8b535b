"""Exponentials and probabilities, in loops that compilers vectorize."""

cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>
    #include "widest.h"

    /* Replace each x <= 700 by exp(x), which is taken as zero below -708.

       With x = n ln 2 + r, exp(x) is 2^n times the Taylor polynomial of exp(r) of
       degree 12, whose relative error is below 2e-16 for |r| <= ln 2 / 2. */
    WIDEST static void exponentials(double *x, ptrdiff_t size)
    {
        const double rounder = 6755399441055744.0;  /* 1.5 * 2^52 */
        for (ptrdiff_t j = 0; j < size; j++) {
            const double v = x[j];
            double n = (v < -708.0 ? -708.0 : v) * 1.4426950408889634 + rounder;
            long long bits;
            memcpy(&bits, &n, sizeof bits);
            n -= rounder;
            double r = v < -708.0 ? -708.0 : v;
            /* The first part of ln 2 has few bits, so its product with n is exact. */
            r = (r - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
            /* Even and odd powers are two independent chains, faster than one. */
            const double s = r * r;
            double even = 1.0 / 479001600.0, odd = 1.0 / 39916800.0;
            even = even * s + 1.0 / 3628800.0;
            odd = odd * s + 1.0 / 362880.0;
            even = even * s + 1.0 / 40320.0;
            odd = odd * s + 1.0 / 5040.0;
            even = even * s + 1.0 / 720.0;
            odd = odd * s + 1.0 / 120.0;
            even = even * s + 1.0 / 24.0;
            odd = odd * s + 1.0 / 6.0;
            even = even * s + 0.5;
            even = even * s;
            odd = odd * s * r;
            const double p = 1.0 + (r + (even + odd));
            bits = (long long) (((unsigned long long) bits + 1023u) << 52);
            double power;
            memcpy(&power, &bits, sizeof power);
            x[j] = v < -708.0 ? 0.0 : p * power;
        }
    }

    /* Replace the k scores z of each row by exp(z) divided by their sum.

       Unless parts is NULL, it receives for each row the largest score, and the sum of
       exp(z - largest score). The eight partial results of long rows are independent,
       so the loops vectorize. */
    WIDEST static void probabilities_of_rows(
        double *z, ptrdiff_t n, ptrdiff_t k, double *parts)
    {
        const ptrdiff_t whole = k - k % 8;
        for (ptrdiff_t i = 0; i < n; i++) {
            double *const q = z + i * k, some[8], largest = q[0];
            for (int l = 0; l < 8 && whole; l++) some[l] = q[l];
            for (ptrdiff_t j = 8; j < whole; j += 8)
                for (int l = 0; l < 8; l++)
                    some[l] = q[j + l] > some[l] ? q[j + l] : some[l];
            for (int l = 0; l < 8 && whole; l++)
                largest = some[l] > largest ? some[l] : largest;
            for (ptrdiff_t j = whole; j < k; j++)
                largest = q[j] > largest ? q[j] : largest;
            for (ptrdiff_t j = 0; j < k; j++) q[j] -= largest;
            if (parts) parts[2 * i] = largest;
        }
        exponentials(z, n * k);
        for (ptrdiff_t i = 0; i < n; i++) {
            double *const q = z + i * k, some[8] = {0.0}, total = 0.0;
            for (ptrdiff_t j = 0; j < whole; j += 8)
                for (int l = 0; l < 8; l++) some[l] += q[j + l];
            for (int l = 0; l < 8 && whole; l++) total += some[l];
            for (ptrdiff_t j = whole; j < k; j++) total += q[j];
            if (parts) parts[2 * i + 1] = total;
            total = 1.0 / total;
            for (ptrdiff_t j = 0; j < k; j++) q[j] *= total;
        }
    }
    """
    void exponentials(double* x, Py_ssize_t size) noexcept nogil
    void probabilities_of_rows(
        double* z, Py_ssize_t n, Py_ssize_t k, double* parts
    ) noexcept nogil
