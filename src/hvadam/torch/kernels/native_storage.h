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

#define MIX_1 0x7feb352du
#define MIX_2 0x846ca68bu

INLINE uint32_t mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * MIX_1;
    x = (x ^ (x >> 15)) * MIX_2;
    return x ^ (x >> 16);
}

/* The key of a tensor at its step, or `since` steps later. */
INLINE uint32_t key_of(const row_t *row, const group_t *o, int since, uint32_t stream)
{
    uint32_t step = (uint32_t)*row->step + (uint32_t)since;
    return mix(mix(mix((uint32_t)o->seed) + (uint32_t)row->index) + 2 * step + stream);
}
