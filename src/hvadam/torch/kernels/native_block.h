/* One block of one tensor, for one instruction set: FOR(x) names what belongs to it.
 *
 * All sets compute with the same lanes in the same order, and form no fused multiply-add
 * (-ffp-contract=off): they give the same bits.
 */

INLINE lanes_t FOR(widen)(quad_t x)
{
#if HAS_AVX2
    return (lanes_t)_mm256_cvtps_pd((__m128)x); /* what gcc 12 makes of the line below is slow */
#else
    return (lanes_t){x[0], x[1], x[2], x[3]};
#endif
}

#define REAL float
#define NAME(x) FOR(float_##x)
#define SQRT __builtin_sqrtf
#define WIDEN FOR(widen)
#include "native_core.h"
#undef REAL
#undef NAME
#undef SQRT
#undef WIDEN

#define REAL double
#define NAME(x) FOR(double_##x)
#define SQRT __builtin_sqrt
#define WIDEN
#include "native_core.h"
#undef REAL
#undef NAME
#undef SQRT
#undef WIDEN

static void FOR(accumulate)(const row_t *row, const group_t *o, int64_t start, int64_t n,
                             double *dots)
{
    float theta_buffer[SUB], g_buffer[SUB];
    for (int64_t i = start, end = start + n; i < end; i += SUB) {
        int64_t part = end - i < SUB ? end - i : SUB;
        if (row->state_type == F64) {
            double *m = (double *)row->m + i;
            const double *v = (const double *)row->v + i;
            FOR(double_accumulate)(part, (const double *)row->theta + i, (const double *)row->g + i, m, v,
                              (double *)row->s + i, o, row->inv1, dots);
        } else {
            float *m = (float *)row->m + i;
            const float *v = (const float *)row->v + i;
            const float *g = load(row->g + i * SIZE[row->g_type], row->g_type, part, g_buffer);
            const float *theta = g;
            if (o->coupled_decay != 0)
                theta = load(row->theta + i * SIZE[row->theta_type], row->theta_type, part,
                             theta_buffer);
            FOR(float_accumulate)(part, theta, g, m, v, (float *)row->s + i, o, row->inv1, dots);
        }
    }
}

static void FOR(apply)(const row_t *row, const group_t *o, int64_t start, int64_t n, double weight,
                        double hidden)
{
    float buffer[SUB];
    for (int64_t i = start, end = start + n; i < end; i += SUB) {
        int64_t part = end - i < SUB ? end - i : SUB;
        if (row->state_type == F64) {
            FOR(double_move)(part, (double *)row->theta + i, (const double *)row->m + i,
                        (double *)row->v + i, (const double *)row->s + i, row->inv1, row->inv2,
                        weight, hidden, o);
        } else {
            char *memory = row->theta + i * SIZE[row->theta_type];
            float *theta = (float *)load(memory, row->theta_type, part, buffer);
            FOR(float_move)(part, theta, (const float *)row->m + i, (float *)row->v + i,
                       (const float *)row->s + i, row->inv1, row->inv2, weight, hidden, o);
            store(memory, row->theta_type, part, theta);
        }
    }
}
