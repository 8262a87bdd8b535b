"""What kernels use of the C library.

Cython has files of the same declarations. Kernels that cimport those depend on them: with
build isolation they are gone after an editable installation, and its first import would
build everything anew, by a Cython that is gone as well.
"""

cdef extern from "math.h" nogil:
    const double INFINITY
    double ceil(double x)
    double exp(double x)
    double fabs(double x)
    double log(double x)
    double sqrt(double x)

cdef extern from "float.h" nogil:
    const double DBL_EPSILON
    const double DBL_MIN

cdef extern from "stdlib.h" nogil:
    void *malloc(size_t size)
    void free(void *memory)

cdef extern from "string.h" nogil:
    void *memcpy(void *to, const void *source, size_t size)
    void *memset(void *to, int byte, size_t size)
