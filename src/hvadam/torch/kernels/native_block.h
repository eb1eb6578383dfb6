/* One block of one tensor, for one instruction set: FOR(x) names what belongs to it. */

#include "native_vectors.h"

INLINE lanes_t FOR(widen)(quad_t x)
{
#if HAS_AVX2
    return (lanes_t)_mm256_cvtps_pd((__m128)x); /* what gcc 12 makes of the line below is slow */
#else
    return (lanes_t){x[0], x[1], x[2], x[3]};
#endif
}

/* The sums of the lanes over n elements. Returns whether they can be trusted. */
INLINE int FOR(float_fold)(const FOR(float_vector_t) sums[4], int64_t n, double dots[4])
{
    for (int k = 0; k < 4; k++) {
        dots[k] = 0;
        for (int lane = 0; lane < 8; lane++) dots[k] += sums[k][lane];
    }
    return are_trusted(n, dots);
}

INLINE int FOR(double_fold)(const FOR(double_vector_t) sums[4], int64_t n, double dots[4])
{
    (void)n;
    for (int k = 0; k < 4; k++) dots[k] = sums[k][0] + sums[k][1] + sums[k][2] + sums[k][3];
    return 1;
}

INLINE void FOR(double_dot_lanes)(quad_t m_hat, quad_t v, lanes_t sums[4])
{
    lanes_t a = FOR(widen)(m_hat), b = FOR(widen)(v), d = b - a;
    sums[0] += d * d;
    sums[1] += d * b;
    sums[2] += a * a;
    sums[3] += b * b;
}

/* The dots in double, where those in float cannot be trusted. */
static void FOR(double_dots)(int64_t n, const float *m, const float *v, double inv1, double dots[4])
{
    lanes_t sums[4] = {{0}};
    quad_t m_, v_;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        memcpy(&m_, m + i, sizeof m_);
        memcpy(&v_, v + i, sizeof v_);
        FOR(double_dot_lanes)(m_ * (float)inv1, v_, sums);
    }
    for (; i < n; i++)
        FOR(double_dot_lanes)((quad_t){m[i] * (float)inv1, 0, 0, 0}, (quad_t){v[i], 0, 0, 0}, sums);
    for (int k = 0; k < 4; k++) dots[k] = sums[k][0] + sums[k][1] + sums[k][2] + sums[k][3];
}

#define REAL float
#define NAME(x) FOR(float_##x)
#define ROOT FOR(float_root)
#define FMA FOR(float_fma)
#include "native_core.h"
#include "native_full.h"
#undef REAL
#undef NAME
#undef ROOT
#undef FMA

#define REAL double
#define NAME(x) FOR(double_##x)
#define ROOT FOR(double_root)
#define FMA FOR(double_fma)
#include "native_core.h"
#include "native_full.h"
#undef REAL
#undef NAME
#undef ROOT
#undef FMA

#define REAL float
#define NAME(x) FOR(wide_##x)
#define ROOT FOR(wide_root)
#define FMA FOR(wide_fma)
#include "native_core.h"
#undef REAL
#undef NAME
#undef ROOT
#undef FMA

#include "native_bf16.h"
#include "native_8_bit.h"

/* m and s of one block, and its dots; for the late step the rest of it too. */
static void FOR(first)(const row_t *row, const group_t *o, int late, int64_t start, int64_t n,
                       double *dots)
{
    const FOR(float_constants_t) c = FOR(float_constants)(row, o, row->weight, row->along, late);
    for (int64_t i = start, end = start + n; i < end; i += SUB) {
        int64_t part = end - i < SUB ? end - i : SUB;
        double own[4];
        if (row->state_type == F64) {
            const FOR(double_constants_t) exact =
                FOR(double_constants)(row, o, row->weight, row->along, late);
            FOR(double_first_pass)
            (part, (double *)row->theta + i, (const double *)row->g + i, (double *)row->m + i,
             (double *)row->v + i, (double *)row->s + i, &exact, own);
        } else {
            float theta_buffer[SUB], g_buffer[SUB];
            char *memory = row->theta + i * SIZE[row->theta_type];
            const float *g = load(row->g + i * SIZE[row->g_type], row->g_type, part, g_buffer);
            float *theta = theta_buffer;
            if (c.flags & (COUPLED | LATE))
                theta = (float *)load(memory, row->theta_type, part, theta_buffer);
            if (row->state_type == F32) {
                float *m = (float *)row->m + i, *v = (float *)row->v + i;
                if (!FOR(float_first_pass)(part, theta, g, m, v, (float *)row->s + i, &c, own))
                    FOR(double_dots)(part, m, v, row->inv1, own);
            } else {
                const FOR(wide_constants_t) wide =
                    FOR(wide_constants)(row, o, row->weight, row->along, late);
                if (row->state_type == BF16)
                    FOR(bf16_first)(row, o, i, part, theta, g, &wide, own);
                else
                    FOR(i8_first)(row, o, i, part, theta, g, &wide, own);
            }
            if (late) store(memory, row->theta_type, part, theta);
        }
        for (int k = 0; k < 4; k++) dots[k] += own[k];
    }
}

/* v and theta of one block. */
static void FOR(second)(const row_t *row, const group_t *o, int64_t start, int64_t n, double weight,
                        double along)
{
    const FOR(float_constants_t) c = FOR(float_constants)(row, o, weight, along, 0);
    for (int64_t i = start, end = start + n; i < end; i += SUB) {
        int64_t part = end - i < SUB ? end - i : SUB;
        if (row->state_type == F64) {
            const FOR(double_constants_t) exact = FOR(double_constants)(row, o, weight, along, 0);
            FOR(double_second_pass)
            (part, (double *)row->theta + i, (const double *)row->m + i, (double *)row->v + i,
             (const double *)row->s + i, &exact);
            continue;
        }
        float buffer[SUB];
        char *memory = row->theta + i * SIZE[row->theta_type];
        float *theta = (float *)load(memory, row->theta_type, part, buffer);
        if (row->state_type == F32) {
            FOR(float_second_pass)
            (part, theta, (const float *)row->m + i, (float *)row->v + i, (const float *)row->s + i,
             &c);
        } else {
            const FOR(wide_constants_t) wide = FOR(wide_constants)(row, o, weight, along, 0);
            if (row->state_type == BF16)
                FOR(bf16_second)(row, o, i, part, theta, &wide);
            else
                FOR(i8_second)(row, o, i, part, theta, &wide);
        }
        store(memory, row->theta_type, part, theta);
    }
}

/* The sum of squares of one block of gradients: in lanes of float, part by part, and in double
 * where they overflow. What underflows is nothing beside the 1e-6 that clipping adds. */
static double FOR(squares)(const row_t *row, int64_t start, int64_t n)
{
    double total = 0;
    for (int64_t i = start, end = start + n; i < end; i += SUB) {
        int64_t part = end - i < SUB ? end - i : SUB, k = 0;
        float buffer[SUB];
        if (row->g_type == F64) {
            const double *g = (const double *)row->g + i;
            for (; k < part; k++) total += g[k] * g[k];
            continue;
        }
        const float *g = load(row->g + i * SIZE[row->g_type], row->g_type, part, buffer);
        FOR(float_vector_t) x, sums[4] = {{0}};
        for (; k + 32 <= part; k += 32)
            for (int j = 0; j < 4; j++) {
                memcpy(&x, g + k + 8 * j, sizeof x);
                sums[j] = FOR(float_fma)(x, x, sums[j]);
            }
        sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        double own = 0;
        for (int lane = 0; lane < 8; lane++) own += sums[0][lane];
        if (!(own <= FLT_MAX)) own = k = 0;
        for (; k < part; k++) own += (double)g[k] * (double)g[k];
        total += own;
    }
    return total;
}
#undef IN_ORDER
