/* A mark of loops that GCC compiles for several widths of registers.

With glibc the widest ones of the processor are taken when a kernel is loaded: loops over
exponentials and logarithms take half of the time. */
#ifndef WIDEST
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) \
    && defined(__gnu_linux__)
#define WIDEST __attribute__((unused, target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif
#endif
