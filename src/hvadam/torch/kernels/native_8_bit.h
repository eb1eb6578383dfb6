/* The passes over 8-bit state, a block of STATE_BLOCK elements with its scales at a time: decode,
 * compute, find the scale, round, and go on with what is kept. The rules are those of storage.py.
 *
 * Loops run over whole blocks in the first-level cache, before and after the scales are known; a
 * tensor's last block is padded with zeros.
 */

/* Sixteen numbers, vector by vector: what compilers make of one copy of 64 bytes is slow. */
INLINE void FOR(take)(const float *from, FOR(wide_vector_t) x[PARTS])
{
    for (int k = 0; k < PARTS; k++) memcpy(&x[k], from + k * (WIDE / 4), WIDE);
}

INLINE void FOR(put)(float *to, const FOR(wide_vector_t) x[PARTS])
{
    for (int k = 0; k < PARTS; k++) memcpy(to + k * (WIDE / 4), &x[k], WIDE);
}

/* Sixteen bytes as numbers q * scale, NaN where q is the code of NaN and any may be. */
INLINE void FOR(from_bytes)(const uint8_t *from, float scale, int has_sign, int nans,
                            FOR(wide_vector_t) x[PARTS])
{
#if WIDE == 64
    __m128i bytes = _mm_loadu_si128((const __m128i *)from);
    __m512i q = has_sign ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
    x[0] = (FOR(wide_vector_t))_mm512_cvtepi32_ps(q) * scale;
#elif HAS_AVX2
    for (int k = 0; k < PARTS; k++) {
        __m128i bytes = _mm_loadl_epi64((const __m128i *)(from + 8 * k));
        __m256i q = has_sign ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
        x[k] = (FOR(wide_vector_t))_mm256_cvtepi32_ps(q) * scale;
    }
#else
    for (int i = 0; i < 16; i++)
        x[i / 8][i % 8] = (has_sign ? (float)(int8_t)from[i] : (float)from[i]) * scale;
#endif
    if (!nans) return;
    float full[16];
    memcpy(full, x, sizeof full);
    for (int i = 0; i < 16; i++) full[i] = from[i] == (has_sign ? 128 : 255) ? NAN : full[i];
    memcpy(x, full, sizeof full);
}

/* Sixteen whole numbers as bytes. */
INLINE void FOR(to_bytes)(const FOR(ints_t) q[PARTS], uint8_t *to)
{
#if WIDE == 64
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8((__m512i)q[0]));
#elif HAS_AVX2
    const __m256i lowest = _mm256_set1_epi32(0x0c080400); /* of each four bytes */
    for (int k = 0; k < PARTS; k++) {
        __m256i bytes = _mm256_shuffle_epi8((__m256i)q[k], lowest);
        __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
        _mm_storel_epi64((__m128i *)(to + 8 * k), _mm_unpacklo_epi32(low, high));
    }
#else
    for (int i = 0; i < 16; i++) to[i] = (uint8_t)q[i / 8][i % 8];
#endif
}

/* To whole numbers, halves to even. */
INLINE FOR(ints_t) FOR(rounded)(FOR(wide_vector_t) x)
{
#if WIDE == 64
    return (FOR(ints_t))_mm512_cvtps_epi32((__m512)x);
#elif HAS_AVX2
    return (FOR(ints_t))_mm256_cvtps_epi32((__m256)x);
#else
    FOR(ints_t) whole;
    for (int lane = 0; lane < 8; lane++) whole[lane] = (int32_t)__builtin_rintf(x[lane]);
    return whole;
#endif
}

/* The larger magnitude; floats without a sign are ordered like their bits. */
INLINE FOR(ints_t) FOR(larger)(FOR(ints_t) largest, FOR(wide_vector_t) x)
{
    FOR(ints_t) magnitude = (FOR(ints_t))x & 0x7fffffff;
#if WIDE == 64
    return (FOR(ints_t))_mm512_max_epi32((__m512i)largest, (__m512i)magnitude);
#elif HAS_AVX2
    return (FOR(ints_t))_mm256_max_epi32((__m256i)largest, (__m256i)magnitude);
#else
    for (int lane = 0; lane < 8; lane++)
        largest[lane] = magnitude[lane] > largest[lane] ? magnitude[lane] : largest[lane];
    return largest;
#endif
}

/* At least 1 where the root with these bits is above zero, or the step would divide by eps alone. */
INLINE FOR(ints_t) FOR(above_zero)(FOR(ints_t) q, FOR(ints_t) root)
{
#if WIDE == 64
    __m512i least = _mm512_min_epu32((__m512i)root, _mm512_set1_epi32(1));
    return (FOR(ints_t))_mm512_max_epi32((__m512i)q, least);
#elif HAS_AVX2
    __m256i least = _mm256_min_epu32((__m256i)root, _mm256_set1_epi32(1));
    return (FOR(ints_t))_mm256_max_epi32((__m256i)q, least);
#else
    for (int lane = 0; lane < 8; lane++) q[lane] += q[lane] == 0 && root[lane] != 0;
    return q;
#endif
}

INLINE int32_t FOR(largest_of)(FOR(ints_t) lanes[PARTS])
{
    int32_t each[16], largest = 0;
    memcpy(each, lanes, sizeof each);
    for (int i = 0; i < 16; i++) largest = each[i] > largest ? each[i] : largest;
    return largest;
}

/* ---- one block: where its bytes and scales are, and m, v and the root of s in full ---- */

typedef struct {
    uint8_t *m, *v, *s;
    float *m_scale, *v_scale, *s_scale;
    int64_t n; /* elements that there are; the rest is padded */
} FOR(kept_t);

typedef struct {
    float m[STATE_BLOCK], v[STATE_BLOCK], root[STATE_BLOCK];
} FOR(full_t);

/* Whether any byte of a block is this one. */
INLINE int FOR(has)(const uint8_t *bytes, uint8_t code)
{
#if WIDE == 64
    __mmask64 found = 0;
    for (int i = 0; i < STATE_BLOCK; i += 64)
        found |= _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(bytes + i), _mm512_set1_epi8((char)code));
    return found != 0;
#elif HAS_AVX2
    __m256i found = _mm256_setzero_si256(), all = _mm256_set1_epi8((char)code);
    for (int i = 0; i < STATE_BLOCK; i += 32) {
        __m256i own = _mm256_loadu_si256((const __m256i *)(bytes + i));
        found = _mm256_or_si256(found, _mm256_cmpeq_epi8(own, all));
    }
    return _mm256_movemask_epi8(found) != 0;
#else
    int found = 0;
    for (int i = 0; i < STATE_BLOCK; i++) found |= bytes[i] == code;
    return found;
#endif
}

INLINE int FOR(has_nans)(const FOR(kept_t) *kept)
{
    return FOR(has)(kept->m, 128) | FOR(has)(kept->v, 128) | FOR(has)(kept->s, 255);
}

/* How a block is rounded: by the inverse of a 2^16th of its scale. */
typedef struct {
    float scale, inverse;
    int tame; /* nothing but finite numbers, well inside the range */
} FOR(scale_t);

INLINE FOR(scale_t) FOR(scale_by)(int32_t largest, const float *x, int has_sign)
{
    const int tame = largest < 0x7f000000; /* 2^127 */
    if (largest >= INFINITE) largest = largest_finite(x, STATE_BLOCK);
    float scale = scale_for(bits_to_float((uint32_t)largest), has_sign ? 127.0f : 254.0f);
    return (FOR(scale_t)){scale, 0x1p16f / scale, tame};
}

/* Sixteen numbers rounded, as bytes. What the scale allows needs no limit but for roots, whose
 * product with the inverse may be rounded up to more than the largest. */
INLINE void FOR(round_group)(const float *x, const FOR(bits_t) words[PARTS], int draw, int has_sign,
                             float inverse, uint8_t *to)
{
    FOR(wide_vector_t) part[PARTS];
    FOR(ints_t) q[PARTS];
    FOR(take)(x, part);
    for (int k = 0; k < PARTS; k++) {
        const FOR(ints_t) exact = (FOR(ints_t))part[k];
        part[k] *= inverse;
        if (!has_sign) part[k] = FOR(wide_at_most)(part[k], 254.0f * 0x1p16f);
        q[k] = FOR(rounded)(part[k]) + (FOR(ints_t))FOR(drawn)(words[k], draw);
        q[k] >>= 16;
        if (!has_sign) q[k] = FOR(above_zero)(q[k], exact);
    }
    FOR(to_bytes)(q, to);
}

/* v after its move, not yet rounded. Returns the largest magnitude. */
INLINE int32_t FOR(move_values)(const FOR(kept_t) *kept, const FOR(wide_constants_t) *c, int flags,
                                int nans, FOR(full_t) *b)
{
    const FOR(wide_constants_t) own = *c;
    const float m_scale = *kept->m_scale, v_scale = *kept->v_scale;
    FOR(ints_t) largest[PARTS] = {{0}};
    for (int i = 0; i < STATE_BLOCK; i += 16) {
        FOR(wide_vector_t) m[PARTS], v[PARTS];
        FOR(from_bytes)(kept->m + i, m_scale, 1, nans, m);
        FOR(from_bytes)(kept->v + i, v_scale, 1, nans, v);
        for (int k = 0; k < PARTS; k++) {
            m[k] *= own.inv1;
            v[k] = FOR(wide_moved)(v[k], m[k], &own, flags);
            largest[k] = FOR(larger)(largest[k], v[k]);
        }
        FOR(put)(b->m + i, m);
        FOR(put)(b->v + i, v);
    }
    return FOR(largest_of)(largest);
}

/* Move v, and keep it; m_hat is left in full. Returns whether there are NaNs now. */
INLINE int FOR(move_block)(const FOR(kept_t) *kept, uint32_t first,
                           const FOR(wide_constants_t) *c, int nans, FOR(full_t) *b)
{
    const FOR(bits_t) places[PARTS] = IN_ORDER;
    int32_t largest;
    if (!nans && !(c->flags & FAR))
        largest = FOR(move_values)(kept, c, 0, 0, b);
    else
        largest = FOR(move_values)(kept, c, c->flags, nans, b);
    const FOR(scale_t) by = FOR(scale_by)(largest, b->v, 1);
    if (by.tame)
        for (int i = 0; i < STATE_BLOCK; i += SHARING) {
            FOR(bits_t) words[PARTS];
            FOR(hash_group)(first + (uint32_t)(i / 4), places, words);
            for (int k = 0; k < 4; k++)
                FOR(round_group)(b->v + i + 16 * k, words, k, 1, by.inverse, kept->v + i + 16 * k);
        }
    else
        round_wild(b->v, first, 0, 1, by.inverse, kept->v);
    *kept->v_scale = by.scale;
    return nans | (largest >= INFINITE);
}

/* m and s from g, not yet rounded, and the largest of both. */
INLINE void FOR(average_block)(const FOR(kept_t) *kept, const float *theta, const float *g,
                               const FOR(wide_constants_t) *c, int flags, int nans,
                               FOR(full_t) *b, int32_t largest[2])
{
    const FOR(wide_constants_t) own = *c;
    const float m_scale = *kept->m_scale, v_scale = *kept->v_scale, s_scale = *kept->s_scale;
    FOR(ints_t) most_m[PARTS] = {{0}}, most_s[PARTS] = {{0}};
    for (int i = 0; i < STATE_BLOCK; i += 16) {
        FOR(wide_vector_t) x[PARTS], m[PARTS], v[PARTS], s[PARTS], theta_[PARTS] = {{0}};
        FOR(take)(g + i, x);
        FOR(from_bytes)(kept->m + i, m_scale, 1, nans, m);
        FOR(from_bytes)(kept->v + i, v_scale, 1, nans, v);
        FOR(from_bytes)(kept->s + i, s_scale, 0, nans, s);
        if (flags & COUPLED) FOR(take)(theta + i, theta_);
        for (int k = 0; k < PARTS; k++) {
            s[k] *= s[k];
            FOR(wide_average)(x[k], theta_[k], &m[k], v[k], &s[k], &own, flags);
            s[k] = FOR(wide_root)(s[k]);
            most_m[k] = FOR(larger)(most_m[k], m[k]);
            most_s[k] = FOR(larger)(most_s[k], s[k]);
        }
        FOR(put)(b->m + i, m);
        FOR(put)(b->v + i, v);
        FOR(put)(b->root + i, s);
    }
    largest[0] = FOR(largest_of)(most_m);
    largest[1] = FOR(largest_of)(most_s);
}

/* Keep m and s. */
INLINE void FOR(keep_averages)(const FOR(kept_t) *kept, uint32_t first, const int32_t largest[2],
                               const FOR(full_t) *b)
{
    const FOR(bits_t) places[PARTS] = IN_ORDER;
    uint8_t *m = kept->m, *s = kept->s;
    const FOR(scale_t) m_by = FOR(scale_by)(largest[0], b->m, 1);
    const FOR(scale_t) s_by = FOR(scale_by)(largest[1], b->root, 0);
    if (m_by.tame && s_by.tame) {
        for (int i = 0; i < STATE_BLOCK; i += SHARING) {
            FOR(bits_t) words[PARTS];
            FOR(hash_group)(first + (uint32_t)(i / 4), places, words);
            for (int k = 0; k < 4; k++) {
                const int j = i + 16 * k;
                FOR(round_group)(b->m + j, words, k, 1, m_by.inverse, m + j);
                FOR(round_group)(b->root + j, words, k + 1, 0, s_by.inverse, s + j);
            }
        }
    } else {
        round_wild(b->m, first, 0, 1, m_by.inverse, kept->m);
        round_wild(b->root, first, 1, 0, s_by.inverse, kept->s);
    }
    *kept->m_scale = m_by.scale;
    *kept->s_scale = s_by.scale;
}

/* The dots of what is kept. */
INLINE void FOR(dot_block)(const FOR(kept_t) *kept, FOR(wide_vector_t) inv1, int nans,
                           const FOR(full_t) *b, FOR(wide_vector_t) sums[PARTS][4])
{
    const float m_scale = *kept->m_scale;
    FOR(wide_vector_t) here[PARTS][4];
    memcpy(here, sums, sizeof here);
    for (int i = 0; i < STATE_BLOCK; i += 16) {
        FOR(wide_vector_t) m[PARTS], v[PARTS];
        FOR(from_bytes)(kept->m + i, m_scale, 1, nans, m);
        FOR(take)(b->v + i, v);
        for (int k = 0; k < PARTS; k++) FOR(kept_dot)(m[k], v[k], inv1, here[k]);
    }
    memcpy(sums, here, sizeof here);
}

static void FOR(first_block)(const FOR(kept_t) *kept, const float *theta, const float *g,
                             uint32_t first, const FOR(wide_constants_t) *c,
                             FOR(wide_vector_t) sums[PARTS][4])
{
    FOR(full_t) b;
    int32_t largest[2];
    int nans = FOR(has_nans)(kept);
    if (!nans && c->flags == 0)
        FOR(average_block)(kept, theta, g, c, 0, 0, &b, largest);
    else
        FOR(average_block)(kept, theta, g, c, c->flags, nans, &b, largest);
    for (int64_t i = kept->n; i < STATE_BLOCK; i++) b.root[i] = 0; /* not to be kept above zero */
    FOR(keep_averages)(kept, first, largest, &b);
    nans |= largest[0] >= INFINITE || largest[1] >= INFINITE;
    if (!nans)
        FOR(dot_block)(kept, c->inv1, 0, &b, sums);
    else
        FOR(dot_block)(kept, c->inv1, 1, &b, sums);
}

INLINE void FOR(second_values)(const FOR(kept_t) *kept, float *theta,
                               const FOR(wide_constants_t) *c, int flags, int nans,
                               const FOR(full_t) *b)
{
    const FOR(wide_constants_t) own = *c;
    const float v_scale = *kept->v_scale, s_scale = *kept->s_scale;
    for (int i = 0; i < STATE_BLOCK; i += 16) {
        FOR(wide_vector_t) m_hat[PARTS], v[PARTS], root[PARTS], theta_[PARTS];
        FOR(take)(b->m + i, m_hat);
        FOR(from_bytes)(kept->v + i, v_scale, 1, nans, v);
        FOR(from_bytes)(kept->s + i, s_scale, 0, nans, root);
        FOR(take)(theta + i, theta_);
        for (int k = 0; k < PARTS; k++)
            theta_[k] = FOR(wide_stepped)(theta_[k], m_hat[k], v[k], root[k], &own, flags);
        FOR(put)(theta + i, theta_);
    }
}

static void FOR(second_block)(const FOR(kept_t) *kept, float *theta, uint32_t key,
                              const FOR(wide_constants_t) *c)
{
    FOR(full_t) b;
    int nans = FOR(has_nans)(kept);
    nans = FOR(move_block)(kept, key, c, nans, &b);
    if (!nans && !(c->flags & (STILL | BOUNDED | FAR)))
        FOR(second_values)(kept, theta, c, 0, 0, &b);
    else
        FOR(second_values)(kept, theta, c, c->flags, nans, &b);
}

/* ---- the passes ---- */

/* A block where it lies, or a copy of a tensor's last one, padded with zeros. */
INLINE FOR(kept_t) FOR(block_at)(const row_t *row, int64_t at, int64_t n,
                                 uint8_t copy[3][STATE_BLOCK])
{
    const int64_t block = at / STATE_BLOCK;
    uint8_t *bytes[3] = {(uint8_t *)row->m + at, (uint8_t *)row->v + at, (uint8_t *)row->s + at};
    for (int k = 0; n < STATE_BLOCK && k < 3; k++) {
        memset(copy[k], 0, STATE_BLOCK);
        bytes[k] = memcpy(copy[k], bytes[k], (size_t)n);
    }
    return (FOR(kept_t)){bytes[0], bytes[1], bytes[2], row->m_scales + block,
                         row->v_scales + block, row->s_scales + block, n};
}

static void FOR(i8_first)(const row_t *row, uint32_t key, int64_t at, int64_t n,
                          const float *theta, const float *g, const FOR(wide_constants_t) *c,
                          double dots[4])
{
    uint8_t copy[3][STATE_BLOCK];
    FOR(wide_vector_t) sums[PARTS][4] = {{{0}}};
    float lanes[4][16];
    for (int64_t i = 0; i < n; i += STATE_BLOCK) {
        const int64_t part = n - i < STATE_BLOCK ? n - i : STATE_BLOCK;
        const FOR(kept_t) kept = FOR(block_at)(row, at + i, part, copy);
        const uint32_t first = key + (uint32_t)((at + i) / 4);
        if (part == STATE_BLOCK) {
            FOR(first_block)(&kept, theta + i, g + i, first, c, sums);
            continue;
        }
        float rest[2][STATE_BLOCK] = {{0}};
        const size_t size = (size_t)part * sizeof(float);
        if (c->flags & COUPLED) memcpy(rest[0], theta + i, size);
        memcpy(rest[1], g + i, size);
        FOR(first_block)(&kept, rest[0], rest[1], first, c, sums);
        memcpy(row->m + at + i, kept.m, (size_t)part);
        memcpy(row->s + at + i, kept.s, (size_t)part);
    }
    for (int k = 0; k < 4; k++)
        for (int part = 0; part < PARTS; part++)
            memcpy(lanes[k] + part * (WIDE / 4), &sums[part][k], WIDE);
    if (!FOR(kept_fold)(lanes, n, row->inv1, dots)) {
        float m[SUB], v[SUB];
        decode_8_bit(row, at, n, m, v);
        FOR(double_dots)(n, m, v, row->inv1, dots);
    }
}

static void FOR(i8_second)(const row_t *row, uint32_t key, int64_t at, int64_t n, float *theta,
                           const FOR(wide_constants_t) *c)
{
    uint8_t copy[3][STATE_BLOCK];
    for (int64_t i = 0; i < n; i += STATE_BLOCK) {
        const int64_t part = n - i < STATE_BLOCK ? n - i : STATE_BLOCK;
        const FOR(kept_t) kept = FOR(block_at)(row, at + i, part, copy);
        const uint32_t first = key + (uint32_t)((at + i) / 4);
        if (part == STATE_BLOCK) {
            FOR(second_block)(&kept, theta + i, first, c);
            continue;
        }
        float rest[STATE_BLOCK] = {0};
        memcpy(rest, theta + i, (size_t)part * sizeof *theta);
        FOR(second_block)(&kept, rest, first, c);
        memcpy(theta + i, rest, (size_t)part * sizeof *theta);
        memcpy(row->v + at + i, kept.v, (size_t)part);
    }
}
