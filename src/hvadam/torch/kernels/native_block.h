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

/* The sums of a group's lanes over n elements of low-bit state, the third of which is |m|^2. */
INLINE int FOR(kept_fold)(float lanes[4][16], int64_t n, double inv1, double dots[4])
{
    for (int k = 0; k < 4; k++) {
        quad_t quads[4];
        memcpy(quads, lanes[k], sizeof quads);
        lanes_t sum = (FOR(widen)(quads[0]) + FOR(widen)(quads[1])) +
                      (FOR(widen)(quads[2]) + FOR(widen)(quads[3]));
        dots[k] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
    dots[2] *= inv1 * inv1;
    return are_trusted(n, dots);
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
#define AT_MOST FOR(float_at_most)
#define LARGEST FLT_MAX
#define SMALLEST FLT_TRUE_MIN
#include "native_core.h"
#include "native_full.h"
#undef REAL
#undef NAME
#undef ROOT
#undef FMA
#undef AT_MOST
#undef LARGEST
#undef SMALLEST

#define REAL double
#define NAME(x) FOR(double_##x)
#define ROOT FOR(double_root)
#define FMA FOR(double_fma)
#define AT_MOST FOR(double_at_most)
#define LARGEST DBL_MAX
#define SMALLEST DBL_TRUE_MIN
#include "native_core.h"
#include "native_full.h"
#undef REAL
#undef NAME
#undef ROOT
#undef FMA
#undef AT_MOST
#undef LARGEST
#undef SMALLEST

#define REAL float
#define NAME(x) FOR(wide_##x)
#define ROOT FOR(wide_root)
#define FMA FOR(wide_fma)
#define AT_MOST FOR(wide_at_most)
#define LARGEST FLT_MAX
#define SMALLEST FLT_TRUE_MIN
#include "native_core.h"
#undef REAL
#undef NAME
#undef ROOT
#undef FMA
#undef AT_MOST
#undef LARGEST
#undef SMALLEST

#include "native_bf16.h"
#include "native_8_bit.h"

/* Theta of some elements, if a first pass with these flags needs it. */
INLINE const float *FOR(theta_for)(const row_t *row, int64_t at, int64_t n, int flags,
                                   float *buffer)
{
    if (!(flags & COUPLED)) return buffer;
    return load(row->theta + at * SIZE[row->theta_type], row->theta_type, n, buffer);
}

/* m and s of some elements, and their dots. */
INLINE void FOR(float_first)(const row_t *row, int64_t at, int64_t n,
                             const FOR(float_constants_t) *c, double dots[4])
{
    float theta_buffer[SUB], g_buffer[SUB];
    const float *g = load(row->g + at * SIZE[row->g_type], row->g_type, n, g_buffer);
    const float *theta = FOR(theta_for)(row, at, n, c->flags, theta_buffer);
    float *m = (float *)row->m + at;
    const float *v = (const float *)row->v + at;
    if (!FOR(float_first_pass)(n, theta, g, m, v, (float *)row->s + at, c, dots))
        FOR(double_dots)(n, m, v, row->inv1, dots);
}

INLINE void FOR(low_bit_first)(const row_t *row, uint32_t key, int64_t at, int64_t n,
                               const FOR(wide_constants_t) *c, double dots[4])
{
    float theta_buffer[SUB], g_buffer[SUB];
    const float *g = load(row->g + at * SIZE[row->g_type], row->g_type, n, g_buffer);
    const float *theta = FOR(theta_for)(row, at, n, c->flags, theta_buffer);
    if (row->state_type == BF16)
        FOR(bf16_first)(row, key, at, n, theta, g, c, dots);
    else
        FOR(i8_first)(row, key, at, n, theta, g, c, dots);
}

INLINE void FOR(double_first)(const row_t *row, int64_t at, int64_t n,
                              const FOR(double_constants_t) *c, double dots[4])
{
    FOR(double_first_pass)
    (n, (const double *)row->theta + at, (const double *)row->g + at, (double *)row->m + at,
     (const double *)row->v + at, (double *)row->s + at, c, dots);
}

/* All parts of a block in turn; what they share is computed once. */
#define EACH_PART(...)                                          \
    for (int64_t i = start, end = start + n; i < end; i += SUB) { \
        int64_t part = end - i < SUB ? end - i : SUB;           \
        __VA_ARGS__;                                            \
    }

static void FOR(first)(const row_t *row, const group_t *o, int64_t start, int64_t n, double *dots)
{
    double own[4];
    if (row->state_type == F64) {
        const FOR(double_constants_t) c = FOR(double_constants)(row, o, 0, 0);
        EACH_PART(FOR(double_first)(row, i, part, &c, own); add_dots(own, dots))
    } else if (row->state_type == F32) {
        const FOR(float_constants_t) c = FOR(float_constants)(row, o, 0, 0);
        EACH_PART(FOR(float_first)(row, i, part, &c, own); add_dots(own, dots))
    } else {
        const FOR(wide_constants_t) c = FOR(wide_constants)(row, o, 0, 0);
        const uint32_t key = key_of(row, o, 0);
        EACH_PART(FOR(low_bit_first)(row, key, i, part, &c, own); add_dots(own, dots))
    }
}

/* v and theta of some elements. */
INLINE void FOR(float_second)(const row_t *row, int64_t at, int64_t n,
                              const FOR(float_constants_t) *c)
{
    float buffer[SUB];
    char *memory = row->theta + at * SIZE[row->theta_type];
    float *theta = (float *)load(memory, row->theta_type, n, buffer);
    FOR(float_second_pass)
    (n, theta, (const float *)row->m + at, (float *)row->v + at, (const float *)row->s + at, c);
    store(memory, row->theta_type, n, theta);
}

INLINE void FOR(low_bit_second)(const row_t *row, uint32_t key, int64_t at, int64_t n,
                                const FOR(wide_constants_t) *c)
{
    float buffer[SUB];
    char *memory = row->theta + at * SIZE[row->theta_type];
    float *theta = (float *)load(memory, row->theta_type, n, buffer);
    if (row->state_type == BF16)
        FOR(bf16_second)(row, key, at, n, theta, c);
    else
        FOR(i8_second)(row, key, at, n, theta, c);
    store(memory, row->theta_type, n, theta);
}

INLINE void FOR(double_second)(const row_t *row, int64_t at, int64_t n,
                               const FOR(double_constants_t) *c)
{
    FOR(double_second_pass)
    (n, (double *)row->theta + at, (const double *)row->m + at, (double *)row->v + at,
     (const double *)row->s + at, c);
}

static void FOR(second)(const row_t *row, const group_t *o, int64_t start, int64_t n, double weight,
                        double along)
{
    if (row->state_type == F64) {
        const FOR(double_constants_t) c = FOR(double_constants)(row, o, weight, along);
        EACH_PART(FOR(double_second)(row, i, part, &c))
    } else if (row->state_type == F32) {
        const FOR(float_constants_t) c = FOR(float_constants)(row, o, weight, along);
        EACH_PART(FOR(float_second)(row, i, part, &c))
    } else {
        const FOR(wide_constants_t) c = FOR(wide_constants)(row, o, weight, along);
        const uint32_t key = key_of(row, o, 1);
        EACH_PART(FOR(low_bit_second)(row, key, i, part, &c))
    }
}
#undef EACH_PART

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
