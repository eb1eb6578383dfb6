/* HVAdam's two passes for CPUs: plain C ABI, called through ctypes.
 *
 * Tensors are cut into fixed blocks, blocks are shared out to threads, and the partial dots of the
 * blocks are added in their own order: the result has the same bits whatever the thread count.
 * Memory that is not of the compute type (half precision) passes through buffers that stay in the
 * first-level cache.
 */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = 16384, /* elements that one task takes */
       SUB = 1024,    /* elements that one pass over the first-level cache takes */
       LANES = 4,     /* doubles that are added side by side */
       STATE_BLOCK = 256, /* elements of 8-bit state that share a scale */
       SHARING = 64 };    /* elements of low-bit state that share random words */
#ifndef SMALL_WORK
#define SMALL_WORK (1 << 16) /* elements: below, waking other threads costs more than it saves */
#endif
enum { INFINITE = 0x7f800000 }; /* the bits of a float that is infinite */
enum { F32, F64, BF16, F16, I8, U8, TYPES };

/* A param group's options, doubles first; mirrored in native.py. */
typedef struct {
    double lr, beta1, beta2, eps, gamma, decay, coupled_decay, hidden_scale, low, high, factor;
    int64_t adam, bounded, seed;
} group_t;

/* One tensor; mirrored in native.py. */
typedef struct {
    char *theta, *g, *m, *v, *s;
    float *step, *m_scales, *v_scales, *s_scales;
    int64_t n, scope, index;
    int32_t theta_type, g_type, state_type, fits;
    double inv1, inv2; /* 1/bias1 and 1/bias2 */
} row_t;

/* What a group's options ask of a pass. */
enum { ADAM = 1,      /* Adam's preconditioner */
       COUPLED = 2,   /* weight decay in the gradient */
       STILL = 4,     /* the learning rate is 0: no step */
       BOUNDED = 8,   /* project after the step */
       SWIFT = 16,    /* beta1 is below 1/2: m ends nearer to g than to what it was */
       FAR = 32 };    /* and v nearer to m_hat */

/* Sums of float squares to be trusted: whatever underflowed is far below 1e-7 of them. */
#define IN_RANGE(x) ((x) >= 0x1p-100 && (x) <= FLT_MAX)

typedef double lanes_t __attribute__((vector_size(LANES * sizeof(double))));
typedef float quad_t __attribute__((vector_size(LANES * sizeof(float))));

/* Whether dots in lanes of float can be trusted:
 * - n elements are enough for roundings to cancel;
 * - what squares lost to the range of float is nothing beside them;
 * - v and m_hat are not parallel. The cosine follows from the foot of the perpendicular on their
 *   line, |v|^2 - <d,v>^2 / |d|^2, of which nothing but roundings would be left. If all of a vector
 *   is like that, so is every part of it, so each can be asked by itself. */
static int are_trusted(int64_t n, const double dots[4])
{
    if (n < SUB || !IN_RANGE(dots[0]) || !IN_RANGE(dots[2]) || !IN_RANGE(dots[3])) return 0;
    return dots[3] - dots[1] * dots[1] / dots[0] > 1e-2 * fmin(dots[2], dots[3]);
}

static inline void add_dots(const double own[4], double dots[4])
{
    for (int k = 0; k < 4; k++) dots[k] += own[k];
}

#include "native_storage.h"

/* ---- the kernel, compiled for each instruction set ---- */

enum { BASELINE, AVX2, AVX512 };
typedef void first_fn(const row_t *, const group_t *, int64_t, int64_t, double *);
typedef void second_fn(const row_t *, const group_t *, int64_t, int64_t, double, double);
typedef double squares_fn(const row_t *, int64_t, int64_t);

#define PARTS (64 / WIDE) /* vectors that make a group of sixteen floats */
#define FOR(x) x##_baseline
#define HAS_AVX2 0
#define WIDE 32
#include "native_block.h"
#undef FOR
#undef HAS_AVX2

#if defined(__x86_64__)
#include <immintrin.h>
#define HAS_AVX2 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define FOR(x) x##_avx2
#include "native_block.h"
#undef FOR
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("fma,avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("fma,avx512f,avx512bw,avx512dq,avx512vl")
#endif
#undef WIDE
#define WIDE 64
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

#if defined(__x86_64__)
#define TABLE(type, name) static type *const name[] = {name##_baseline, name##_avx2, name##_avx512}
#else
#define TABLE(type, name) static type *const name[] = {name##_baseline}
#endif
TABLE(first_fn, first);
TABLE(second_fn, second);
TABLE(squares_fn, squares);

/* Use at most the given instruction set; returns the one that will be used. */
EXPORT int hvadam_select(int wanted)
{
    instruction_set = BASELINE;
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (wanted >= AVX2 && avx2) instruction_set = AVX2;
    if (wanted >= AVX512 && avx2 && __builtin_cpu_supports("avx512f") &&
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

/* What is needed of torch and Python: DLPack's exchange function, and two of the interpreter's. */
typedef struct {
    int (*describe)(void *object, dl_tensor_t *out);
    void (*clear_error)(void);
    void *(*item)(void *list, intptr_t index); /* not owned */
} python_t;

enum { DL_CPU = 1, DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5,
       MOST_DIMS = 16 };

/* The type, and how many of it make one element: 2 for complex numbers, 0 if it is none of ours. */
static int parts_of(const dl_tensor_t *t, int32_t *type)
{
    int code = t->dtype.code, bits = t->dtype.bits;
    if (t->dtype.lanes != 1 || t->device.type != DL_CPU) return 0;
    if (code == DL_INT && bits == 8) return *type = I8, 1;
    if (code == DL_UINT && bits == 8) return *type = U8, 1;
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
    if (a->ndim != b->ndim || !a->strides != !b->strides) return 0;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] != b->shape[i]) return 0;
        if (a->shape[i] > 1 && a->strides && a->strides[i] != b->strides[i]) return 0;
    }
    return 1;
}

enum { THETA, G, M, V, S, STEP, M_SCALES, V_SCALES, S_SCALES, COLUMNS };

static void *start_of(const dl_tensor_t *t) { return (char *)t->data + t->byte_offset; }

/* Whether its memory is there and aligned: lazy zeros and wrappers of other tensors have none. */
static int has_memory(const dl_tensor_t *t, int32_t type)
{
    uintptr_t start = (uintptr_t)t->data + t->byte_offset;
    for (int i = 0; i < t->ndim; i++)
        if (t->shape[i] == 0) return 1;
    return t->data && start % (uintptr_t)SIZE[type] == 0;
}

static int is_vector(const dl_tensor_t *t, int64_t size)
{
    return t->ndim == 1 && t->shape[0] == size && (size < 2 || !t->strides || t->strides[0] == 1);
}

/* Fill a row from its objects, NULL where there is none. Returns 0 if the kernel cannot take it, 2
 * if its elements are complex, else 1. */
static int describe_row(void **objects, const python_t *python, row_t *row)
{
    dl_tensor_t t[COLUMNS];
    int32_t type[COLUMNS] = {0};
    int parts = 1;
    for (int i = 0; i < COLUMNS; i++) {
        if (!objects[i]) continue;
        if (python->describe(objects[i], &t[i])) {
            python->clear_error();
            return 0;
        }
        int p = parts_of(&t[i], &type[i]);
        if (i == THETA) parts = p;
        if (p == 0 || p != (i < STEP ? parts : 1) || !has_memory(&t[i], type[i])) return 0;
        if (i < STEP && !same_layout(&t[i], &t[THETA])) return 0;
    }
    int64_t size = dense_size(&t[THETA]);
    if (size < 0 || type[THETA] >= I8 || type[G] >= I8) return 0;

    int32_t full = type[THETA] == F64 ? F64 : F32, state = type[M];
    int low_bit = state == BF16 || state == I8;
    if (state != full && (!low_bit || full == F64 || parts != 1)) return 0;
    if (type[V] != state || type[S] != (state == I8 ? U8 : state)) return 0;
    if (full == F64 && type[G] != F64) return 0;
    if (type[STEP] != F32 || t[STEP].ndim != 0) return 0;
    for (int i = M_SCALES; i <= S_SCALES; i++) {
        int64_t blocks = (size + STATE_BLOCK - 1) / STATE_BLOCK;
        if ((objects[i] != NULL) != (state == I8)) return 0;
        if (objects[i] && (type[i] != F32 || !is_vector(&t[i], blocks))) return 0;
    }

    row->theta = start_of(&t[THETA]);
    row->g = start_of(&t[G]);
    row->m = start_of(&t[M]);
    row->v = start_of(&t[V]);
    row->s = start_of(&t[S]);
    row->step = start_of(&t[STEP]);
    row->m_scales = objects[M_SCALES] ? start_of(&t[M_SCALES]) : NULL;
    row->v_scales = objects[V_SCALES] ? start_of(&t[V_SCALES]) : NULL;
    row->s_scales = objects[S_SCALES] ? start_of(&t[S_SCALES]) : NULL;
    row->n = size * parts;
    row->theta_type = type[THETA];
    row->g_type = type[G];
    row->state_type = state;
    return parts;
}

/* Ask for the memory of an object, and of what it points to behind its header, which for a tensor
 * is most of what describing it reads. A wrong guess costs a cache line. */
INLINE void prefetch_object(const void *object) { __builtin_prefetch(object); }
INLINE void prefetch_inside(void *const *object)
{
    enum { HEADER = 2, LINES = 3, LINE = 64 };
    for (int i = 0; i < LINES; i++) __builtin_prefetch((const char *)object[HEADER] + i * LINE);
}

/* Describe `count` tensors, given as lists of objects, NULL where one is not in use; returns how
 * many the kernel can take, and how many are complex. The caller holds the interpreter's lock. */
EXPORT int64_t hvadam_describe(int64_t count, void *lists[COLUMNS], const python_t *python,
                               int64_t *complex_out, row_t *rows)
{
    enum { AHEAD = 4 }; /* rows: enough for memory to answer */
    int64_t taken = 0;
    *complex_out = 0;
    for (int64_t i = 0; i < count; i++) {
        void *objects[COLUMNS];
        for (int k = 0; k < COLUMNS; k++) {
            objects[k] = lists[k] ? python->item(lists[k], i) : NULL;
            if (!lists[k] || i + 2 * AHEAD >= count) continue;
            prefetch_inside(python->item(lists[k], i + AHEAD));
            prefetch_object(python->item(lists[k], i + 2 * AHEAD));
        }
        rows[i].fits = describe_row(objects, python, &rows[i]);
        taken += rows[i].fits != 0;
        *complex_out += rows[i].fits == 2;
    }
    return taken;
}

/* ---- the passes ---- */

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

/* How many threads to use of those that may be. */
static int team(int64_t count, const row_t *rows, int threads)
{
    int64_t elements = 0;
    for (int64_t i = 0; i < count && elements <= SMALL_WORK; i++) elements += rows[i].n;
    return elements > SMALL_WORK ? threads : 1;
}

static double inverse_bias(double beta, double t) { return 1.0 / (1.0 - pow(beta, t)); }

/* Count the step of every tensor, and compute what follows from the count. */
static void count_step(int64_t count, row_t *rows, const group_t *o)
{
    float t = -1;
    double inv1 = 0, inv2 = 0;
    for (int64_t i = 0; i < count; i++) {
        row_t *row = &rows[i];
        *row->step += 1;
        if (*row->step != t) { /* most tensors share one count */
            t = *row->step;
            inv1 = inverse_bias(o->beta1, t);
            inv2 = inverse_bias(o->beta2, t);
        }
        row->inv1 = inv1;
        row->inv2 = inv2;
    }
}

/* The first pass: count the step, update m and s, add to dots[scope][4]. Returns 0, or -1 if there is
 * no memory, before anything changed. */
EXPORT int hvadam_first(int64_t count, row_t *rows, const group_t *o, double *dots, int threads)
{
    int64_t tasks;
    task_t *list = cut(count, rows, &tasks);
    double(*partial)[4] = calloc((size_t)tasks + 1, sizeof *partial);
    if (!list || !partial) {
        free(list);
        free(partial);
        return -1;
    }
    count_step(count, rows, o);
    threads = team(count, rows, threads);
    first_fn *pass = first[instruction_set];
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < tasks; i++)
        pass(&rows[list[i].row], o, list[i].start, list[i].n, partial[i]);
    for (int64_t i = 0; i < tasks; i++)
        for (int k = 0; k < 4; k++) dots[rows[list[i].row].scope * 4 + k] += partial[i][k];
    free(list);
    free(partial);
    return 0;
}

/* The second pass: v and theta, with one mix and one gain per scope. */
EXPORT int hvadam_second(int64_t count, const row_t *rows, const group_t *o, const double *mix_,
                         const double *gain, int threads)
{
    int64_t tasks;
    task_t *list = cut(count, rows, &tasks);
    if (!list) return -1;
    threads = team(count, rows, threads);
    second_fn *pass = second[instruction_set];
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < tasks; i++) {
        const row_t *row = &rows[list[i].row];
        pass(row, o, list[i].start, list[i].n, 1.0 - mix_[row->scope],
             o->lr * o->hidden_scale * gain[row->scope]);
    }
    free(list);
    return 0;
}

/* Add the squares of the gradients to total. */
EXPORT int hvadam_norm(int64_t count, const row_t *rows, double *total, int threads)
{
    int64_t tasks;
    task_t *list = cut(count, rows, &tasks);
    double *partial = calloc((size_t)tasks + 1, sizeof *partial);
    if (!list || !partial) {
        free(list);
        free(partial);
        return -1;
    }
    threads = team(count, rows, threads);
    squares_fn *pass = squares[instruction_set];
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < tasks; i++)
        partial[i] = pass(&rows[list[i].row], list[i].start, list[i].n);
    for (int64_t i = 0; i < tasks; i++) *total += partial[i];
    free(list);
    free(partial);
    return 0;
}
