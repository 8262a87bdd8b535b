/* Counts the products with X that OCAS makes: a library to load before libocas.
 *
 * It stands before svm_ocas_solver and passes on its own callbacks, which count and
 * call those of the program. compute_output makes the scores of all rows, one product;
 * add_new_cut sums some of the rows, which count by their share. When the solver
 * returns, it prints "products N rows S", N the number of the first, S the sum of the
 * shares of the second. Compiled by bundle.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef void compute_w(double *, double *, double *, uint32_t, void *);
typedef double update_w(double, void *);
typedef int new_cut(double *, uint32_t *, uint32_t, uint32_t, void *);
typedef int output(double *, void *);
typedef int sort(double *, double *, uint32_t);

/* A structure is returned through a pointer to the caller's, a hidden first argument,
 * which comes back as the result; so its fields need not be known. */
typedef void *solver(void *result, double C, uint32_t n, double tol_rel,
                     double tol_abs, double bound, double max_time, uint32_t size,
                     uint8_t method, compute_w *, update_w *, new_cut *, output *,
                     sort *, void *print, void *data);

static new_cut *real_cut;
static output *real_output;
static uint64_t n_products, n_cut_rows;

static int counted_cut(double *column, uint32_t *rows, uint32_t length, uint32_t t,
                       void *data)
{
    n_cut_rows += length;
    return real_cut(column, rows, length, t, data);
}

static int counted_output(double *scores, void *data)
{
    n_products++;
    return real_output(scores, data);
}

void *svm_ocas_solver(void *result, double C, uint32_t n, double tol_rel,
                      double tol_abs, double bound, double max_time, uint32_t size,
                      uint8_t method, compute_w *w, update_w *update, new_cut *cut,
                      output *scores, sort *order, void *print, void *data)
{
    solver *real = (solver *)dlsym(RTLD_NEXT, "svm_ocas_solver");
    real_cut = cut;
    real_output = scores;
    void *returned = real(result, C, n, tol_rel, tol_abs, bound, max_time, size,
                          method, w, update, counted_cut, counted_output, order,
                          print, data);
    printf("products %llu rows %.3f\n", (unsigned long long)n_products,
           (double)n_cut_rows / n);
    return returned;
}
