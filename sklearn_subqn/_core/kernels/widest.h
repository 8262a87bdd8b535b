/* Attribute of functions that GCC compiles for several widths of vector registers.

glibc selects the widest version that the processor supports when a kernel is loaded.
Loops over exponentials and logarithms then take half of the time. */
#ifndef WIDEST
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) \
    && defined(__gnu_linux__)
#define WIDEST __attribute__((unused, target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif
#endif
