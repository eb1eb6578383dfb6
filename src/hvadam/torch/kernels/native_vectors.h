/* Vectors of one instruction set: FOR(x) names what belongs to it.
 *
 * State in full waits for memory, and 32 bytes at a time do. Low-bit state waits for arithmetic: its
 * vectors have WIDE bytes, as many as the set has. It is worked on in groups of sixteen elements,
 * PARTS vectors of them, and sums run in the lanes of groups, so that AVX2 and AVX-512 give the same
 * bits.
 */

typedef float FOR(float_vector_t) __attribute__((vector_size(32)));
typedef double FOR(double_vector_t) __attribute__((vector_size(32)));
typedef float FOR(wide_vector_t) __attribute__((vector_size(WIDE)));
typedef int32_t FOR(ints_t) __attribute__((vector_size(WIDE)));
typedef uint32_t FOR(bits_t) __attribute__((vector_size(WIDE)));

INLINE FOR(float_vector_t) FOR(float_root)(FOR(float_vector_t) x)
{
#if HAS_AVX2
    return (FOR(float_vector_t))_mm256_sqrt_ps((__m256)x);
#else
    for (int lane = 0; lane < 8; lane++) x[lane] = __builtin_sqrtf(x[lane]);
    return x;
#endif
}

INLINE FOR(double_vector_t) FOR(double_root)(FOR(double_vector_t) x)
{
#if HAS_AVX2
    return (FOR(double_vector_t))_mm256_sqrt_pd((__m256d)x);
#else
    for (int lane = 0; lane < 4; lane++) x[lane] = __builtin_sqrt(x[lane]);
    return x;
#endif
}

INLINE FOR(wide_vector_t) FOR(wide_root)(FOR(wide_vector_t) x)
{
#if WIDE == 64
    return (FOR(wide_vector_t))_mm512_sqrt_ps((__m512)x);
#else
    return (FOR(wide_vector_t))FOR(float_root)((FOR(float_vector_t))x);
#endif
}

INLINE FOR(float_vector_t) FOR(float_fma)(FOR(float_vector_t) a, FOR(float_vector_t) b,
                                          FOR(float_vector_t) c)
{
#if HAS_AVX2
    return (FOR(float_vector_t))_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

INLINE FOR(double_vector_t) FOR(double_fma)(FOR(double_vector_t) a, FOR(double_vector_t) b,
                                            FOR(double_vector_t) c)
{
#if HAS_AVX2
    return (FOR(double_vector_t))_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

INLINE FOR(wide_vector_t) FOR(wide_fma)(FOR(wide_vector_t) a, FOR(wide_vector_t) b,
                                        FOR(wide_vector_t) c)
{
#if WIDE == 64
    return (FOR(wide_vector_t))_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return (FOR(wide_vector_t))FOR(float_fma)((FOR(float_vector_t))a, (FOR(float_vector_t))b,
                                              (FOR(float_vector_t))c);
#endif
}

/* The lesser of x and top, lane by lane; NaN where x is. */
INLINE FOR(float_vector_t) FOR(float_at_most)(FOR(float_vector_t) x, float top)
{
#if HAS_AVX2
    return (FOR(float_vector_t))_mm256_min_ps(_mm256_set1_ps(top), (__m256)x);
#else
    for (int lane = 0; lane < 8; lane++) x[lane] = x[lane] > top ? top : x[lane];
    return x;
#endif
}

INLINE FOR(double_vector_t) FOR(double_at_most)(FOR(double_vector_t) x, double top)
{
#if HAS_AVX2
    return (FOR(double_vector_t))_mm256_min_pd(_mm256_set1_pd(top), (__m256d)x);
#else
    for (int lane = 0; lane < 4; lane++) x[lane] = x[lane] > top ? top : x[lane];
    return x;
#endif
}

INLINE FOR(wide_vector_t) FOR(wide_at_most)(FOR(wide_vector_t) x, float top)
{
#if WIDE == 64
    return (FOR(wide_vector_t))_mm512_min_ps(_mm512_set1_ps(top), (__m512)x);
#else
    return (FOR(wide_vector_t))FOR(float_at_most)((FOR(float_vector_t))x, top);
#endif
}

/* The numbers of a group's elements, in their order. */
#if WIDE == 64
#define IN_ORDER {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
#else
#define IN_ORDER {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}
#endif

/* ---- random bits: the rules are those of storage.py ---- */

/* The words of a group from `first` on, which has its elements in these places. */
INLINE void FOR(hash_group)(uint32_t first, const FOR(bits_t) places[PARTS],
                            FOR(bits_t) words[PARTS])
{
    for (int k = 0; k < PARTS; k++) {
        FOR(bits_t) x = places[k] + first;
        x = (x ^ (x >> 16)) * MIX_1;
        x = (x ^ (x >> 15)) * MIX_2;
        words[k] = x ^ (x >> 16);
    }
}

/* 16 bits of each word: two neighbouring bytes, the first of which is number `draw`. */
INLINE FOR(bits_t) FOR(drawn)(FOR(bits_t) words, int draw)
{
#if HAS_AVX2
    const __m128i bytes = _mm_loadu_si128((const __m128i *)DRAWS[draw % 4]);
#if WIDE == 64
    return (FOR(bits_t))_mm512_shuffle_epi8((__m512i)words, _mm512_broadcast_i32x4(bytes));
#else
    return (FOR(bits_t))_mm256_shuffle_epi8((__m256i)words, _mm256_broadcastsi128_si256(bytes));
#endif
#else
    const int shift = 8 * (draw % 4);
    return (words >> shift | words << (32 - shift) % 32) & 0xffffu;
#endif
}

/* ---- dots ---- */

/* |v-m_hat|^2, <v-m_hat,v>, |m|^2, |v|^2 of state as it is kept, lane by lane. */
INLINE void FOR(kept_dot)(FOR(wide_vector_t) m, FOR(wide_vector_t) v, FOR(wide_vector_t) inv1,
                          FOR(wide_vector_t) sums[4])
{
    FOR(wide_vector_t) d = FOR(wide_fma)(-inv1, m, v);
    sums[0] = FOR(wide_fma)(d, d, sums[0]);
    sums[1] = FOR(wide_fma)(d, v, sums[1]);
    sums[2] = FOR(wide_fma)(m, m, sums[2]);
    sums[3] = FOR(wide_fma)(v, v, sums[3]);
}
