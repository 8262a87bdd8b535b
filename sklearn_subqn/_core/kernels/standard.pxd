"""Declarations of the C library functions in the kernels.

Cython's own declaration files would become build dependencies of the kernels. With
build isolation, these files and Cython are deleted after an editable installation, so
the first import would try to rebuild all kernels, without Cython.
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
    int memcmp(const void *a, const void *b, size_t size)
    void *memcpy(void *to, const void *source, size_t size)
    void *memset(void *to, int byte, size_t size)
