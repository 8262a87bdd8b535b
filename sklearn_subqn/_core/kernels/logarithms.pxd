"""Natural logarithms without branches, so that loops vectorize.

With x = 2^k (1 + f) and 1 + f between √½ and √2, ln(1 + f) is the rational
approximation in FreeBSD's ``e_log.c``, whose error is below one unit in the last place.
"""

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>
    #include "widest.h"

    /* Return k ln 2 + ln(1 + f). */
    static inline double logarithm_of_parts(double f, double k)
    {
        const double s = f / (2.0 + f), z = s * s, w = z * z;
        const double half = 0.5 * f * f;
        const double even = w * (3.999999999940941908e-01
            + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
        const double odd = z * (6.666666666666735130e-01
            + w * (2.857142874366239149e-01
            + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
        /* The first part of ln 2 has few bits, so its product with k is exact. */
        return k * 6.93147180369123816490e-01
            - ((half - (s * (half + (even + odd)) + k * 1.90821492927058770002e-10))
            - f);
    }

    /* Set f and k of a positive normal number x. */
    static inline void logarithm_parts(double x, double *f, double *k)
    {
        const uint64_t root = 0x3fe6a09e667f3bcdULL;  /* √½ */
        uint64_t bits, mantissa;
        memcpy(&bits, &x, sizeof bits);
        bits += 0x3ff0000000000000ULL - root;
        mantissa = (bits & 0x000fffffffffffffULL) + root;
        /* Put the exponent into the last bits of 2^52: converting integers to
           doubles would not vectorize. */
        bits = (bits >> 52) | 0x4330000000000000ULL;
        memcpy(f, &mantissa, sizeof mantissa);
        memcpy(k, &bits, sizeof bits);
        *f -= 1.0;
        *k -= 4503599627370496.0 + 1023.0;
    }

    /* Return ln(1 + x) for 0 <= x <= 1. */
    static inline double log_of_one_more(double x)
    {
        const int large = x > 0.41421356237309503;
        return logarithm_of_parts(large ? 0.5 * x - 0.5 : x, large ? 1.0 : 0.0);
    }

    /* Return ln x of a normal number x, 0 < x. */
    static inline double log_of(double x)
    {
        double f, k;
        logarithm_parts(x, &f, &k);
        return logarithm_of_parts(f, k);
    }

    /* Return ln(1 - x) for 0 <= x < 1. */
    static inline double log_of_one_less(double x)
    {
        double f, k;
        logarithm_parts(1.0 - x, &f, &k);
        return logarithm_of_parts(x > 0.25 ? f : -x, x > 0.25 ? k : 0.0);
    }

    /* Write ln x of each number x, and zero for x = 0; ``out`` may be ``x``. */
    WIDEST static void logarithms(const double *x, ptrdiff_t size, double *out)
    {
        for (ptrdiff_t j = 0; j < size; j++)
            out[j] = log_of(x[j] < 2.2250738585072014e-308 ? 1.0 : x[j]);
    }
    """
    void logarithms(const double* x, Py_ssize_t size, double* out) noexcept nogil
    double log_of_one_more(double x) noexcept nogil
    double log_of(double x) noexcept nogil
    double log_of_one_less(double x) noexcept nogil
