/* The passes over bfloat16 state: decode, compute, round, and go on with what is kept. The rules
 * are those of storage.py. Sixteen elements at a time, as two vectors.
 */

typedef uint32_t FOR(bits8_t) __attribute__((vector_size(32)));

#if HAS_AVX2 /* in the order in which packing and unpacking are one instruction each */
#define LANE_NUMBERS {0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}
#else
#define LANE_NUMBERS {0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}
#endif

INLINE void FOR(load_pair)(const float *from, FOR(float8_t) x[2])
{
#if HAS_AVX2
    for (int k = 0; k < 2; k++) {
        __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(from + 4 * k));
        x[k] = (FOR(float8_t))_mm256_insertf128_ps(low, _mm_loadu_ps(from + 4 * k + 8), 1);
    }
#else
    memcpy(x, from, 16 * sizeof *from);
#endif
}

INLINE void FOR(store_pair)(float *to, const FOR(float8_t) x[2])
{
#if HAS_AVX2
    for (int k = 0; k < 2; k++) {
        _mm_storeu_ps(to + 4 * k, _mm256_castps256_ps128((__m256)x[k]));
        _mm_storeu_ps(to + 4 * k + 8, _mm256_extractf128_ps((__m256)x[k], 1));
    }
#else
    memcpy(to, x, 16 * sizeof *to);
#endif
}

INLINE void FOR(load_bf16)(const uint16_t *from, FOR(float8_t) x[2])
{
#if HAS_AVX2
    __m256i packed = _mm256_loadu_si256((const __m256i *)from), zero = _mm256_setzero_si256();
    x[0] = (FOR(float8_t))_mm256_unpacklo_epi16(zero, packed);
    x[1] = (FOR(float8_t))_mm256_unpackhi_epi16(zero, packed);
#else
    FOR(bits8_t) bits[2];
    for (int lane = 0; lane < 16; lane++) bits[lane / 8][lane % 8] = (uint32_t)from[lane] << 16;
    memcpy(x, bits, sizeof bits);
#endif
}

/* A NaN of any kind as the one without lower bits. */
INLINE FOR(float8_t) FOR(plain)(FOR(float8_t) x)
{
#if HAS_AVX2
    __m256 nan = _mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q);
    return (FOR(float8_t))_mm256_blendv_ps((__m256)x, _mm256_set1_ps(NAN), nan);
#else
    for (int lane = 0; lane < 8; lane++) x[lane] = isnan(x[lane]) ? NAN : x[lane];
    return x;
#endif
}

/* 32 random bits for each of sixteen elements. */
INLINE void FOR(hash_pair)(uint32_t first, FOR(bits8_t) bits[2])
{
    const FOR(bits8_t) lanes[2] = {LANE_NUMBERS};
    for (int k = 0; k < 2; k++) {
        FOR(bits8_t) x = lanes[k] + first;
        x = (x ^ (x >> 16)) * MIX_1;
        x = (x ^ (x >> 15)) * MIX_2;
        bits[k] = x ^ (x >> 16);
    }
}

/* Round x up with the probability that its lower 16 bits are worth, by the lower or the upper half
 * of the random bits; keep it, and put back what is kept. Infinity has no lower bits, and neither
 * has a NaN that comes of bfloat16 state or went through `plain`: no carry reaches its sign. */
INLINE void FOR(keep_bf16)(FOR(float8_t) x[2], const FOR(bits8_t) random[2], int upper,
                           uint16_t *to)
{
    FOR(bits8_t) high[2];
    for (int k = 0; k < 2; k++) {
        FOR(bits8_t) chance = upper ? random[k] >> 16 : random[k] & 0xffffu;
        FOR(bits8_t) rounded = (FOR(bits8_t))x[k] + chance;
        x[k] = (FOR(float8_t))(rounded & 0xffff0000u);
        high[k] = rounded >> 16;
    }
#if HAS_AVX2
    _mm256_storeu_si256((__m256i *)to, _mm256_packus_epi32((__m256i)high[0], (__m256i)high[1]));
#else
    for (int lane = 0; lane < 16; lane++) to[lane] = (uint16_t)high[lane / 8][lane % 8];
#endif
}

/* ---- the first pass: short loops over a part in the first-level cache ----
 *
 * One long loop would be slower: its chain of operations, a division and three roundings long,
 * fills the processor's registers before that of the next elements can begin.
 */

typedef struct {
    FOR(float8_t) m[2], s[2];
    FOR(bits8_t) random[2];
} FOR(sixteen_t);

INLINE void FOR(hash_part)(int64_t n, uint32_t first, FOR(sixteen_t) *part)
{
    for (int64_t i = 0; i < n; i += 16)
        FOR(hash_pair)(first + (uint32_t)i, part[i / 16].random);
}

/* Move v, and keep it. */
INLINE void FOR(move_part)(int64_t n, const uint16_t *m, uint16_t *v,
                           const FOR(float_constants_t) *c, int flags,
                           const FOR(sixteen_t) *part)
{
    for (int64_t i = 0; i < n; i += 16) {
        FOR(float8_t) m_[2], v_[2];
        FOR(load_bf16)(m + i, m_);
        FOR(load_bf16)(v + i, v_);
        for (int k = 0; k < 2; k++)
            v_[k] = FOR(float_moved)(v_[k], m_[k] * c->inv1_before, c, flags);
        FOR(keep_bf16)(v_, part[i / 16].random, 0, v + i);
    }
}

/* m and s from g, not yet rounded, and theta after what was pending. */
INLINE void FOR(average_part)(int64_t n, float *theta, const float *g, const uint16_t *m,
                              const uint16_t *v, const uint16_t *s,
                              const FOR(float_constants_t) *c, int flags, FOR(sixteen_t) *part)
{
    for (int64_t i = 0; i < n; i += 16) {
        FOR(float8_t) x[2], m_[2], v_[2], s_[2], theta_[2] = {{0}};
        FOR(load_pair)(g + i, x);
        FOR(load_bf16)(m + i, m_);
        FOR(load_bf16)(v + i, v_);
        FOR(load_bf16)(s + i, s_);
        if (flags & (COUPLED | LATE)) FOR(load_pair)(theta + i, theta_);
        for (int k = 0; k < 2; k++) {
            if (flags & LATE) theta_[k] = FOR(float_settled)(theta_[k], v_[k], c, flags);
            FOR(float8_t) decaying = flags & COUPLED ? FOR(plain)(theta_[k]) : theta_[k];
            FOR(float_average)(FOR(plain)(x[k]), decaying, &m_[k], v_[k], &s_[k], c, flags);
            part[i / 16].m[k] = m_[k];
            part[i / 16].s[k] = s_[k];
        }
        if (flags & LATE) FOR(store_pair)(theta + i, theta_);
    }
}

/* Keep m and s, take the dots; for the late step theta after the adaptive step. */
INLINE void FOR(finish_part)(int64_t n, float *theta, uint16_t *m, const uint16_t *v, uint16_t *s,
                             const FOR(float_constants_t) *c, int flags,
                             const FOR(sixteen_t) *part, FOR(float8_t) sums[4])
{
    for (int64_t i = 0; i < n; i += 16) {
        FOR(sixteen_t) here = part[i / 16];
        FOR(float8_t) v_[2], theta_[2];
        FOR(keep_bf16)(here.m, here.random, 0, m + i);
        FOR(keep_bf16)(here.s, here.random, 1, s + i);
        FOR(load_bf16)(v + i, v_);
        if (flags & LATE) FOR(load_pair)(theta + i, theta_);
        for (int k = 0; k < 2; k++) {
            FOR(float8_t) m_hat = here.m[k] * c->inv1, root = FOR(float_root)(here.s[k]);
            FOR(float_dot)(m_hat, v_[k], sums);
            if (flags & LATE) theta_[k] = FOR(float_late)(theta_[k], m_hat, root, c, flags);
        }
        if (flags & LATE) FOR(store_pair)(theta + i, theta_);
    }
}

/* A whole number of sixteens; the keys count from the first element. */
INLINE void FOR(first_part)(int64_t n, float *theta, const float *g, uint16_t *m, uint16_t *v,
                            uint16_t *s, const uint32_t keys[2], FOR(float_constants_t) c,
                            int flags, FOR(float8_t) sums[4])
{
    FOR(sixteen_t) part[SUB / 16];
    FOR(float8_t) own[4];
    memcpy(own, sums, sizeof own);
    if (flags & LATE) {
        FOR(hash_part)(n, keys[0], part);
        FOR(move_part)(n, m, v, &c, flags, part);
    }
    FOR(hash_part)(n, keys[1], part);
    FOR(average_part)(n, theta, g, m, v, s, &c, flags, part);
    FOR(finish_part)(n, theta, m, v, s, &c, flags, part, own);
    memcpy(sums, own, sizeof own);
}

INLINE void FOR(bf16_first_as)(int64_t n, float *theta, const float *g, uint16_t *m, uint16_t *v,
                               uint16_t *s, const uint32_t keys[2],
                               const FOR(float_constants_t) *c, int flags, FOR(float8_t) sums[4])
{
    const int64_t whole = n / 16 * 16;
    FOR(first_part)(whole, theta, g, m, v, s, keys, *c, flags, sums);
    if (whole == n) return;
    float full[2][16] = {{0}}; /* the rest, padded with zeros, which add nothing */
    uint16_t rest[3][16] = {{0}};
    const uint32_t rest_keys[2] = {keys[0] + (uint32_t)whole, keys[1] + (uint32_t)whole};
    const size_t count = (size_t)(n - whole);
    if (flags & (COUPLED | LATE)) memcpy(full[0], theta + whole, 4 * count);
    memcpy(full[1], g + whole, 4 * count);
    memcpy(rest[0], m + whole, 2 * count);
    memcpy(rest[1], v + whole, 2 * count);
    memcpy(rest[2], s + whole, 2 * count);
    FOR(first_part)(16, full[0], full[1], rest[0], rest[1], rest[2], rest_keys, *c, flags, sums);
    if (flags & LATE) memcpy(theta + whole, full[0], 4 * count);
    memcpy(m + whole, rest[0], 2 * count);
    if (flags & LATE) memcpy(v + whole, rest[1], 2 * count);
    memcpy(s + whole, rest[2], 2 * count);
}

static void FOR(bf16_first)(const row_t *row, const group_t *o, int64_t at, int64_t n, float *theta,
                            const float *g, const FOR(float_constants_t) *c, double dots[4])
{
    uint16_t *m = (uint16_t *)row->m + at, *v = (uint16_t *)row->v + at;
    uint16_t *s = (uint16_t *)row->s + at;
    const uint32_t keys[2] = {key_of(row, o, -1, 1) + (uint32_t)at,
                              key_of(row, o, 0, 0) + (uint32_t)at};
    FOR(float8_t) sums[4] = {{0}};
    if (c->flags == 0)
        FOR(bf16_first_as)(n, theta, g, m, v, s, keys, c, 0, sums);
    else if (c->flags == LATE)
        FOR(bf16_first_as)(n, theta, g, m, v, s, keys, c, LATE, sums);
    else
        FOR(bf16_first_as)(n, theta, g, m, v, s, keys, c, c->flags, sums);
    if (!FOR(float_fold)(sums, n, dots)) {
        float m_[SUB], v_[SUB];
        for (int64_t i = 0; i < n; i++) m_[i] = bf16_to_float(m[i]);
        for (int64_t i = 0; i < n; i++) v_[i] = bf16_to_float(v[i]);
        FOR(wide_dots)(n, m_, v_, row->inv1, dots);
    }
}

/* ---- the second pass ---- */

INLINE void FOR(bf16_second_pair)(float *theta, const uint16_t *m, uint16_t *v, const uint16_t *s,
                                  uint32_t key, const FOR(float_constants_t) *c, int flags)
{
    FOR(float8_t) m_[2], v_[2], s_[2], theta_[2];
    FOR(load_pair)(theta, theta_);
    FOR(load_bf16)(m, m_);
    FOR(load_bf16)(v, v_);
    FOR(load_bf16)(s, s_);
    for (int k = 0; k < 2; k++) {
        m_[k] *= c->inv1;
        v_[k] = FOR(float_moved)(v_[k], m_[k], c, flags);
    }
    FOR(bits8_t) random[2];
    FOR(hash_pair)(key, random);
    FOR(keep_bf16)(v_, random, 0, v);
    for (int k = 0; k < 2; k++)
        theta_[k] =
            FOR(float_exact)(theta_[k], m_[k], v_[k], FOR(float_root)(s_[k]), c, flags);
    FOR(store_pair)(theta, theta_);
}

INLINE void FOR(bf16_second_loop)(int64_t n, float *theta, const uint16_t *m, uint16_t *v,
                                  const uint16_t *s, uint32_t key, FOR(float_constants_t) c,
                                  int flags)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        FOR(bf16_second_pair)(theta + i, m + i, v + i, s + i, key + (uint32_t)i, &c, flags);
    if (i < n) {
        float full[16] = {0};
        uint16_t rest[3][16] = {{0}};
        size_t count = (size_t)(n - i);
        memcpy(full, theta + i, 4 * count);
        memcpy(rest[0], m + i, 2 * count);
        memcpy(rest[1], v + i, 2 * count);
        memcpy(rest[2], s + i, 2 * count);
        FOR(bf16_second_pair)(full, rest[0], rest[1], rest[2], key + (uint32_t)i, &c, flags);
        memcpy(theta + i, full, 4 * count);
        memcpy(v + i, rest[1], 2 * count);
    }
}

static void FOR(bf16_second)(const row_t *row, const group_t *o, int64_t at, int64_t n,
                             float *theta, const FOR(float_constants_t) *c)
{
    const uint16_t *m = (const uint16_t *)row->m + at, *s = (const uint16_t *)row->s + at;
    uint16_t *v = (uint16_t *)row->v + at;
    const uint32_t key = key_of(row, o, 0, 1) + (uint32_t)at;
    if (!(c->flags & (STILL | BOUNDED | FAR)))
        FOR(bf16_second_loop)(n, theta, m, v, s, key, *c, 0);
    else
        FOR(bf16_second_loop)(n, theta, m, v, s, key, *c, c->flags);
}
#undef LANE_NUMBERS
