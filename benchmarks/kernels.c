/* Straightforward loops of the arithmetic of the package's kernels, one function each.
 *
 * Arguments are the kernel's, after the number n of rows or kinks; numbers that the
 * kernel returns go to `result`, the last argument. Compiled by kernels.py.
 */
#include <math.h>
#include <stdint.h>

typedef const double *in;

static double clip(double t) { return t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t; }

void hinge_value(int64_t n, in z, in y, in s, double *result)
{
    double total = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double m = 1.0 - y[i] * z[i];
        if (m > 0.0)
            total += s[i] * m;
    }
    result[0] = total;
}

void hinge_subgradient(int64_t n, in z, in y, in s, double tolerance, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double m = 1.0 - y[i] * z[i];
        out[i] = m > tolerance ? -s[i] * y[i] : 0.0;
    }
}

void hinge_kinks_ahead(int64_t n, in z, in dz, in y, in s, double tolerance,
                       double *kinks, double *jumps, double *result)
{
    double slope = 0.0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        double m = 1.0 - y[i] * z[i], dm = -y[i] * dz[i];
        if (fabs(m) <= tolerance) {
            if (dm > 0.0)
                slope += s[i] * dm;
            continue;
        }
        if (m > 0.0)
            slope += s[i] * dm;
        if (m * dm < 0.0) {
            kinks[count] = -m / dm;
            jumps[count] = s[i] * fabs(dm);
            count++;
        }
    }
    result[0] = slope;
    result[1] = (double)count;
}

void hinge_squared_line(int64_t n, in z, in dz, in y, double *m, double *dm)
{
    for (int64_t i = 0; i < n; i++) {
        m[i] = 1.0 - y[i] * z[i];
        dm[i] = -y[i] * dz[i];
    }
}

void hinge_squared_slope(int64_t n, in m, in dm, in s, double step, double *result)
{
    double slope = 0.0, curvature = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double at = m[i] + step * dm[i];
        if (at > 0.0) {
            slope += s[i] * dm[i] * at;
            curvature += s[i] * dm[i] * dm[i];
        }
    }
    result[0] = 2.0 * slope;
    result[1] = 2.0 * curvature;
}

void hinge_envelope_dual(int64_t n, in z, in y, in s, in center, double width,
                         double *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = -s[i] * y[i] * clip(center[i] + (1.0 - y[i] * z[i]) / width);
}

void hinge_envelope_curvature(int64_t n, in z, in y, in s, in center, double width,
                              double edge, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double t = center[i] + (1.0 - y[i] * z[i]) / width;
        out[i] = t >= -edge && t <= 1.0 + edge ? s[i] / width : 0.0;
    }
}

void hinge_envelope_line(int64_t n, in z, in dz, in y, in center, double width,
                         double *t, double *dt)
{
    for (int64_t i = 0; i < n; i++) {
        t[i] = center[i] + (1.0 - y[i] * z[i]) / width;
        dt[i] = -y[i] * dz[i] / width;
    }
}

void hinge_envelope_slope(int64_t n, in t, in dt, in s, double width, double step,
                          double *result)
{
    double slope = 0.0, curvature = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double at = t[i] + step * dt[i];
        slope += s[i] * dt[i] * clip(at);
        if (at >= 0.0 && at <= 1.0)
            curvature += s[i] * dt[i] * dt[i];
    }
    result[0] = width * slope;
    result[1] = width * curvature;
}

static void swap(double *a, int64_t i, int64_t j)
{
    double kept = a[i];
    a[i] = a[j];
    a[j] = kept;
}

void piecewise_minimize(int64_t n, double a, double c, double *kinks, double *da,
                        double *dc, double *result)
{
    int64_t low = 0, high = n;
    double end = -1.0, step = -1.0;
    uint64_t state = 1;
    while (low < high) {
        double x[3];
        for (int k = 0; k < 3; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            x[k] = kinks[low + (int64_t)(state % (uint64_t)(high - low))];
        }
        double pivot = fmax(fmin(x[0], x[1]), fmin(fmax(x[0], x[1]), x[2]));
        double a_less = 0.0, c_less = 0.0, a_equal = 0.0, c_equal = 0.0;
        int64_t less = low, greater = high, i = low;
        while (i < greater) {
            int64_t j;
            if (kinks[i] < pivot) {
                a_less += da[i];
                c_less += dc[i];
                j = less++;
            } else if (kinks[i] > pivot) {
                j = --greater;
            } else {
                a_equal += da[i];
                c_equal += dc[i];
                i++;
                continue;
            }
            int above = kinks[i] > pivot;
            swap(kinks, i, j);
            swap(da, i, j);
            swap(dc, i, j);
            if (!above)
                i++;
        }
        if (a + a_less + (c + c_less) * pivot >= 0.0) {
            end = pivot;
            high = less;
            continue;
        }
        a += a_less + a_equal;
        c += c_less + c_equal;
        if (a + c * pivot >= 0.0) {
            step = pivot;
            break;
        }
        low = greater;
    }
    if (step < 0.0 && end >= 0.0)
        step = c > 0.0 && -a / c < end ? -a / c : end;
    result[0] = step;
}

void gram_add_half(int64_t n, in data, const int32_t *indices, const int32_t *indptr,
                   in s, const int32_t *position, double *out, int64_t columns)
{
    for (int64_t i = 0; i < n; i++)
        for (int32_t j = indptr[i]; j < indptr[i + 1]; j++) {
            int32_t a = position[indices[j]];
            if (a < 0)
                continue;
            double scaled = s[i] * data[j];
            double *row = out + a * columns;
            row[a] += 0.5 * scaled * data[j];
            for (int32_t k = j + 1; k < indptr[i + 1]; k++) {
                int32_t b = position[indices[k]];
                if (b >= 0)
                    row[b] += scaled * data[k];
            }
        }
}

void ascent_sweep(int64_t n, in data, const int32_t *indices, const int32_t *indptr,
                  in y, in low, in high, double ridge, in steps, in squares,
                  double intercept, double intercept_step, uint64_t seed,
                  int64_t n_active, int32_t *order, double *v, double *w, double *result)
{
    int64_t active = 0;
    for (int64_t k = n_active - 1; k > 0; k--) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        int64_t other = (int64_t)(seed % (uint64_t)(k + 1));
        int32_t kept = order[k];
        order[k] = order[other];
        order[other] = kept;
    }
    for (int64_t k = 0; k < n_active; k++) {
        int64_t i = order[k];
        double curvature = steps[i] * (squares[i] + intercept_step) + ridge;
        if (steps[i] == 0.0 || curvature == 0.0)
            continue;
        double z = intercept;
        for (int32_t j = indptr[i]; j < indptr[i + 1]; j++)
            z += data[j] * w[indices[j]];
        double b = v[i] + (y[i] - z - ridge * v[i]) / curvature;
        b = b < low[i] ? low[i] : b > high[i] ? high[i] : b;
        double change = (b - v[i]) * steps[i];
        if (change != 0.0 || (low[i] < b && b < high[i])) {
            order[k] = order[active];
            order[active++] = (int32_t)i;
        }
        if (change == 0.0)
            continue;
        v[i] = b;
        intercept += intercept_step * change;
        for (int32_t j = indptr[i]; j < indptr[i + 1]; j++)
            w[indices[j]] += change * data[j];
    }
    result[0] = intercept;
    result[1] = (double)active;
}
