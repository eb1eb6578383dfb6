/* How numbers are kept in memory that is not of the compute type: half precision, and low-bit state
 * with its random rounding. The rules are those of storage.py. */

INLINE float bits_to_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint32_t float_to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float bf16_to_float(uint16_t h) { return bits_to_float((uint32_t)h << 16); }

INLINE uint16_t float_to_bf16(float x) /* to nearest, ties to even */
{
    uint32_t bits = float_to_bits(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : (uint16_t)rounded;
}

INLINE float f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    /* Normal numbers move the exponent's bias; subnormal ones are exact multiples of 2^-24. */
    uint32_t normal = (magnitude << 13) + ((127u - 15u) << 23);
    uint32_t special = (magnitude << 13) | 0x7f800000u;
    uint32_t small = float_to_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t bits = magnitude < 0x0400u ? small : magnitude < 0x7c00u ? normal : special;
    return bits_to_float(sign | bits);
}

INLINE uint16_t float_to_f16(float x) /* to nearest, ties to even */
{
    uint32_t bits = float_to_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    /* Adding 1/2 aligns a subnormal result's last bit with the float's, so the FPU rounds it. */
    uint32_t small = float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t half = magnitude > 0x7f800000u    ? 0x7e00u
                    : magnitude >= 0x477ff000u ? 0x7c00u
                    : magnitude < 0x38800000u  ? small
                                               : normal;
    return (uint16_t)(sign | half);
}

static const int64_t SIZE[TYPES] = {4, 8, 2, 2, 1, 1};

INLINE const float *load(const char *from, int type, int64_t n, float *buffer)
{
    const uint16_t *half = (const uint16_t *)from;
    if (type == F32) return (const float *)from;
    if (type == BF16)
        for (int64_t i = 0; i < n; i++) buffer[i] = bf16_to_float(half[i]);
    else if (type == F16)
        for (int64_t i = 0; i < n; i++) buffer[i] = f16_to_float(half[i]);
    else
        for (int64_t i = 0; i < n; i++) buffer[i] = (float)((const double *)from)[i];
    return buffer;
}

INLINE void store(char *to, int type, int64_t n, const float *buffer)
{
    uint16_t *half = (uint16_t *)to;
    if (type == BF16)
        for (int64_t i = 0; i < n; i++) half[i] = float_to_bf16(buffer[i]);
    else if (type == F16)
        for (int64_t i = 0; i < n; i++) half[i] = float_to_f16(buffer[i]);
}

/* ---- random bits: SHARING elements share sixteen words, mix(key + number of the word), and each
 * rounding draws two neighbouring bytes of one ---- */

#define MIX_1 0x7feb352du
#define MIX_2 0x846ca68bu

INLINE uint32_t mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * MIX_1;
    x = (x ^ (x >> 15)) * MIX_2;
    return x ^ (x >> 16);
}

/* The bytes of four words that each draw takes; 128 for none. */
static const uint8_t DRAWS[4][16] = {
    {0, 1, 128, 128, 4, 5, 128, 128, 8, 9, 128, 128, 12, 13, 128, 128},
    {1, 2, 128, 128, 5, 6, 128, 128, 9, 10, 128, 128, 13, 14, 128, 128},
    {2, 3, 128, 128, 6, 7, 128, 128, 10, 11, 128, 128, 14, 15, 128, 128},
    {3, 0, 128, 128, 7, 4, 128, 128, 11, 8, 128, 128, 15, 12, 128, 128},
};

/* The key of a tensor at its step. */
INLINE uint32_t key_of(const row_t *row, const group_t *o, uint32_t stream)
{
    uint32_t step = (uint32_t)*row->step;
    return mix(mix(mix((uint32_t)o->seed) + (uint32_t)row->index) + 2 * step + stream);
}

/* A copy of gradients in which every NaN is the one without lower bits. */
static const float *without_payloads(const float *x, float copy[SHARING])
{
    for (int i = 0; i < SHARING; i++) copy[i] = isnan(x[i]) ? NAN : x[i];
    return copy;
}

/* ---- 8-bit state ---- */

/* The scale of a block by its largest magnitude: that by `top`, rounded up to 16 bits, so that
 * q * scale is exact. */
INLINE float scale_for(float largest, float top)
{
    uint32_t bits = (float_to_bits(largest / top) + 0xffu) & 0xffffff00u;
    if (bits_to_float(bits) * top < largest) bits += 0x100u;
    float scale = bits_to_float(bits), most = top == 127.0f ? 0x1.0204p121f : 0x1.0204p120f;
    scale = scale < most ? scale : most;           /* top * scale must be finite, */
    scale = scale > 0x1p-110f ? scale : 0x1p-110f; /* and 2^16 / scale */
    return largest > 0 ? scale : 1.0f;
}

/* The bits of the largest finite magnitude. */
static int32_t largest_finite(const float *x, int64_t n)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t magnitude = (int32_t)(float_to_bits(x[i]) & 0x7fffffffu);
        if (magnitude < INFINITE && magnitude > largest) largest = magnitude;
    }
    return largest;
}

/* Round a block one by one, whatever is in it: numbers at the end of the range are limited, those
 * that are not finite have a code. `first` is its first word, `draw` the draw of its first group. */
static void round_wild(const float *x, uint32_t first, int draw, int has_sign, float inverse,
                       uint8_t *to)
{
    const float top = (has_sign ? 127.0f : 254.0f) * 0x1p16f;
    for (int i = 0; i < STATE_BLOCK; i++) {
        uint32_t word = mix(first + (uint32_t)(i / SHARING * 16 + i % 16));
        const int shift = 8 * ((i / 16 + draw) % 4);
        uint32_t bits = (word >> shift | word << (32 - shift) % 32) & 0xffffu;
        const int finite = (float_to_bits(x[i]) & 0x7fffffffu) < INFINITE;
        float part = finite ? x[i] * inverse : 0;
        part = part < top ? part : top;
        part = part > -top ? part : -top;
        int32_t q = ((int32_t)__builtin_rintf(part) + (int32_t)bits) >> 16;
        if (!has_sign && q == 0 && x[i] > 0) q = 1;
        to[i] = (uint8_t)(finite ? q : has_sign ? 128 : 255);
    }
}

/* m and v as they are kept, in full. */
static void decode_8_bit(const row_t *row, int64_t at, int64_t n, float *m, float *v)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t block = (at + i) / STATE_BLOCK;
        const int8_t own_m = (int8_t)row->m[at + i], own_v = (int8_t)row->v[at + i];
        m[i] = own_m == -128 ? NAN : (float)own_m * row->m_scales[block];
        v[i] = own_v == -128 ? NAN : (float)own_v * row->v_scales[block];
    }
}
