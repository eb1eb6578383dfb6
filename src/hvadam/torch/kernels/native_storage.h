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

/* ---- random bits: mix(key + element), 16 of them to each rounding ---- */

INLINE uint32_t mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

INLINE uint32_t key_of(uint32_t seed, uint32_t index, uint32_t step, uint32_t stream)
{
    return mix(mix(mix(seed) + index) + 2 * step + stream);
}

INLINE void fill_bits(int64_t n, uint32_t key, uint32_t first, uint32_t *restrict bits)
{
    for (int64_t i = 0; i < n; i++) bits[i] = mix(key + first + (uint32_t)i);
}

/* ---- bfloat16 state ---- */

INLINE void bf16_decode(int64_t n, const uint16_t *restrict from, float *restrict x)
{
    for (int64_t i = 0; i < n; i++) x[i] = bf16_to_float(from[i]);
}

/* Round x in place and keep it; shift picks the half of the random bits. */
INLINE void bf16_encode(int64_t n, float *restrict x, uint16_t *restrict to,
                        const uint32_t *restrict random, int shift)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = float_to_bits(x[i]);
        uint32_t chance = (random[i] >> shift) & 0xffffu;
        uint32_t magnitude = bits & 0x7fffffffu;
        uint32_t rounded = (bits + chance) & 0xffff0000u;
        rounded = magnitude >= 0x7f800000u ? bits & 0xffff0000u : rounded;
        rounded = magnitude > 0x7f800000u ? 0x7fc00000u : rounded;
        x[i] = bits_to_float(rounded);
        to[i] = (uint16_t)(rounded >> 16);
    }
}

/* ---- 8-bit state: blocks of STATE_BLOCK share a scale ---- */

INLINE void i8_decode(int64_t n, const int8_t *restrict from, const float *scales, float *restrict x)
{
    for (int64_t start = 0; start < n; start += STATE_BLOCK) {
        int64_t end = start + STATE_BLOCK < n ? start + STATE_BLOCK : n;
        float scale = scales[start / STATE_BLOCK];
        for (int64_t i = start; i < end; i++)
            x[i] = from[i] == -128 ? NAN : (float)from[i] * scale;
    }
}

INLINE void u8_decode(int64_t n, const uint8_t *restrict from, const float *scales,
                      float *restrict x)
{
    for (int64_t start = 0; start < n; start += STATE_BLOCK) {
        int64_t end = start + STATE_BLOCK < n ? start + STATE_BLOCK : n;
        float scale = scales[start / STATE_BLOCK];
        for (int64_t i = start; i < end; i++) {
            float root = (float)from[i] * scale;
            x[i] = from[i] == 255 ? NAN : root * root;
        }
    }
}

INLINE float scale_of(int64_t n, const float *x, float top)
{
    int32_t largest = 0; /* floats without a sign are ordered like their bits */
    for (int64_t i = 0; i < n; i++) {
        int32_t magnitude = (int32_t)(float_to_bits(x[i]) & 0x7fffffffu);
        magnitude = magnitude >= 0x7f800000 ? 0 : magnitude;
        largest = magnitude > largest ? magnitude : largest;
    }
    float scale = bits_to_float((uint32_t)largest) / top;
    scale = scale > 0x1p-120f ? scale : 0x1p-120f; /* 1/scale must be finite */
    return largest > 0 ? scale : 1.0f;
}

/* Keep x, and put back what is kept. */
INLINE void i8_encode(int64_t n, float *restrict x, int8_t *restrict to, float *scales,
                      const uint32_t *restrict random)
{
    for (int64_t start = 0; start < n; start += STATE_BLOCK) {
        int64_t count = start + STATE_BLOCK < n ? STATE_BLOCK : n - start;
        float *part = x + start;
        float scale = scale_of(count, part, 127.0f);
        scales[start / STATE_BLOCK] = scale;
        float inverse = 1.0f / scale;
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits = random[start + i] & 0xffffu;
            float q = __builtin_floorf(part[i] * inverse + (float)(int32_t)bits * 0x1p-16f);
            q = q > 127.0f ? 127.0f : q;
            q = q < -127.0f ? -127.0f : q;
            int finite = (float_to_bits(part[i]) & 0x7f800000u) != 0x7f800000u;
            to[start + i] = (int8_t)(finite ? (int32_t)q : -128);
            part[i] = finite ? q * scale : NAN;
        }
    }
}

INLINE void u8_encode(int64_t n, float *restrict x, uint8_t *restrict to, float *scales,
                      const uint32_t *restrict random)
{
    float root[STATE_BLOCK];
    for (int64_t start = 0; start < n; start += STATE_BLOCK) {
        int64_t count = start + STATE_BLOCK < n ? STATE_BLOCK : n - start;
        for (int64_t i = 0; i < count; i++) root[i] = __builtin_sqrtf(x[start + i]);
        float scale = scale_of(count, root, 254.0f);
        scales[start / STATE_BLOCK] = scale;
        float inverse = 1.0f / scale;
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits = random[start + i] >> 16;
            float part = root[i] * inverse;
            float q = __builtin_floorf(part + (float)(int32_t)bits * 0x1p-16f);
            q = q > 254.0f ? 254.0f : q;
            q = part > 0 && q < 1.0f ? 1.0f : q; /* never 0, or the step would divide by eps alone */
            int finite = (float_to_bits(root[i]) & 0x7f800000u) != 0x7f800000u;
            to[start + i] = (uint8_t)(finite ? (int32_t)q : 255);
            x[start + i] = finite ? (q * scale) * (q * scale) : NAN;
        }
    }
}
