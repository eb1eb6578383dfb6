/* Half precision: rounded as the compiler rounds it. */

static void expect_bf16(float x, uint32_t expected)
{
    EXPECT(float_to_bf16(x) == expected, "%a is %x, not %x", x, float_to_bf16(x), expected);
}

static void run_conversions(void)
{
    for (uint32_t h = 0; h < 0x7f80u; h++) { /* every bfloat16, and what lies between two */
        float x = bits_to_float(h << 16), tie = bits_to_float((h << 16) + 0x8000u);
        uint32_t even = h + (h & 1u);
        for (uint32_t sign = 0; sign <= 0x8000u; sign += 0x8000u) {
            expect_bf16(sign ? -x : x, sign | h);
            expect_bf16(sign ? -tie : tie, sign | even);
            expect_bf16(copysignf(nextafterf(tie, 0), sign ? -1.0f : 1.0f), sign | h);
            expect_bf16(copysignf(nextafterf(tie, INFINITY), sign ? -1.0f : 1.0f), sign | (h + 1));
        }
    }
    EXPECT(isnan(bf16_to_float(float_to_bf16(NAN))), "NaN");
    EXPECT(isnan(bf16_to_float(float_to_bf16(bits_to_float(0xff800001u)))), "a NaN of low bits");
#ifdef __FLT16_MAX__
    for (uint32_t h = 0; h < 0x10000u; h++) { /* every float16, and what lies between two */
        uint16_t bits = (uint16_t)h;
        _Float16 half;
        memcpy(&half, &bits, 2);
        float x = f16_to_float(bits), next = f16_to_float((uint16_t)(h + 1));
        EXPECT(x == (float)half || (isnan(x) && isnan((float)half)), "%x is %a", h, x);
        float tie = x / 2 + next / 2;
        const float near[] = {x, tie, nextafterf(tie, 0), nextafterf(tie, 2 * x), x * 1.0001f};
        for (int k = 0; k < 5; k++) {
            uint16_t actual = float_to_f16(near[k]), expected;
            half = (_Float16)near[k];
            memcpy(&expected, &half, 2);
            EXPECT(actual == expected || (isnan(near[k]) && isnan(f16_to_float(actual))),
                   "%a is %x, not %x", near[k], actual, expected);
        }
    }
    EXPECT(float_to_f16(65519.996f) == 0x7bff && float_to_f16(65520.0f) == 0x7c00, "overflow");
    EXPECT(float_to_f16(-FLT_MAX) == 0xfc00 && float_to_f16(INFINITY) == 0x7c00, "infinity");
    EXPECT(float_to_f16(0x1p-25f) == 0 && float_to_f16(0x1.8p-25f) == 1, "underflow");
#endif
}
