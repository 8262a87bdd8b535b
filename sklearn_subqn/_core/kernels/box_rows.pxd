"""Losses of rows whose dual variables are in a box, in loops that compilers vectorize.

With t = sign (y - z) the dual variable of the envelope is

    v(t) = clip(soft((width center + t) / (ridge + width), tube / (ridge + width))),

as in ``few_rows.pxd``; without a width it is that of the loss.
"""

cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include "widest.h"

    #define BOX_LANES 8

    static inline double box_least(double a, double b) { return a < b ? a : b; }
    static inline double box_most(double a, double b) { return a > b ? a : b; }
    static inline double box_clip(double x, double low, double high)
    {
        return box_least(box_most(x, low), high);
    }

    static inline double box_total(const double *parts)
    {
        return ((parts[0] + parts[4]) + (parts[1] + parts[5]))
               + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
    }

    typedef struct {
        double labels, low, high, tube, ridge, width;
    } Box;

    /* Fill v and bend, its derivatives times s. Set sums to those of the losses, of what
       v leaves of them, and of |t|, all times s. */
    WIDEST static void box_evaluate(
        ptrdiff_t n, const double *z, const double *y, const double *s,
        const double *center, Box o, double *v, double *bend, double *sums)
    {
        double losses[BOX_LANES] = {0.0}, rests[BOX_LANES] = {0.0};
        double reaches[BOX_LANES] = {0.0};
        const double r = 1.0 / (o.ridge + o.width), edge = o.tube * r;
        const double own = o.ridge > 0.0 ? 1.0 / o.ridge : 0.0, half = 0.5 * o.ridge;
        for (ptrdiff_t i = 0; i < n; i += BOX_LANES) {
            const int lanes = n - i < BOX_LANES ? (int) (n - i) : BOX_LANES;
            for (int l = 0; l < lanes; l++) {
                const ptrdiff_t j = i + l;
                const double t = (o.labels > 0.0 ? -y[j] : -1.0) * (z[j] - y[j]);
                double x = (o.width * center[j] + t) * r;
                x -= box_clip(x, -edge, edge);
                bend[j] = (x > o.low) & (x < o.high) & ((x != 0.0) | (edge == 0.0))
                    ? r * s[j] : 0.0;
                v[j] = x = box_clip(x, o.low, o.high);
                const double bound = x * (t - half * x) - o.tube * fabs(x);
                double loss = bound;
                if (o.width > 0.0 && o.ridge > 0.0) {
                    x = t * own;
                    x -= box_clip(x, -o.tube * own, o.tube * own);
                    x = box_clip(x, o.low, o.high);
                    loss = x * (t - half * x) - o.tube * fabs(x);
                } else if (o.width > 0.0)
                    loss = box_most(t - o.tube, 0.0) * o.high
                        + box_least(t + o.tube, 0.0) * o.low;
                losses[l] += s[j] * loss;
                rests[l] += s[j] * box_most(loss - bound, 0.0);
                reaches[l] += s[j] * fabs(t);
            }
        }
        sums[0] = box_total(losses);
        sums[1] = box_total(rests);
        sums[2] = box_total(reaches);
    }

    /* Fill, for scores z + step dz, what ``box_slopes`` reads: 4 n numbers. */
    WIDEST static void box_line(
        ptrdiff_t n, const double *z, const double *dz, const double *y,
        const double *s, const double *center, Box o, double *line)
    {
        const double r = 1.0 / (o.ridge + o.width);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double sign = o.labels > 0.0 ? -y[i] : -1.0, dt = sign * dz[i];
            line[i] = (o.width * center[i] + sign * (z[i] - y[i])) * r;
            line[n + i] = dt * r;
            line[2 * n + i] = s[i] * dt;
            line[3 * n + i] = s[i] * dt * dt * r;
        }
    }

    /* Add the first and the second derivative at a step to sums. */
    WIDEST static void box_slopes(
        ptrdiff_t n, const double *line, Box o, double step, double *sums)
    {
        double first[BOX_LANES] = {0.0}, second[BOX_LANES] = {0.0};
        const double edge = o.tube / (o.ridge + o.width);
        for (ptrdiff_t i = 0; i < n; i += BOX_LANES) {
            const int lanes = n - i < BOX_LANES ? (int) (n - i) : BOX_LANES;
            for (int l = 0; l < lanes; l++) {
                const double *row = line + i + l;
                double x = row[0] + step * row[n];
                x -= box_clip(x, -edge, edge);
                second[l] += (x > o.low) & (x < o.high)
                    & ((x != 0.0) | (edge == 0.0)) ? row[3 * n] : 0.0;
                first[l] += row[2 * n] * box_clip(x, o.low, o.high);
            }
        }
        sums[0] += box_total(first);
        sums[1] += box_total(second);
    }
    """
    ctypedef struct Box:
        double labels, low, high, tube, ridge, width

    void box_evaluate(
        Py_ssize_t n, const double* z, const double* y, const double* s,
        const double* center, Box o, double* v, double* bend, double* sums,
    ) noexcept nogil
    void box_line(
        Py_ssize_t n, const double* z, const double* dz, const double* y,
        const double* s, const double* center, Box o, double* line,
    ) noexcept nogil
    void box_slopes(
        Py_ssize_t n, const double* line, Box o, double step, double* sums,
    ) noexcept nogil
