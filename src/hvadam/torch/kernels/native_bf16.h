/* The passes over bfloat16 state: decode, compute, round, and go on with what is kept. The rules
 * are those of storage.py.
 *
 * AVX2 has a group's elements in the order in which packing and unpacking are one instruction each.
 */

#if HAS_AVX2 && WIDE == 32
#define PLACES {{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}
#else
#define PLACES IN_ORDER
#endif

INLINE void FOR(load_floats)(const float *from, FOR(wide_vector_t) x[PARTS])
{
#if HAS_AVX2 && WIDE == 32
    for (int k = 0; k < 2; k++) {
        __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(from + 4 * k));
        x[k] = (FOR(wide_vector_t))_mm256_insertf128_ps(low, _mm_loadu_ps(from + 4 * k + 8), 1);
    }
#else
    memcpy(x, from, 64);
#endif
}

INLINE void FOR(store_floats)(float *to, const FOR(wide_vector_t) x[PARTS])
{
#if HAS_AVX2 && WIDE == 32
    for (int k = 0; k < 2; k++) {
        _mm_storeu_ps(to + 4 * k, _mm256_castps256_ps128((__m256)x[k]));
        _mm_storeu_ps(to + 4 * k + 8, _mm256_extractf128_ps((__m256)x[k], 1));
    }
#else
    memcpy(to, x, 64);
#endif
}

INLINE void FOR(load_bf16)(const uint16_t *from, FOR(wide_vector_t) x[PARTS])
{
#if WIDE == 64
    __m512i packed = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)from));
    const FOR(bits_t) own[1] = PLACES; /* of each number, as the upper half of its lane */
    __m512i halves = _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, (__m512i)(own[0] << 16), packed);
    x[0] = (FOR(wide_vector_t))halves;
#elif HAS_AVX2
    __m256i packed = _mm256_loadu_si256((const __m256i *)from), zero = _mm256_setzero_si256();
    x[0] = (FOR(wide_vector_t))_mm256_unpacklo_epi16(zero, packed);
    x[1] = (FOR(wide_vector_t))_mm256_unpackhi_epi16(zero, packed);
#else
    FOR(bits_t) bits[2];
    for (int lane = 0; lane < 16; lane++) bits[lane / 8][lane % 8] = (uint32_t)from[lane] << 16;
    memcpy(x, bits, sizeof bits);
#endif
}

/* Whether any of SHARING numbers is NaN; a comparison takes two vectors. */
INLINE int FOR(has_nan)(const float *x)
{
#if WIDE == 64
    __m512 own[4];
    memcpy(own, x, sizeof own);
    return (_mm512_cmp_ps_mask(own[0], own[1], _CMP_UNORD_Q) |
            _mm512_cmp_ps_mask(own[2], own[3], _CMP_UNORD_Q)) != 0;
#elif HAS_AVX2
    __m256 found = _mm256_setzero_ps();
    for (int i = 0; i < SHARING; i += 16) {
        __m256 left = _mm256_loadu_ps(x + i), right = _mm256_loadu_ps(x + i + 8);
        found = _mm256_or_ps(found, _mm256_cmp_ps(left, right, _CMP_UNORD_Q));
    }
    return _mm256_movemask_ps(found) != 0;
#else
    int found = 0;
    for (int i = 0; i < SHARING; i++) found |= x[i] != x[i];
    return found;
#endif
}

/* NaNs without payloads. */
INLINE FOR(wide_vector_t) FOR(plain)(FOR(wide_vector_t) x)
{
#if WIDE == 64
    __mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
    return (FOR(wide_vector_t))_mm512_mask_mov_ps((__m512)x, nan, _mm512_set1_ps(NAN));
#elif HAS_AVX2
    __m256 nan = _mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q);
    return (FOR(wide_vector_t))_mm256_blendv_ps((__m256)x, _mm256_set1_ps(NAN), nan);
#else
    for (int lane = 0; lane < 8; lane++) x[lane] = isnan(x[lane]) ? NAN : x[lane];
    return x;
#endif
}

/* Round x up with the probability that its lower 16 bits are worth, keep it, and put back what is
 * kept. Infinity has no lower bits, and neither has a NaN that comes of bfloat16 state or had its
 * payload taken: no carry reaches its sign. */
INLINE void FOR(keep_bf16)(FOR(wide_vector_t) x[PARTS], const FOR(bits_t) words[PARTS], int draw,
                           uint16_t *to)
{
    FOR(bits_t) rounded[PARTS];
    for (int k = 0; k < PARTS; k++) {
        rounded[k] = (FOR(bits_t))x[k] + FOR(drawn)(words[k], draw);
        x[k] = (FOR(wide_vector_t))(rounded[k] & 0xffff0000u);
    }
#if WIDE == 64
    const FOR(bits_t) own[1] = PLACES; /* the upper halves of lanes 0, 1; 2, 3; and so on */
    __m512i upper = (__m512i)(own[0] * 0x00040004u + 0x00030001u);
    __m512i packed = _mm512_permutexvar_epi16(upper, (__m512i)rounded[0]);
    _mm256_storeu_si256((__m256i *)to, _mm512_castsi512_si256(packed));
#elif HAS_AVX2
    __m256i low = _mm256_srli_epi32((__m256i)rounded[0], 16);
    __m256i high = _mm256_srli_epi32((__m256i)rounded[1], 16);
    _mm256_storeu_si256((__m256i *)to, _mm256_packus_epi32(low, high));
#else
    for (int i = 0; i < 16; i++) to[i] = (uint16_t)(rounded[i / 8][i % 8] >> 16);
#endif
}

/* ---- a group ---- */

/* m and s from g, kept, and the dots. */
INLINE void FOR(bf16_first_group)(const float *theta, const float *g, uint16_t *m,
                                  const uint16_t *v, uint16_t *s,
                                  const FOR(bits_t) words[PARTS], int draw,
                                  const FOR(wide_constants_t) *c, int flags,
                                  FOR(wide_vector_t) sums[PARTS][4])
{
    FOR(wide_vector_t) x[PARTS], m_[PARTS], v_[PARTS], s_[PARTS], theta_[PARTS] = {{0}};
    FOR(load_floats)(g, x);
    FOR(load_bf16)(m, m_);
    FOR(load_bf16)(v, v_);
    FOR(load_bf16)(s, s_);
    if (flags & COUPLED) FOR(load_floats)(theta, theta_);
    for (int k = 0; k < PARTS; k++) {
        FOR(wide_vector_t) decaying = flags & COUPLED ? FOR(plain)(theta_[k]) : theta_[k];
        FOR(wide_average)(x[k], decaying, &m_[k], v_[k], &s_[k], c, flags);
    }
    FOR(keep_bf16)(m_, words, draw, m);
    FOR(keep_bf16)(s_, words, draw + 1, s);
    for (int k = 0; k < PARTS; k++) FOR(kept_dot)(m_[k], v_[k], c->inv1, sums[k]);
}

/* v, kept, and theta. */
INLINE void FOR(bf16_second_group)(float *theta, const uint16_t *m, uint16_t *v, const uint16_t *s,
                                   const FOR(bits_t) words[PARTS], int draw,
                                   const FOR(wide_constants_t) *c, int flags)
{
    FOR(wide_vector_t) m_[PARTS], v_[PARTS], s_[PARTS], theta_[PARTS];
    FOR(load_floats)(theta, theta_);
    FOR(load_bf16)(m, m_);
    FOR(load_bf16)(v, v_);
    FOR(load_bf16)(s, s_);
    for (int k = 0; k < PARTS; k++) {
        m_[k] *= c->inv1;
        v_[k] = FOR(wide_moved)(v_[k], m_[k], c, flags);
    }
    FOR(keep_bf16)(v_, words, draw, v);
    for (int k = 0; k < PARTS; k++)
        theta_[k] = FOR(wide_stepped)(theta_[k], m_[k], v_[k], FOR(wide_root)(s_[k]), c, flags);
    FOR(store_floats)(theta, theta_);
}

/* ---- the passes, SHARING elements at a time ---- */

INLINE void FOR(bf16_first_part)(int64_t n, const float *theta, const float *g, uint16_t *m,
                                 const uint16_t *v, uint16_t *s, uint32_t key,
                                 const FOR(wide_constants_t) *c, int flags,
                                 FOR(wide_vector_t) sums[PARTS][4])
{
    const FOR(wide_constants_t) own = *c;
    const FOR(bits_t) places[PARTS] = PLACES;
    FOR(wide_vector_t) here[PARTS][4];
    FOR(bits_t) words[PARTS];
    memcpy(here, sums, sizeof here);
    for (int64_t i = 0; i < n; i += SHARING) {
        float plain[SHARING];
        const float *x = FOR(has_nan)(g + i) ? without_payloads(g + i, plain) : g + i;
        FOR(hash_group)(key + (uint32_t)(i / 4), places, words);
        for (int k = 0; k < 4; k++)
            FOR(bf16_first_group)
            (theta + i + 16 * k, x + 16 * k, m + i + 16 * k, v + i + 16 * k, s + i + 16 * k, words,
             k, &own, flags, here);
    }
    memcpy(sums, here, sizeof here);
}

INLINE void FOR(bf16_first_as)(int64_t n, const float *theta, const float *g, uint16_t *m,
                               const uint16_t *v, uint16_t *s, uint32_t key,
                               const FOR(wide_constants_t) *c, int flags,
                               FOR(wide_vector_t) sums[PARTS][4])
{
    const int64_t whole = n / SHARING * SHARING;
    FOR(bf16_first_part)(whole, theta, g, m, v, s, key, c, flags, sums);
    if (whole == n) return;
    float full[2][SHARING] = {{0}}; /* the rest, padded with zeros, which add nothing */
    uint16_t rest[3][SHARING] = {{0}};
    const size_t count = (size_t)(n - whole);
    if (flags & COUPLED) memcpy(full[0], theta + whole, 4 * count);
    memcpy(full[1], g + whole, 4 * count);
    memcpy(rest[0], m + whole, 2 * count);
    memcpy(rest[1], v + whole, 2 * count);
    memcpy(rest[2], s + whole, 2 * count);
    FOR(bf16_first_part)
    (SHARING, full[0], full[1], rest[0], rest[1], rest[2], key + (uint32_t)(whole / 4), c, flags,
     sums);
    memcpy(m + whole, rest[0], 2 * count);
    memcpy(s + whole, rest[2], 2 * count);
}

static void FOR(bf16_first)(const row_t *row, uint32_t of_row, int64_t at, int64_t n,
                            const float *theta, const float *g, const FOR(wide_constants_t) *c,
                            double dots[4])
{
    uint16_t *m = (uint16_t *)row->m + at, *s = (uint16_t *)row->s + at;
    const uint16_t *v = (const uint16_t *)row->v + at;
    const uint32_t key = of_row + (uint32_t)(at / 4);
    FOR(wide_vector_t) sums[PARTS][4] = {{{0}}};
    if (c->flags == 0)
        FOR(bf16_first_as)(n, theta, g, m, v, s, key, c, 0, sums);
    else
        FOR(bf16_first_as)(n, theta, g, m, v, s, key, c, c->flags, sums);
    float lanes[4][16];
    for (int k = 0; k < 4; k++) {
        FOR(wide_vector_t) own[PARTS];
        for (int part = 0; part < PARTS; part++) own[part] = sums[part][k];
        FOR(store_floats)(lanes[k], own);
    }
    if (!FOR(kept_fold)(lanes, n, row->inv1, dots)) {
        float m_[SUB], v_[SUB];
        for (int64_t i = 0; i < n; i++) m_[i] = bf16_to_float(m[i]);
        for (int64_t i = 0; i < n; i++) v_[i] = bf16_to_float(v[i]);
        FOR(double_dots)(n, m_, v_, row->inv1, dots);
    }
}

INLINE void FOR(bf16_second_part)(int64_t n, float *theta, const uint16_t *m, uint16_t *v,
                                  const uint16_t *s, uint32_t key, const FOR(wide_constants_t) *c,
                                  int flags)
{
    const FOR(wide_constants_t) own = *c;
    const FOR(bits_t) places[PARTS] = PLACES;
    FOR(bits_t) words[PARTS];
    for (int64_t i = 0; i < n; i += SHARING) {
        FOR(hash_group)(key + (uint32_t)(i / 4), places, words);
        for (int k = 0; k < 4; k++)
            FOR(bf16_second_group)
            (theta + i + 16 * k, m + i + 16 * k, v + i + 16 * k, s + i + 16 * k, words, k, &own,
             flags);
    }
}

INLINE void FOR(bf16_second_as)(int64_t n, float *theta, const uint16_t *m, uint16_t *v,
                                const uint16_t *s, uint32_t key, const FOR(wide_constants_t) *c,
                                int flags)
{
    const int64_t whole = n / SHARING * SHARING;
    FOR(bf16_second_part)(whole, theta, m, v, s, key, c, flags);
    if (whole == n) return;
    float full[SHARING] = {0};
    uint16_t rest[3][SHARING] = {{0}};
    const size_t count = (size_t)(n - whole);
    memcpy(full, theta + whole, 4 * count);
    memcpy(rest[0], m + whole, 2 * count);
    memcpy(rest[1], v + whole, 2 * count);
    memcpy(rest[2], s + whole, 2 * count);
    FOR(bf16_second_part)
    (SHARING, full, rest[0], rest[1], rest[2], key + (uint32_t)(whole / 4), c, flags);
    memcpy(theta + whole, full, 4 * count);
    memcpy(v + whole, rest[1], 2 * count);
}

static void FOR(bf16_second)(const row_t *row, uint32_t of_row, int64_t at, int64_t n,
                             float *theta, const FOR(wide_constants_t) *c)
{
    const uint16_t *m = (const uint16_t *)row->m + at, *s = (const uint16_t *)row->s + at;
    uint16_t *v = (uint16_t *)row->v + at;
    const uint32_t key = of_row + (uint32_t)(at / 4);
    if (!(c->flags & (STILL | BOUNDED | FAR)))
        FOR(bf16_second_as)(n, theta, m, v, s, key, c, 0);
    else
        FOR(bf16_second_as)(n, theta, m, v, s, key, c, c->flags);
}
#undef PLACES
