/* HVAdam's two passes for CPUs: plain C ABI, called through ctypes.
 *
 * Tensors are cut into fixed blocks, blocks are shared out to threads, and the partial dots of the
 * blocks are added in their own order: the result has the same bits whatever the thread count.
 * Memory that is not of the compute type (half precision) passes through buffers that stay in the
 * first-level cache.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = 16384, /* elements that one task takes */
       SUB = 1024,    /* elements that one pass over the first-level cache takes */
       LANES = 4 };   /* doubles that are added side by side */
enum type { F32, F64, BF16, F16, TYPES };

/* A param group's options, doubles first; mirrored in native.py. */
typedef struct {
    double lr, beta1, beta2, eps, gamma, decay, coupled_decay, hidden_scale, low, high, sign;
    int64_t adam, bounded;
} group_t;

/* One tensor; mirrored in native.py. */
typedef struct {
    char *theta, *g, *m, *v, *s;
    float *step;
    int64_t n, scope;
    int32_t theta_type, g_type, state_type, fits;
    double inv1, inv2;
} row_t;

typedef double lanes_t __attribute__((vector_size(LANES * sizeof(double))));
typedef float quad_t __attribute__((vector_size(LANES * sizeof(float))));

/* ---- half precision ---- */

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
    uint32_t small = float_to_bits((float)magnitude * 0x1p-24f);
    uint32_t bits = magnitude < 0x0400u ? small : magnitude < 0x7c00u ? normal : special;
    return bits_to_float(sign | bits);
}

INLINE uint16_t float_to_f16(float x) /* to nearest, ties to even */
{
    uint32_t bits = float_to_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    /* Adding 1/2 aligns a subnormal result's last bit with the float's, so the FPU rounds it. */
    uint32_t small = float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t half = magnitude > 0x7f800000u   ? 0x7e00u
                    : magnitude >= 0x477ff000u ? 0x7c00u
                    : magnitude < 0x38800000u  ? small
                                               : normal;
    return (uint16_t)(sign | half);
}

INLINE const float *load(const char *from, enum type type, int64_t n, float *buffer)
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

INLINE void store(char *to, enum type type, int64_t n, const float *buffer)
{
    uint16_t *half = (uint16_t *)to;
    if (type == BF16)
        for (int64_t i = 0; i < n; i++) half[i] = float_to_bf16(buffer[i]);
    else if (type == F16)
        for (int64_t i = 0; i < n; i++) half[i] = float_to_f16(buffer[i]);
}

static const int64_t SIZE[TYPES] = {4, 8, 2, 2};

/* ---- the kernel, compiled for each instruction set ---- */

enum { BASELINE, AVX2, AVX512 };
typedef void accumulate_fn(const row_t *, const group_t *, int64_t, int64_t, double *);
typedef void apply_fn(const row_t *, const group_t *, int64_t, int64_t, double, double);

#define FOR(x) x##_baseline
#define HAS_AVX2 0
#include "native_block.h"
#undef FOR
#undef HAS_AVX2

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_AVX2 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif
#define FOR(x) x##_avx2
#include "native_block.h"
#undef FOR
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl")
#endif
#define FOR(x) x##_avx512
#include "native_block.h"
#undef FOR
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

static int instruction_set = BASELINE;

static accumulate_fn *const ACCUMULATE[] = {
    accumulate_baseline,
#if defined(__x86_64__)
    accumulate_avx2, accumulate_avx512,
#endif
};
static apply_fn *const APPLY[] = {
    apply_baseline,
#if defined(__x86_64__)
    apply_avx2, apply_avx512,
#endif
};

/* Use at most the given instruction set; returns the one that will be used. */
EXPORT int hvadam_select(int wanted)
{
    instruction_set = BASELINE;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (wanted >= AVX2 && __builtin_cpu_supports("avx2")) instruction_set = AVX2;
    if (wanted >= AVX512 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        instruction_set = AVX512;
#else
    (void)wanted;
#endif
    return instruction_set;
}

/* ---- tensors, as their framework describes them ---- */

/* The part of DLPack's stable ABI that is needed here. */
typedef struct {
    void *data;
    struct { int32_t type, id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor_t;
typedef int describe_fn(void *object, dl_tensor_t *out);
typedef void clear_error_fn(void);

enum { DL_CPU = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, MOST_DIMS = 16 };

/* The type, and how many of it make one element: 2 for complex numbers, 0 if it is none of ours. */
static int parts_of(const dl_tensor_t *t, int32_t *type)
{
    int code = t->dtype.code, bits = t->dtype.bits;
    if (t->dtype.lanes != 1 || t->device.type != DL_CPU) return 0;
    if (code == DL_BFLOAT && bits == 16) return *type = BF16, 1;
    if (code == DL_FLOAT && bits == 16) return *type = F16, 1;
    if (code == DL_FLOAT && bits == 32) return *type = F32, 1;
    if (code == DL_FLOAT && bits == 64) return *type = F64, 1;
    if (code == DL_COMPLEX && bits == 64) return *type = F32, 2;
    if (code == DL_COMPLEX && bits == 128) return *type = F64, 2;
    return 0;
}

/* The number of elements if they fill a piece of memory without gaps or overlaps, else -1. */
static int64_t dense_size(const dl_tensor_t *t)
{
    int64_t size = 1, expected = 1;
    if (t->ndim > MOST_DIMS) return -1;
    for (int i = 0; i < t->ndim; i++) size *= t->shape[i];
    if (size == 0 || !t->strides) return size;
    for (int done = 0; done < t->ndim; done++) { /* the next dimension out is the expected stride */
        int next = -1, left = 0;
        for (int i = 0; i < t->ndim; i++) {
            if (t->shape[i] == 1 || t->strides[i] < expected) continue;
            left = 1;
            if (t->strides[i] == expected) next = i;
        }
        if (!left) break;
        if (next < 0) return -1;
        expected *= t->shape[next];
    }
    return expected == size ? size : -1;
}

static int same_layout(const dl_tensor_t *a, const dl_tensor_t *b)
{
    if (a->ndim != b->ndim) return 0;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] != b->shape[i]) return 0;
        if (a->shape[i] > 1 && a->strides && b->strides && a->strides[i] != b->strides[i]) return 0;
    }
    return 1;
}

/* Fill a row from theta, g, m, v, s, step; returns whether the kernel can take it. */
static int describe_row(void **objects, describe_fn *describe, clear_error_fn *clear_error,
                        row_t *row)
{
    enum { THETA, G, M, V, S, STEP, COLUMNS };
    dl_tensor_t t[COLUMNS];
    int32_t type[COLUMNS];
    int parts = 0;
    for (int i = 0; i < COLUMNS; i++) {
        if (describe(objects[i], &t[i])) {
            clear_error();
            return 0;
        }
        int p = parts_of(&t[i], &type[i]);
        if (p == 0 || (i == STEP ? p != 1 : i == THETA ? 0 : p != parts)) return 0;
        if (i == THETA) parts = p;
        if (i != THETA && i != STEP && !same_layout(&t[i], &t[THETA])) return 0;
    }
    int64_t size = dense_size(&t[THETA]);
    int32_t state = type[THETA] == F64 ? F64 : F32;
    if (size < 0 || type[M] != state || type[V] != state || type[S] != state) return 0;
    if (state == F64 && type[G] != F64) return 0;
    if (type[STEP] != F32 || t[STEP].ndim != 0) return 0;
    row->theta = (char *)t[THETA].data + t[THETA].byte_offset;
    row->g = (char *)t[G].data + t[G].byte_offset;
    row->m = (char *)t[M].data + t[M].byte_offset;
    row->v = (char *)t[V].data + t[V].byte_offset;
    row->s = (char *)t[S].data + t[S].byte_offset;
    row->step = (float *)((char *)t[STEP].data + t[STEP].byte_offset);
    row->n = size * parts;
    row->theta_type = type[THETA];
    row->g_type = type[G];
    row->state_type = state;
    return 1;
}

/* Describe `count` tensors, given as six columns of objects; returns how many the kernel can take.
 * The caller holds the interpreter's lock. */
EXPORT int64_t hvadam_describe(int64_t count, void **columns[6], describe_fn *describe,
                               clear_error_fn *clear_error, row_t *rows)
{
    int64_t taken = 0;
    for (int64_t i = 0; i < count; i++) {
        void *objects[6];
        for (int column = 0; column < 6; column++) objects[column] = columns[column][i];
        rows[i].fits = describe_row(objects, describe, clear_error, &rows[i]);
        taken += rows[i].fits;
    }
    return taken;
}

/* ---- the two passes ---- */

typedef struct {
    int64_t row, start, n;
} task_t;

/* Cut the rows into blocks; NULL if there is no memory for the list. */
static task_t *cut(int64_t count, const row_t *rows, int64_t *tasks_out)
{
    int64_t tasks = 0;
    for (int64_t i = 0; i < count; i++) tasks += (rows[i].n + BLOCK - 1) / BLOCK;
    task_t *list = malloc((size_t)(tasks + 1) * sizeof *list);
    *tasks_out = tasks;
    if (!list) return NULL;
    task_t *next = list;
    for (int64_t i = 0; i < count; i++)
        for (int64_t start = 0; start < rows[i].n; start += BLOCK, next++)
            *next = (task_t){i, start, rows[i].n - start < BLOCK ? rows[i].n - start : BLOCK};
    return list;
}

/* Count the step of every tensor, update m and s, and add to dots[scope][4]. Returns 0, or -1 if
 * there is no memory, before anything changed. */
EXPORT int hvadam_accumulate(int64_t count, row_t *rows, const group_t *o, double *dots, int threads)
{
    int64_t tasks;
    task_t *list = cut(count, rows, &tasks);
    double(*partial)[4] = calloc((size_t)tasks + 1, sizeof *partial);
    if (!list || !partial) {
        free(list);
        free(partial);
        return -1;
    }
    float t = -1;
    double inv1 = 0, inv2 = 0;
    for (int64_t i = 0; i < count; i++) {
        *rows[i].step += 1;
        if (*rows[i].step != t) { /* most tensors share one count */
            t = *rows[i].step;
            inv1 = 1.0 / (1.0 - pow(o->beta1, t));
            inv2 = 1.0 / (1.0 - pow(o->beta2, t));
        }
        rows[i].inv1 = inv1;
        rows[i].inv2 = inv2;
    }
    accumulate_fn *accumulate = ACCUMULATE[instruction_set];
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < tasks; i++) {
        accumulate(&rows[list[i].row], o, list[i].start, list[i].n, partial[i]);
    }
    for (int64_t i = 0; i < tasks; i++)
        for (int k = 0; k < 4; k++) dots[rows[list[i].row].scope * 4 + k] += partial[i][k];
    free(list);
    free(partial);
    return 0;
}

/* Move v and theta, with one mix and one gain per scope. */
EXPORT int hvadam_apply(int64_t count, const row_t *rows, const group_t *o, const double *mix,
                        const double *gain, int threads)
{
    int64_t tasks;
    task_t *list = cut(count, rows, &tasks);
    if (!list) return -1;
    apply_fn *apply = APPLY[instruction_set];
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < tasks; i++) {
        const row_t *row = &rows[list[i].row];
        apply(row, o, list[i].start, list[i].n, 1.0 - mix[row->scope],
              o->lr * o->hidden_scale * gain[row->scope]);
    }
    free(list);
    return 0;
}
