/* The passes over 8-bit state, a block of STATE_BLOCK elements with its scales at a time: decode,
 * compute, find the scale, round, and go on with what is kept. The rules are those of storage.py.
 *
 * Loops run over whole blocks in the first-level cache; a tensor's last one is padded with zeros,
 * to the next multiple of 32.
 */

INLINE int FOR(padded_size)(int64_t n) { return (int)(n + 31) / 32 * 32; }

typedef int32_t FOR(int8_lanes_t) __attribute__((vector_size(32)));

INLINE FOR(float8_t) FOR(take)(const float *from)
{
    FOR(float8_t) x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void FOR(put)(float *to, FOR(float8_t) x) { memcpy(to, &x, sizeof x); }

/* Eight bytes as numbers. */
INLINE FOR(float8_t) FOR(from_bytes)(const uint8_t *from, int has_sign)
{
#if HAS_AVX2
    __m128i bytes = _mm_loadl_epi64((const __m128i *)from);
    return (FOR(float8_t))_mm256_cvtepi32_ps(has_sign ? _mm256_cvtepi8_epi32(bytes)
                                                      : _mm256_cvtepu8_epi32(bytes));
#else
    FOR(float8_t) x;
    for (int lane = 0; lane < 8; lane++)
        x[lane] = has_sign ? (float)(int8_t)from[lane] : (float)from[lane];
    return x;
#endif
}

/* 32 whole numbers as bytes. */
INLINE void FOR(to_bytes)(const FOR(float8_t) q[4], int has_sign, uint8_t *to)
{
#if HAS_AVX2
    __m256i x[4];
    for (int k = 0; k < 4; k++) x[k] = _mm256_cvtps_epi32((__m256)q[k]);
    __m256i low = _mm256_packs_epi32(x[0], x[1]), high = _mm256_packs_epi32(x[2], x[3]);
    __m256i bytes = has_sign ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); /* packing goes by halves */
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(bytes, order));
#else
    (void)has_sign;
    for (int i = 0; i < 32; i++) to[i] = (uint8_t)(int32_t)q[i / 8][i % 8];
#endif
}

/* floor(x), not above `top`, not below `least`. */
INLINE FOR(float8_t) FOR(whole_within)(FOR(float8_t) x, FOR(float8_t) least, float top)
{
#if HAS_AVX2
    __m256 q = _mm256_min_ps(_mm256_floor_ps((__m256)x), _mm256_set1_ps(top));
    return (FOR(float8_t))_mm256_max_ps(q, (__m256)least);
#else
    for (int lane = 0; lane < 8; lane++) {
        float q = __builtin_floorf(x[lane]);
        q = q < top ? q : top;
        x[lane] = q > least[lane] ? q : least[lane];
    }
    return x;
#endif
}

/* Decode a block: q * scale, NaN where q is the code of NaN. */
INLINE void FOR(decode)(const char *from, int64_t n, float scale, int has_sign, float *x)
{
    uint8_t padded[STATE_BLOCK], nan = has_sign ? 128 : 255, nans = 0;
    const uint8_t *bytes = (const uint8_t *)from;
    const int size = FOR(padded_size)(n);
    if (n < size) {
        memset(padded, 0, (size_t)size);
        bytes = memcpy(padded, from, (size_t)n);
    }
    for (int i = 0; i < size; i++) nans |= bytes[i] == nan;
    for (int i = 0; i < size; i += 8)
        FOR(put)(x + i, FOR(from_bytes)(bytes + i, has_sign) * scale);
    for (int i = 0; nans && i < size; i++) x[i] = bytes[i] == nan ? NAN : x[i];
}

/* The scale of a block by its largest finite magnitude; whether all are finite. */
INLINE float FOR(scale_of)(const float *x, int size, float top, int *finite)
{
    int32_t largest = 0; /* floats without a sign are ordered like their bits */
    for (int i = 0; i < size; i++) {
        int32_t magnitude = (int32_t)(float_to_bits(x[i]) & 0x7fffffffu);
        largest = magnitude > largest ? magnitude : largest;
    }
    *finite = largest < INFINITE;
    if (!*finite) largest = 0;
    for (int i = 0; !*finite && i < size; i++) {
        int32_t magnitude = (int32_t)(float_to_bits(x[i]) & 0x7fffffffu);
        if (magnitude < INFINITE && magnitude > largest) largest = magnitude;
    }
    float scale = bits_to_float((uint32_t)largest) / top;
    scale = scale > 0x1p-120f ? scale : 0x1p-120f; /* 1/scale must be finite */
    return largest > 0 ? scale : 1.0f;
}

/* Round a block by 16 random bits each, keep it, and put back what is kept. Numbers without a sign
 * stay above zero, or the step would divide by eps alone. */
INLINE void FOR(round_block)(float *x, int size, const uint32_t *random, float scale, int has_sign,
                             int finite, uint8_t *kept)
{
    const float top = has_sign ? 127.0f : 254.0f;
    const FOR(float8_t) zero = {0}, inverse = zero + 1.0f / scale, unit = zero + 0x1p-16f;
    for (int i = 0; i < size; i += 32) {
        FOR(float8_t) q[4];
        for (int k = 0; k < 4; k++) {
            FOR(float8_t) exact = FOR(take)(x + i + 8 * k), part = exact * inverse;
            FOR(float8_t) least = zero - top;
            FOR(bits8_t) bits;
            memcpy(&bits, random + i + 8 * k, sizeof bits);
            bits = has_sign ? bits & 0xffffu : bits >> 16;
            FOR(float8_t) chance = __builtin_convertvector((FOR(int8_lanes_t))bits, FOR(float8_t));
            if (!has_sign)
                least = (FOR(float8_t))((part > zero) & (FOR(int8_lanes_t))(zero + 1.0f));
            q[k] = FOR(whole_within)(FOR(float_fma)(chance, unit, part), least, top);
            FOR(float8_t) back = q[k] * scale;
            if (!finite) {
                FOR(int8_lanes_t) nan = ((FOR(int8_lanes_t))exact & INFINITE) == INFINITE;
                FOR(int8_lanes_t) code = (FOR(int8_lanes_t))(zero + (has_sign ? -128.0f : 255.0f));
                q[k] = (FOR(float8_t))(((FOR(int8_lanes_t))q[k] & ~nan) | (code & nan));
                back = (FOR(float8_t))((FOR(int8_lanes_t))back | nan); /* all bits: a NaN */
            }
            FOR(put)(x + i + 8 * k, back);
        }
        FOR(to_bytes)(q, has_sign, kept + i);
    }
}

INLINE void FOR(encode)(float *x, const uint32_t *random, int has_sign, int64_t n, char *to,
                        float *scale)
{
    uint8_t kept[STATE_BLOCK];
    const int size = FOR(padded_size)(n);
    int finite;
    *scale = FOR(scale_of)(x, size, has_sign ? 127.0f : 254.0f, &finite);
    if (finite)
        FOR(round_block)(x, size, random, *scale, has_sign, 1, kept);
    else
        FOR(round_block)(x, size, random, *scale, has_sign, 0, kept);
    memcpy(to, kept, (size_t)n);
}

/* ---- one block, decoded: m, v and the root of s ---- */

typedef struct {
    float m[STATE_BLOCK], v[STATE_BLOCK], root[STATE_BLOCK];
    uint32_t random[STATE_BLOCK];
} FOR(block_t);

static void FOR(open_block)(const row_t *row, int64_t at, int64_t n, FOR(block_t) *b)
{
    const int64_t block = at / STATE_BLOCK;
    FOR(decode)(row->m + at, n, row->m_scales[block], 1, b->m);
    FOR(decode)(row->v + at, n, row->v_scales[block], 1, b->v);
    FOR(decode)(row->s + at, n, row->s_scales[block], 0, b->root);
}

INLINE void FOR(hash_block)(uint32_t first, uint32_t size, FOR(block_t) *b)
{
    for (uint32_t i = 0; i < size; i++) b->random[i] = mix(first + i);
}

INLINE void FOR(move_values)(int size, FOR(float8_t) inv1, const FOR(float_constants_t) *c,
                             int flags, FOR(block_t) *b)
{
    const FOR(float_constants_t) own = *c;
    for (int i = 0; i < size; i += 8) {
        FOR(float8_t) m_hat = FOR(take)(b->m + i) * inv1;
        FOR(put)(b->v + i, FOR(float_moved)(FOR(take)(b->v + i), m_hat, &own, flags));
    }
}

/* Move v, and keep it. */
static void FOR(move_block)(const row_t *row, int64_t at, int64_t n, uint32_t key,
                            FOR(float8_t) inv1, const FOR(float_constants_t) *c, FOR(block_t) *b)
{
    const int size = FOR(padded_size)(n);
    if (c->flags & FAR)
        FOR(move_values)(size, inv1, c, FAR, b);
    else
        FOR(move_values)(size, inv1, c, 0, b);
    FOR(hash_block)(key + (uint32_t)at, (uint32_t)size, b);
    FOR(encode)(b->v, b->random, 1, n, row->v + at, &row->v_scales[at / STATE_BLOCK]);
}

/* m and s from g, and theta after what was pending. */
INLINE void FOR(average_block)(int size, float *theta, const float *g,
                               const FOR(float_constants_t) *c, int flags, FOR(block_t) *b)
{
    const FOR(float_constants_t) own = *c;
    for (int i = 0; i < size; i += 8) {
        FOR(float8_t) x = FOR(take)(g + i), m = FOR(take)(b->m + i), v = FOR(take)(b->v + i);
        FOR(float8_t) root = FOR(take)(b->root + i), s = root * root, theta_ = {0};
        if (flags & (COUPLED | LATE)) theta_ = FOR(take)(theta + i);
        if (flags & LATE) {
            theta_ = FOR(float_settled)(theta_, v, &own, flags);
            FOR(put)(theta + i, theta_);
        }
        FOR(float_average)(x, theta_, &m, v, &s, &own, flags);
        FOR(put)(b->m + i, m);
        FOR(put)(b->root + i, FOR(float_root)(s));
    }
}

/* The dots, and for the late step theta after the adaptive step. */
INLINE void FOR(finish_block)(int size, float *theta, const FOR(float_constants_t) *c, int flags,
                              const FOR(block_t) *b, FOR(float8_t) sums[4])
{
    const FOR(float_constants_t) own = *c;
    FOR(float8_t) lanes[4];
    memcpy(lanes, sums, sizeof lanes);
    for (int i = 0; i < size; i += 8) {
        FOR(float8_t) m_hat = FOR(take)(b->m + i) * own.inv1;
        FOR(float_dot)(m_hat, FOR(take)(b->v + i), lanes);
        if (flags & LATE)
            FOR(put)(theta + i, FOR(float_late)(FOR(take)(theta + i), m_hat,
                                                FOR(take)(b->root + i), &own, flags));
    }
    memcpy(sums, lanes, sizeof lanes);
}

static void FOR(first_block)(const row_t *row, int64_t at, int64_t n, float *theta, const float *g,
                             uint32_t key, uint32_t key_before, const FOR(float_constants_t) *c,
                             FOR(block_t) *b, FOR(float8_t) sums[4])
{
    const int64_t block = at / STATE_BLOCK;
    const int size = FOR(padded_size)(n);
    FOR(open_block)(row, at, n, b);
    if (c->flags & LATE) FOR(move_block)(row, at, n, key_before, c->inv1_before, c, b);
    if (c->flags == 0)
        FOR(average_block)(size, theta, g, c, 0, b);
    else
        FOR(average_block)(size, theta, g, c, c->flags, b);
    memset(b->root + n, 0, (size_t)(size - n) * sizeof *b->root); /* not to count below */
    FOR(hash_block)(key + (uint32_t)at, (uint32_t)size, b);
    FOR(encode)(b->m, b->random, 1, n, row->m + at, &row->m_scales[block]);
    FOR(encode)(b->root, b->random, 0, n, row->s + at, &row->s_scales[block]);
    if (c->flags == 0)
        FOR(finish_block)(size, theta, c, 0, b, sums);
    else
        FOR(finish_block)(size, theta, c, c->flags, b, sums);
}

static void FOR(second_block)(const row_t *row, int64_t at, int64_t n, float *theta, uint32_t key,
                              const FOR(float_constants_t) *c)
{
    const FOR(float_constants_t) own = *c;
    const int size = FOR(padded_size)(n);
    FOR(block_t) b;
    FOR(open_block)(row, at, n, &b);
    FOR(move_block)(row, at, n, key, own.inv1, &own, &b);
    for (int i = 0; i < size; i += 8) {
        FOR(float8_t) m_hat = FOR(take)(b.m + i) * own.inv1, v = FOR(take)(b.v + i);
        FOR(put)(theta + i, FOR(float_exact)(FOR(take)(theta + i), m_hat, v,
                                             FOR(take)(b.root + i), &own, own.flags));
    }
}

/* ---- the passes ---- */

static void FOR(i8_first)(const row_t *row, const group_t *o, int64_t at, int64_t n, float *theta,
                          const float *g, const FOR(float_constants_t) *c, double dots[4])
{
    const uint32_t key = key_of(row, o, 0, 0), key_before = key_of(row, o, -1, 1);
    FOR(block_t) blocks[SUB / STATE_BLOCK];
    FOR(float8_t) sums[4] = {{0}};
    int64_t i = 0;
    for (; i + STATE_BLOCK <= n; i += STATE_BLOCK)
        FOR(first_block)
        (row, at + i, STATE_BLOCK, theta + i, g + i, key, key_before, c, &blocks[i / STATE_BLOCK],
         sums);
    if (i < n) {
        float rest[2][STATE_BLOCK] = {{0}};
        size_t size = (size_t)(n - i) * sizeof(float);
        if (c->flags & (COUPLED | LATE)) memcpy(rest[0], theta + i, size);
        memcpy(rest[1], g + i, size);
        FOR(first_block)
        (row, at + i, n - i, rest[0], rest[1], key, key_before, c, &blocks[i / STATE_BLOCK], sums);
        if (c->flags & LATE) memcpy(theta + i, rest[0], size);
    }
    if (FOR(float_fold)(sums, n, dots)) return;
    memset(dots, 0, 4 * sizeof *dots);
    for (i = 0; i < n; i += STATE_BLOCK) {
        const FOR(block_t) *b = &blocks[i / STATE_BLOCK];
        double own[4];
        FOR(wide_dots)(n - i < STATE_BLOCK ? n - i : STATE_BLOCK, b->m, b->v, row->inv1, own);
        for (int k = 0; k < 4; k++) dots[k] += own[k];
    }
}

static void FOR(i8_second)(const row_t *row, const group_t *o, int64_t at, int64_t n, float *theta,
                           const FOR(float_constants_t) *c)
{
    const uint32_t key = key_of(row, o, 0, 1);
    int64_t i = 0;
    for (; i + STATE_BLOCK <= n; i += STATE_BLOCK)
        FOR(second_block)(row, at + i, STATE_BLOCK, theta + i, key, c);
    if (i < n) {
        float rest[STATE_BLOCK] = {0};
        size_t size = (size_t)(n - i) * sizeof *theta;
        memcpy(rest, theta + i, size);
        FOR(second_block)(row, at + i, n - i, rest, key, c);
        memcpy(theta + i, rest, size);
    }
}
