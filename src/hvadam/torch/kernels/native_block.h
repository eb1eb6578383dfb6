/* One block of one tensor, for one instruction set: FOR(x) names what belongs to it.
 *
 * All sets compute with the same lanes in the same order, and form no fused multiply-add
 * (-ffp-contract=off): they give the same bits.
 */

typedef float FOR(float8_t) __attribute__((vector_size(32)));
typedef double FOR(double4_t) __attribute__((vector_size(32)));

INLINE lanes_t FOR(widen)(quad_t x)
{
#if HAS_AVX2
    return (lanes_t)_mm256_cvtps_pd((__m128)x); /* what gcc 12 makes of the line below is slow */
#else
    return (lanes_t){x[0], x[1], x[2], x[3]};
#endif
}

INLINE FOR(float8_t) FOR(float_root)(FOR(float8_t) x)
{
#if HAS_AVX2
    return (FOR(float8_t))_mm256_sqrt_ps((__m256)x);
#else
    for (int lane = 0; lane < 8; lane++) x[lane] = __builtin_sqrtf(x[lane]);
    return x;
#endif
}

INLINE FOR(double4_t) FOR(double_root)(FOR(double4_t) x)
{
#if HAS_AVX2
    return (FOR(double4_t))_mm256_sqrt_pd((__m256d)x);
#else
    for (int lane = 0; lane < 4; lane++) x[lane] = __builtin_sqrt(x[lane]);
    return x;
#endif
}

#define REAL float
#define NAME(x) FOR(float_##x)
#define SQRT __builtin_sqrtf
#define ROOT FOR(float_root)
#define WIDEN FOR(widen)
#include "native_core.h"
#undef REAL
#undef NAME
#undef SQRT
#undef ROOT
#undef WIDEN

#define REAL double
#define NAME(x) FOR(double_##x)
#define SQRT __builtin_sqrt
#define ROOT FOR(double_root)
#define WIDEN
#include "native_core.h"
#undef REAL
#undef NAME
#undef SQRT
#undef ROOT
#undef WIDEN

/* Low-bit state of one part, in full. */
INLINE void FOR(decode)(const row_t *row, int64_t at, int64_t n, float *m, float *v, float *s)
{
    if (row->state_type == BF16) {
        bf16_decode(n, (const uint16_t *)row->m + at, m);
        bf16_decode(n, (const uint16_t *)row->v + at, v);
        bf16_decode(n, (const uint16_t *)row->s + at, s);
    } else {
        i8_decode(n, (const int8_t *)row->m + at, row->m_scales + at / STATE_BLOCK, m);
        i8_decode(n, (const int8_t *)row->v + at, row->v_scales + at / STATE_BLOCK, v);
        u8_decode(n, (const uint8_t *)row->s + at, row->s_scales + at / STATE_BLOCK, s);
    }
}

INLINE void FOR(keep_average)(const row_t *row, uint32_t key, int64_t at, int64_t n, float *m,
                              float *s)
{
    uint32_t bits[SUB];
    fill_bits(n, key, (uint32_t)at, bits);
    if (row->state_type == BF16) {
        bf16_encode(n, m, (uint16_t *)row->m + at, bits, 0);
        bf16_encode(n, s, (uint16_t *)row->s + at, bits, 16);
    } else {
        i8_encode(n, m, (int8_t *)row->m + at, row->m_scales + at / STATE_BLOCK, bits);
        u8_encode(n, s, (uint8_t *)row->s + at, row->s_scales + at / STATE_BLOCK, bits);
    }
}

INLINE void FOR(keep_hidden)(const row_t *row, uint32_t key, int64_t at, int64_t n, float *v)
{
    uint32_t bits[SUB];
    fill_bits(n, key, (uint32_t)at, bits);
    if (row->state_type == BF16)
        bf16_encode(n, v, (uint16_t *)row->v + at, bits, 0);
    else
        i8_encode(n, v, (int8_t *)row->v + at, row->v_scales + at / STATE_BLOCK, bits);
}

/* The first pass over one part of a tensor with low-bit state. */
INLINE void FOR(low_bit_first)(const row_t *row, const group_t *o, int late, int64_t at, int64_t n,
                               double *dots)
{
    float m[SUB], v[SUB], s[SUB], g_buffer[SUB], theta_buffer[SUB];
    FOR(float_constants_t) c = FOR(float_constants)(row, o);
    uint32_t step = (uint32_t)*row->step, seed = (uint32_t)o->seed, index = (uint32_t)row->index;
    char *memory = row->theta + at * SIZE[row->theta_type];
    const float *g = load(row->g + at * SIZE[row->g_type], row->g_type, n, g_buffer);
    float *theta = theta_buffer;
    if (o->coupled_decay != 0 || late)
        theta = (float *)load(memory, row->theta_type, n, theta_buffer);
    FOR(decode)(row, at, n, m, v, s);
    if (late) {
        FOR(float_move_hidden)(n, m, v, c.inv1_before, c.weight);
        FOR(keep_hidden)(row, key_of(seed, index, step - 1, 1), at, n, v);
        FOR(float_settle)(n, theta, v, c);
    }
    FOR(float_first_pass_as)
    (n, theta, g, m, v, s, c, o->adam != 0, o->coupled_decay != 0, 0, 0, NULL);
    FOR(keep_average)(row, key_of(seed, index, step, 0), at, n, m, s);
    FOR(float_dots)(n, m, v, c.inv1, dots);
    if (late) {
        FOR(float_second_pass)(n, theta, m, v, s, c, 0.0f, 0.0f);
        store(memory, row->theta_type, n, theta);
    }
}

/* ---- bfloat16 state in one go, eight elements at a time ---- */

typedef uint32_t FOR(bits8_t) __attribute__((vector_size(32)));
typedef int32_t FOR(int8x32_t) __attribute__((vector_size(32)));

INLINE FOR(bits8_t) FOR(mix8)(FOR(bits8_t) x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

INLINE FOR(float8_t) FOR(load_bf16)(const uint16_t *from)
{
    FOR(bits8_t) bits;
#if HAS_AVX2
    bits = (FOR(bits8_t))_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
#else
    for (int lane = 0; lane < 8; lane++) bits[lane] = from[lane];
#endif
    return (FOR(float8_t))(bits << 16);
}

/* Round as bf16_encode does, keep it, and return what is kept. */
INLINE FOR(float8_t) FOR(keep_bf16)(FOR(float8_t) x, FOR(bits8_t) chance, uint16_t *to)
{
    FOR(bits8_t) bits = (FOR(bits8_t))x, magnitude = bits & 0x7fffffffu;
    FOR(bits8_t) special = (FOR(bits8_t))((FOR(int8x32_t))magnitude >= 0x7f800000);
    FOR(bits8_t) nan = (FOR(bits8_t))((FOR(int8x32_t))magnitude > 0x7f800000);
    FOR(bits8_t) rounded = bits + (chance & 0xffffu & ~special);
    rounded = ((rounded & 0xffff0000u) & ~nan) | (0x7fc00000u & nan);
#if HAS_AVX2
    __m256i high = _mm256_srli_epi32((__m256i)rounded, 16);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
    _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(packed));
#else
    for (int lane = 0; lane < 8; lane++) to[lane] = (uint16_t)(rounded[lane] >> 16);
#endif
    return (FOR(float8_t))rounded;
}

INLINE FOR(bits8_t) FOR(chances)(uint32_t key, int64_t at)
{
    FOR(bits8_t) lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    return FOR(mix8)(lanes + (key + (uint32_t)at));
}

/* The first pass over whole vectors; returns how many elements it took. */
INLINE int64_t FOR(bf16_first)(const row_t *row, const group_t *o, int late, int adam, int coupled,
                               int64_t at, int64_t n, double *dots)
{
    const FOR(float_constants_t) c = FOR(float_constants)(row, o);
    const uint32_t step = (uint32_t)*row->step, seed = (uint32_t)o->seed;
    const uint32_t key = key_of(seed, (uint32_t)row->index, step, 0);
    const uint32_t key_before = key_of(seed, (uint32_t)row->index, step - 1, 1);
    uint16_t *m = (uint16_t *)row->m, *v = (uint16_t *)row->v, *s = (uint16_t *)row->s;
    const float *g = (const float *)row->g;
    float *theta = (float *)row->theta;
    lanes_t sums[4] = {{0}};
    int64_t i = at;
    for (; i + 8 <= at + n; i += 8) {
        FOR(float8_t) x, theta_ = {0}, m_ = FOR(load_bf16)(m + i), v_ = FOR(load_bf16)(v + i);
        FOR(float8_t) s_ = FOR(load_bf16)(s + i);
        memcpy(&x, g + i, sizeof x);
        if (coupled || late) memcpy(&theta_, theta + i, sizeof theta_);
        if (late) {
            v_ += c.weight * (m_ * c.inv1_before - v_);
            v_ = FOR(keep_bf16)(v_, FOR(chances)(key_before, i), v + i);
            FOR(float_settle_vector)(&theta_, v_, &c);
        }
        FOR(float_average_vector)(x, theta_, &m_, v_, &s_, &c, adam, coupled);
        FOR(bits8_t) chance = FOR(chances)(key, i);
        m_ = FOR(keep_bf16)(m_, chance, m + i);
        s_ = FOR(keep_bf16)(s_, chance >> 16, s + i);
        m_ *= c.inv1;
        if (late) {
            FOR(float_adapt_vector)(&theta_, m_, s_, &c);
            memcpy(theta + i, &theta_, sizeof theta_);
        }
        FOR(float_dot)(&m_, &v_, sums);
    }
    FOR(float_fold)(sums, dots);
    return i - at;
}

/* The second pass over whole vectors; returns how many elements it took. */
INLINE int64_t FOR(bf16_second)(const row_t *row, const group_t *o, int64_t at, int64_t n,
                                float weight, float along)
{
    const FOR(float_constants_t) c = FOR(float_constants)(row, o);
    const uint32_t key =
        key_of((uint32_t)o->seed, (uint32_t)row->index, (uint32_t)*row->step, 1);
    const uint16_t *m = (const uint16_t *)row->m, *s = (const uint16_t *)row->s;
    uint16_t *v = (uint16_t *)row->v;
    float *theta = (float *)row->theta;
    int64_t i = at;
    for (; i + 8 <= at + n; i += 8) {
        FOR(float8_t) theta_, m_ = FOR(load_bf16)(m + i), v_ = FOR(load_bf16)(v + i);
        FOR(float8_t) s_ = FOR(load_bf16)(s + i);
        memcpy(&theta_, theta + i, sizeof theta_);
        m_ *= c.inv1;
        v_ += weight * (m_ - v_);
        v_ = FOR(keep_bf16)(v_, FOR(chances)(key, i), v + i);
        if (c.lr == 0) continue; /* no rate, no move, whatever the step is */
        theta_ = theta_ * c.keep - c.lr * (m_ / (FOR(float_root)(s_ * c.inv2) + c.eps)) - along * v_;
        if (c.bounded) FOR(float_clamp)(&theta_, c.low, c.high);
        memcpy(theta + i, &theta_, sizeof theta_);
    }
    return i - at;
}

/* m and s of one block, and its dots; for the late step the rest of it too. */
static void FOR(first)(const row_t *row, const group_t *o, int late, int64_t start, int64_t n,
                       double *dots)
{
    const int adam = o->adam != 0, coupled = o->coupled_decay != 0;
    for (int64_t i = start, end = start + n; i < end; i += SUB) {
        int64_t part = end - i < SUB ? end - i : SUB;
        if (row->state_type == BF16 && row->theta_type == F32 && row->g_type == F32) {
            int64_t done = late ? FOR(bf16_first)(row, o, 1, adam, coupled, i, part, dots)
                                : FOR(bf16_first)(row, o, 0, adam, coupled, i, part, dots);
            if (done < part) FOR(low_bit_first)(row, o, late, i + done, part - done, dots);
        } else if (row->state_type == F64) {
            FOR(double_first_pass)
            (part, (double *)row->theta + i, (const double *)row->g + i, (double *)row->m + i,
             (double *)row->v + i, (double *)row->s + i, FOR(double_constants)(row, o), adam,
             coupled, late, dots);
        } else if (row->state_type != F32) {
            FOR(low_bit_first)(row, o, late, i, part, dots);
        } else {
            float theta_buffer[SUB], g_buffer[SUB];
            char *memory = row->theta + i * SIZE[row->theta_type];
            const float *g = load(row->g + i * SIZE[row->g_type], row->g_type, part, g_buffer);
            float *theta = theta_buffer;
            if (coupled || late) theta = (float *)load(memory, row->theta_type, part, theta_buffer);
            FOR(float_first_pass)
            (part, theta, g, (float *)row->m + i, (float *)row->v + i, (float *)row->s + i,
             FOR(float_constants)(row, o), adam, coupled, late, dots);
            if (late) store(memory, row->theta_type, part, theta);
        }
    }
}

/* v and theta of one block. */
static void FOR(second)(const row_t *row, const group_t *o, int64_t start, int64_t n, double weight,
                        double along)
{
    for (int64_t i = start, end = start + n; i < end; i += SUB) {
        int64_t part = end - i < SUB ? end - i : SUB;
        if (row->state_type == F64) {
            FOR(double_second_pass)
            (part, (double *)row->theta + i, (const double *)row->m + i, (double *)row->v + i,
             (const double *)row->s + i, FOR(double_constants)(row, o), weight, along);
            continue;
        }
        if (row->state_type == BF16 && row->theta_type == F32) {
            int64_t done = FOR(bf16_second)(row, o, i, part, (float)weight, (float)along);
            if (done == part) continue;
            i += done; /* the few that are left */
            part -= done;
            end = i + part; /* they are the last of the block */
        }
        float buffer[SUB];
        FOR(float_constants_t) c = FOR(float_constants)(row, o);
        char *memory = row->theta + i * SIZE[row->theta_type];
        float *theta = (float *)load(memory, row->theta_type, part, buffer);
        if (row->state_type == F32) {
            FOR(float_second_pass)
            (part, theta, (const float *)row->m + i, (float *)row->v + i, (const float *)row->s + i,
             c, (float)weight, (float)along);
        } else {
            float m[SUB], v[SUB], s[SUB];
            uint32_t key =
                key_of((uint32_t)o->seed, (uint32_t)row->index, (uint32_t)*row->step, 1);
            FOR(decode)(row, i, part, m, v, s);
            FOR(float_move_hidden)(part, m, v, c.inv1, (float)weight);
            FOR(keep_hidden)(row, key, i, part, v);
            FOR(float_second_pass)(part, theta, m, v, s, c, 0.0f, (float)along);
        }
        store(memory, row->theta_type, part, theta);
    }
}

/* The sum of squares of one block of gradients. */
static double FOR(squares)(const row_t *row, int64_t start, int64_t n)
{
    lanes_t sum = {0};
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
        for (; k + LANES <= part; k += LANES) {
            quad_t x;
            memcpy(&x, g + k, sizeof x);
            lanes_t wide = FOR(widen)(x);
            sum += wide * wide;
        }
        for (; k < part; k++) total += (double)g[k] * (double)g[k];
    }
    for (int lane = 0; lane < LANES; lane++) total += sum[lane];
    return total;
}
