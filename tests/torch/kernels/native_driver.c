/* Runs the native kernel without Python, for the sanitizers to watch.
 *
 * Every buffer is exactly as large as its tensor, so that a read or write beyond it by one byte is
 * seen; with an offset, tensors are aligned to their elements and no more. Beside that:
 * - all thread counts give the same bits, and so do all instruction sets that fuse multiply-adds;
 * - an element's result does not depend on where its tensor ends (the tails of vectors and blocks);
 * - half precision is rounded as the compiler rounds it;
 * - tensors are told apart by their layout, and memory that is not there is never read;
 * - without memory for its list of blocks the kernel returns before anything changes.
 */

#include <float.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int allocations_left = -1; /* until one fails; -1: none does */

static int fails(void) { return allocations_left >= 0 && allocations_left-- == 0; }
static void *try_malloc(size_t size) { return fails() ? NULL : malloc(size); }
static void *try_calloc(size_t n, size_t size) { return fails() ? NULL : calloc(n, size); }

#define malloc(size) try_malloc(size)
#define calloc(n, size) try_calloc(n, size)
#define SMALL_WORK 0 /* threads for the smallest */
#include "native.c"
#undef malloc
#undef calloc

#define EXPECT(condition, ...)                                          \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                               \
            fprintf(stderr, "\n");                                      \
            exit(1);                                                    \
        }                                                               \
    } while (0)

enum { SCOPES = 3, STEPS = 3, MOST_ROWS = 128 };

/* What is run: the types, the options, and how memory lies and what it holds. */
typedef struct {
    int theta, g, state, adam, coupled, bounds, late, offset, wild;
} case_t;

/* The buffers of one row; columns as in describe: theta, g, m, v, s, step, scales, pending. */
typedef struct {
    char *memory[COLUMNS];
} owner_t;

typedef struct {
    int64_t count;
    row_t rows[MOST_ROWS];
    owner_t owners[MOST_ROWS];
    double dots[SCOPES][4], norm;
} table_t;

/* ---- what the tensors hold: the same at the same element, whatever the tensor's size ---- */

static double fraction(uint32_t column, int64_t i) /* in [0, 1) */
{
    return mix(1000003u * column + (uint32_t)i) * 0x1p-32;
}

static double value_of(int column, int64_t i, int type, int wild)
{
    double largest = type == F64 ? DBL_MAX : type == F16 ? 65504.0 : FLT_MAX;
    const double odd[] = {INFINITY, -INFINITY, NAN,      -NAN,    largest, -largest, 0.0, -0.0,
                          1e-42,    -1e-42,    FLT_MIN,  1e-310,  1e300,   -1e300,   1e20};
    double x = 2 * fraction((uint32_t)column, i) - 1;
    if (wild && fraction(99, i + 13 * column) < 0.2)
        x = odd[(size_t)(fraction(98, i + 7 * column) * (sizeof odd / sizeof *odd))];
    return column == S ? fabs(x) : column == THETA || column == G ? x : 0.1 * x;
}

static void put(char *to, int type, int column, int64_t i, int wild)
{
    double x = value_of(column, i, type, wild);
    float narrow = (float)x;
    uint16_t half = type == BF16 ? float_to_bf16(narrow) : float_to_f16(narrow);
    if (type == F32) memcpy(to + 4 * i, &narrow, 4);
    if (type == F64) memcpy(to + 8 * i, &x, 8);
    if (type == BF16 || type == F16) memcpy(to + 2 * i, &half, 2);
    if (type == I8) to[i] = (char)(wild ? (int)(256 * fraction(97, i)) - 128 : (int)(127 * x));
    if (type == U8) to[i] = (char)(uint8_t)((wild ? 256 : 255) * fraction(96, i));
}

/* ---- tables ---- */

static char *buffer(owner_t *owner, int column, int64_t n, int type, int offset)
{
    size_t size = (size_t)(n + offset) * (size_t)SIZE[type];
    owner->memory[column] = malloc(size);
    EXPECT(owner->memory[column] || !size, "no memory for the test");
    return owner->memory[column] + offset * SIZE[type];
}

static void make_row(row_t *row, owner_t *owner, const case_t *c, int64_t n, int64_t scope)
{
    int32_t s_type = c->state == I8 ? U8 : c->state;
    const int types[5] = {c->theta, c->g, c->state, c->state, s_type};
    char **starts[5] = {&row->theta, &row->g, &row->m, &row->v, &row->s};
    float **scales[3] = {&row->m_scales, &row->v_scales, &row->s_scales};
    memset(row, 0, sizeof *row);
    memset(owner, 0, sizeof *owner);
    for (int column = 0; column < 5; column++) {
        *starts[column] = buffer(owner, column, n, types[column], c->offset);
        for (int64_t i = 0; i < n; i++) put(*starts[column], types[column], column, i, c->wild);
    }
    row->step = (float *)buffer(owner, STEP, 1, F32, c->offset);
    *row->step = 4;
    for (int k = 0; k < 3 && c->state == I8; k++) {
        int64_t blocks = (n + STATE_BLOCK - 1) / STATE_BLOCK;
        *scales[k] = (float *)buffer(owner, M_SCALES + k, blocks, F32, c->offset);
        for (int64_t i = 0; i < blocks; i++) (*scales[k])[i] = (float)(0.001 * (1 + i));
    }
    if (c->late) {
        row->pending = (double *)buffer(owner, PENDING, 2, F64, c->offset);
        row->pending[0] = 0.3;
        row->pending[1] = 0.01;
    }
    row->n = n;
    row->scope = scope;
    row->index = 7;
    row->theta_type = c->theta;
    row->g_type = c->g;
    row->state_type = c->state;
    row->fits = 1;
}

static table_t *make_table(const case_t *c, const int64_t *sizes, int64_t count)
{
    table_t *table = calloc(1, sizeof *table);
    EXPECT(table && count <= MOST_ROWS, "no memory for the test");
    table->count = count;
    for (int64_t i = 0; i < count; i++)
        make_row(&table->rows[i], &table->owners[i], c, sizes[i], i % SCOPES);
    return table;
}

static void free_table(table_t *table)
{
    for (int64_t i = 0; i < table->count; i++)
        for (int k = 0; k < COLUMNS; k++) free(table->owners[i].memory[k]);
    free(table);
}

static group_t group_of(const case_t *c)
{
    return (group_t){
        .lr = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-12,
        .gamma = 0.5,
        .decay = c->coupled ? 0.0 : 0.1,
        .coupled_decay = c->coupled ? 0.1 : 0.0,
        .hidden_scale = 0.5,
        .low = -0.25,
        .high = 0.5,
        .factor = -0.75,
        .adam = c->adam,
        .bounded = c->bounds,
        .has_bounds = c->bounds,
        .seed = 0xfedcba98,
    };
}

static void train(table_t *table, const case_t *c, int threads)
{
    const double mix_[SCOPES] = {0.8, 0.8, 0.8}, gain[SCOPES] = {2.0, 2.0, 2.0};
    group_t o = group_of(c);
    row_t *rows = table->rows;
    for (int step = 0; step < STEPS; step++) {
        int failed = hvadam_norm(table->count, rows, &table->norm, threads);
        failed |= hvadam_first(table->count, rows, &o, c->late, table->dots[0], threads);
        if (c->late)
            hvadam_defer(table->count, rows, &o, mix_, gain);
        else
            failed |= hvadam_second(table->count, rows, &o, mix_, gain, threads);
        EXPECT(!failed, "no memory for the list of blocks");
        for (int64_t i = 0; i < table->count; i++) {
            EXPECT(*rows[i].step == (float)(5 + step), "the step is not counted");
            EXPECT(!c->late || (fabs(rows[i].pending[0] - 0.2) < 1e-12 &&
                                fabs(rows[i].pending[1] - 0.01) < 1e-12),
                   "pending is (%g, %g)", rows[i].pending[0], rows[i].pending[1]);
        }
    }
}

/* ---- comparison, bit by bit; but a NaN is a NaN ---- */

static int is_nan(const char *x, int type)
{
    float narrow;
    double wide;
    uint16_t half;
    memcpy(type == F64 ? (void *)&wide : type == F32 ? (void *)&narrow : (void *)&half, x,
           (size_t)SIZE[type]);
    return type == F64    ? isnan(wide)
           : type == F32  ? isnan(narrow)
           : type == BF16 ? isnan(bf16_to_float(half))
                          : isnan(f16_to_float(half));
}

static int64_t first_difference(const char *a, const char *b, int type, int64_t n)
{
    size_t size = (size_t)SIZE[type];
    if (n == 0 || memcmp(a, b, (size_t)n * size) == 0) return -1;
    for (int64_t i = 0; i < n; i++, a += size, b += size)
        if (memcmp(a, b, size) && !(type < I8 && is_nan(a, type) && is_nan(b, type))) return i;
    return -1;
}

static void expect_same_row(const row_t *a, const row_t *b, int64_t n, const char *what)
{
    int32_t s_type = a->state_type == I8 ? U8 : a->state_type;
    int64_t blocks = (n + STATE_BLOCK - 1) / STATE_BLOCK;
    const struct { const void *a, *b; int type; int64_t n; const char *name; } columns[] = {
        {a->theta, b->theta, a->theta_type, n, "theta"},
        {a->m, b->m, a->state_type, n, "m"},
        {a->v, b->v, a->state_type, n, "v"},
        {a->s, b->s, s_type, n, "s"},
        {a->m_scales, b->m_scales, F32, a->m_scales ? blocks : 0, "the scales of m"},
        {a->v_scales, b->v_scales, F32, a->v_scales ? blocks : 0, "the scales of v"},
        {a->s_scales, b->s_scales, F32, a->s_scales ? blocks : 0, "the scales of s"},
    };
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        int64_t at = first_difference(columns[k].a, columns[k].b, columns[k].type, columns[k].n);
        EXPECT(at < 0, "%s: %s differs at %lld of %lld (types %d %d %d)", what, columns[k].name,
               (long long)at, (long long)n, a->theta_type, a->g_type, a->state_type);
    }
}

static void expect_same_table(const table_t *a, const table_t *b, const char *what)
{
    for (int64_t i = 0; i < a->count; i++)
        expect_same_row(&a->rows[i], &b->rows[i], a->rows[i].n, what);
    int64_t at = first_difference((const char *)a->dots, (const char *)b->dots, F64, 4 * SCOPES);
    EXPECT(at < 0, "%s: dot %lld differs", what, (long long)at);
    at = first_difference((const char *)&a->norm, (const char *)&b->norm, F64, 1);
    EXPECT(at < 0, "%s: the norm differs: %a, %a", what, a->norm, b->norm);
}

/* ---- the passes ---- */

/* One instruction set, at several thread counts and tensor sizes. */
static table_t *run_set(const case_t *c, const int64_t *sizes, int64_t count, int set)
{
    EXPECT(hvadam_select(set) == set, "instruction set %d", set);
    table_t *expected = make_table(c, sizes, count), *actual = make_table(c, sizes, count);
    train(expected, c, 1);
    train(actual, c, 3);
    expect_same_table(actual, expected, "threads");
    free_table(actual);
    const row_t *longest = &expected->rows[count - 1];
    for (int64_t i = 0; i < count; i++) { /* 8-bit: the last block's scale covers all of it */
        const row_t *row = &expected->rows[i];
        int64_t n = c->state == I8 ? row->n / STATE_BLOCK * STATE_BLOCK : row->n;
        expect_same_row(row, longest, n, "beside a longer tensor");
    }
    return expected;
}

static void run_case(const case_t *c, const int64_t *sizes, int64_t count)
{
    int best = hvadam_select(AVX512);
    table_t *fused = NULL;
    for (int set = BASELINE; set <= best; set++) {
        table_t *found = run_set(c, sizes, count, set);
        if (fused) expect_same_table(found, fused, "instruction set");
        if (set == BASELINE || fused)
            free_table(found);
        else
            fused = found;
    }
    if (fused) free_table(fused);
}

static void run_types(case_t c, const int64_t *sizes, int64_t count)
{
    const int thetas[] = {F32, BF16, F16}, states[] = {F32, BF16, I8}, gs[] = {F32, F64, BF16, F16};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) {
                c.theta = thetas[i];
                c.state = states[j];
                c.g = gs[k];
                run_case(&c, sizes, count);
            }
    c.theta = c.g = c.state = F64;
    run_case(&c, sizes, count);
}

static void run_passes(void)
{
    int64_t small[MOST_ROWS], count = 0;
    for (int64_t n = 0; n <= 17; n++) small[count++] = n;
    const int64_t edges[] = {32, STATE_BLOCK, SUB, 4 * SUB};
    for (size_t k = 0; k < sizeof edges / sizeof *edges; k++)
        for (int64_t n = edges[k] - 1; n <= edges[k] + 1; n++) small[count++] = n;
    const int64_t large[] = {BLOCK - 3, BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 3, 2 * BLOCK + 1};
    for (int options = 0; options < 16; options++) {
        case_t c = {.adam = options & 1, .coupled = options >> 1 & 1, .bounds = options >> 2 & 1,
                    .late = options >> 3 & 1};
        for (c.offset = 0; c.offset < 2; c.offset++) {
            c.wild = c.offset ^ (options & 1); /* each with each, but not at every option */
            run_types(c, small, count);
        }
    }
    for (int options = 0; options < 4; options++) {
        case_t c = {.late = options & 1, .wild = options >> 1, .offset = options >> 1 ^ 1};
        const int types[][3] = {{F32, F32, F32}, {F64, F64, F64}, {BF16, F16, BF16}, {F16, F64, I8}};
        for (int k = 0; k < 4; k++) {
            c.theta = types[k][0];
            c.g = types[k][1];
            c.state = types[k][2];
            run_case(&c, large, sizeof large / sizeof *large);
        }
    }
    run_case(&(case_t){0}, small, 1); /* one empty tensor alone */
}

static void run_without_memory(void)
{
    const int64_t size = 10;
    case_t c = {0};
    group_t o = group_of(&c);
    double mix_ = 0.5, gain = 1.0, total = 0;
    for (int left = 0; left < 2; left++) {
        table_t *table = make_table(&c, &size, 1), *untouched = make_table(&c, &size, 1);
        allocations_left = left;
        EXPECT(hvadam_first(1, table->rows, &o, 0, table->dots[0], 1) == -1, "first");
        allocations_left = left;
        EXPECT(hvadam_norm(1, table->rows, &total, 1) == -1 && total == 0, "norm");
        allocations_left = 0;
        EXPECT(hvadam_second(1, table->rows, &o, &mix_, &gain, 1) == -1, "second");
        allocations_left = -1;
        expect_same_table(table, untouched, "without memory");
        EXPECT(*table->rows[0].step == 4, "the step was counted");
        free_table(table);
        free_table(untouched);
    }
}

/* ---- half precision ---- */

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

/* ---- descriptions ---- */

typedef struct {
    dl_tensor_t t;
    int64_t shape[20], strides[20];
    int refused;
} fake_t;

static int errors_cleared;

static int fake_describe(void *object, dl_tensor_t *out)
{
    const fake_t *fake = object;
    if (fake->refused) return -1;
    *out = fake->t;
    return 0;
}

static void fake_clear(void) { errors_cleared++; }

static void *fake_item(void *list, intptr_t index) { return ((void **)list)[index]; }

static void set(fake_t *fake, int type, int ndim, const int64_t *shape, const int64_t *strides)
{
    const uint8_t codes[TYPES] = {DL_FLOAT, DL_FLOAT, DL_BFLOAT, DL_FLOAT, DL_INT, DL_UINT};
    memset(&fake->t, 0, sizeof fake->t);
    fake->t.device.type = DL_CPU;
    fake->t.dtype.code = codes[type];
    fake->t.dtype.bits = (uint8_t)(8 * SIZE[type]);
    fake->t.dtype.lanes = 1;
    fake->t.ndim = ndim;
    for (int i = 0; i < ndim; i++) fake->shape[i] = shape[i];
    for (int i = 0; i < ndim && strides; i++) fake->strides[i] = strides[i];
    fake->t.shape = ndim ? fake->shape : NULL;
    fake->t.strides = strides ? fake->strides : NULL;
}

/* A tensor of every column, of one layout and `parts` numbers per element; memory of exactly the
 * size that `elements` needs, so that what is taken by mistake is read out of bounds. */
typedef struct {
    fake_t column[COLUMNS];
    int present[COLUMNS];
    owner_t owner;
} model_t;

static model_t *make_model(int state, int64_t elements, int ndim, const int64_t *shape,
                           const int64_t *strides)
{
    model_t *model = calloc(1, sizeof *model);
    EXPECT(model, "no memory for the test");
    int64_t blocks = (elements + STATE_BLOCK - 1) / STATE_BLOCK, one = 1, two = 2;
    int full = state == F64 ? F64 : F32;
    const int types[COLUMNS] = {full, full, state, state, state == I8 ? U8 : state,
                                F32,  F32,  F32,   F32,   F64};
    for (int k = 0; k < COLUMNS; k++) {
        int64_t n = k < STEP ? elements : k == STEP ? 1 : k == PENDING ? 2 : blocks;
        model->present[k] = k <= STEP || k == PENDING || state == I8;
        if (k < STEP)
            set(&model->column[k], types[k], ndim, shape, strides);
        else if (k == STEP)
            set(&model->column[k], types[k], 0, NULL, NULL);
        else
            set(&model->column[k], types[k], 1, k == PENDING ? &two : &blocks, &one);
        char *start = buffer(&model->owner, k, n, types[k], 0);
        if (n) memset(start, 0, (size_t)(n * SIZE[types[k]]));
        model->column[k].t.data = n ? start : NULL;
    }
    return model;
}

/* Describe it, step if it is taken, and let it go. */
static void expect_size(const char *name, model_t *model, int64_t expected)
{
    enum { COUNT = 12 }; /* of the same: some are asked for ahead of time */
    const python_t python = {fake_describe, fake_clear, fake_item};
    void *objects[COLUMNS][COUNT], *lists[COLUMNS];
    row_t rows[COUNT] = {{0}};
    for (int k = 0; k < COLUMNS; k++) {
        for (int i = 0; i < COUNT; i++) objects[k][i] = &model->column[k];
        lists[k] = model->present[k] ? objects[k] : NULL;
    }
    int64_t complex_rows, taken = hvadam_describe(COUNT, lists, &python, &complex_rows, rows);
    row_t row = rows[COUNT - 1];
    EXPECT(taken == (expected >= 0 ? COUNT : 0) && !taken == !row.fits, "%s: taken is %d", name,
           (int)taken);
    int complex = model->column[THETA].t.dtype.code == DL_COMPLEX;
    EXPECT(!taken || row.fits == 1 + complex, "%s: fits is %d", name, row.fits);
    EXPECT(complex_rows == (taken && complex ? COUNT : 0), "%s: %d complex", name,
           (int)complex_rows);
    EXPECT(!taken || row.n == expected, "%s: %lld numbers", name, (long long)row.n);
    if (taken) {
        case_t c = {.late = row.pending != NULL};
        group_t o = group_of(&c);
        double dots[4] = {0}, mix_ = 0.5, gain = 1.0, total = 0;
        int failed = hvadam_norm(1, &row, &total, 1);
        failed |= hvadam_first(1, &row, &o, c.late, dots, 1);
        failed |= hvadam_second(1, &row, &o, &mix_, &gain, 1);
        EXPECT(!failed, "%s", name);
    }
    for (int k = 0; k < COLUMNS; k++) free(model->owner.memory[k]);
    free(model);
}

static void run_layouts(void)
{
    const int64_t far = INT64_MAX / 2;
    const struct {
        const char *name;
        int ndim;
        int64_t shape[20], strides[20], expected;
        int no_strides;
    } layouts[] = {
        {"0-dim", 0, {0}, {0}, 1, 0},
        {"0-dim without strides", 0, {0}, {0}, 1, 1},
        {"without strides", 3, {2, 3, 4}, {0}, 24, 1},
        {"contiguous", 3, {2, 3, 4}, {12, 4, 1}, 24, 0},
        {"transposed", 2, {3, 5}, {1, 3}, 15, 0},
        {"channels last", 4, {2, 3, 4, 5}, {60, 1, 15, 3}, 120, 0},
        {"16 dimensions", 16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2},
         {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 2, 1}, 8, 0},
        {"17 dimensions", 17, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2},
         {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 2, 1}, -1, 0},
        {"a lone element anywhere", 4, {1, 4, 1, 1}, {far, 1, -far, 0}, 4, 0},
        {"empty", 3, {2, 0, 3}, {far, -5, 0}, 0, 0},
        {"empty without strides", 1, {0}, {0}, 0, 1},
        {"expanded", 2, {4, 3}, {0, 1}, -1, 0},
        {"expanded whole", 1, {4}, {0}, -1, 0},
        {"backwards", 1, {4}, {-1}, -1, 0},
        {"backwards, one way", 2, {2, 2}, {-2, 1}, -1, 0},
        {"every other", 1, {4}, {2}, -1, 0},
        {"rows with gaps", 2, {2, 3}, {4, 1}, -1, 0},
        {"overlapping", 2, {2, 2}, {1, 1}, -1, 0},
        {"overlapping rows", 2, {3, 2}, {1, 2}, -1, 0},
    };
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        const int64_t *strides = layouts[k].no_strides ? NULL : layouts[k].strides;
        int64_t size = layouts[k].expected < 0 ? 1 : layouts[k].expected;
        const int states[] = {F32, F64, BF16, I8};
        for (int i = 0; i < 4; i++)
            expect_size(layouts[k].name,
                        make_model(states[i], size, layouts[k].ndim, layouts[k].shape, strides),
                        layouts[k].expected);
    }
}

#define BROKEN(name, state, change)                                              \
    do {                                                                         \
        model_t *x = make_model(state, 6, 2, (int64_t[]){2, 3}, (int64_t[]){3, 1}); \
        fake_t *column = x->column;                                              \
        (void)column;                                                            \
        change;                                                                  \
        expect_size(name, x, -1);                                                \
    } while (0)

static void run_misfits(void)
{
    const int64_t one = 1, two = 2;
    for (int k = 0; k < COLUMNS; k++) {
        int last = errors_cleared;
        BROKEN("refused", I8, column[k].refused = 1);
        EXPECT(errors_cleared > last, "the error stays");
        BROKEN("no memory", I8, column[k].t.data = NULL);
        BROKEN("another device", I8, column[k].t.device.type = 2);
        BROKEN("vectors", I8, column[k].t.dtype.lanes = 4);
        BROKEN("a type of nobody's", I8, column[k].t.dtype.bits = 24);
        if (SIZE[k == PENDING ? F64 : F32] > 1 && k != M && k != V && k != S)
            BROKEN("misaligned", I8, column[k].t.byte_offset = 1);
    }
    for (int k = M_SCALES; k <= S_SCALES; k++) {
        BROKEN("no scales", I8, x->present[k] = 0);
        BROKEN("scales for nothing", BF16, x->present[k] = 1);
        BROKEN("scales of another length", I8, column[k].shape[0] = 2);
        BROKEN("scales of another type", I8, set(&column[k], F64, 1, &one, &one));
        BROKEN("scales as a table", I8, column[k].t.ndim = 2);
    }
    for (int k = THETA; k <= S; k++) {
        BROKEN("another shape", F32, column[k].shape[1] = 2);
        BROKEN("fewer dimensions", F32, column[k].t.ndim = 1);
        BROKEN("another layout", F32, (column[k].strides[0] = 1, column[k].strides[1] = 2));
        BROKEN("strides in one of them", F32, column[k].t.strides = NULL);
        BROKEN("complex in one of them", F32,
               (column[k].t.dtype.code = DL_COMPLEX, column[k].t.dtype.bits = 64));
        BROKEN("integers", F32, column[k].t.dtype.code = DL_INT);
    }
    BROKEN("steps in a vector", F32, set(&column[STEP], F32, 1, &one, &one));
    BROKEN("steps in double", F32, column[STEP].t.dtype.bits = 64);
    BROKEN("one number pending", F32, column[PENDING].shape[0] = 1);
    BROKEN("pending with a gap", F32, column[PENDING].strides[0] = two);
    BROKEN("pending in float", F32, set(&column[PENDING], F32, 1, &two, &one));
    BROKEN("v in another type", BF16, set(&column[V], F32, 2, column[M].shape, column[M].strides));
    BROKEN("s in another type", BF16, set(&column[S], F32, 2, column[M].shape, column[M].strides));
    BROKEN("s with a sign", I8, set(&column[S], I8, 2, column[M].shape, column[M].strides));
    BROKEN("state in half precision", F32, for (int k = M; k <= S; k++)
           set(&column[k], F16, 2, column[k].shape, column[k].strides));
    BROKEN("double beside float", F64, set(&column[G], F32, 2, column[M].shape, column[M].strides));
    BROKEN("low bits beside double", BF16, for (int k = THETA; k <= G; k++)
           set(&column[k], F64, 2, column[k].shape, column[k].strides));
    BROKEN("8-bit parameters", F32, set(&column[THETA], I8, 2, column[M].shape, column[M].strides));
    BROKEN("8-bit gradients", F32, set(&column[G], U8, 2, column[M].shape, column[M].strides));

    model_t *complex = make_model(F32, 12, 1, (int64_t[]){6}, (int64_t[]){1});
    for (int k = THETA; k <= S; k++) {
        complex->column[k].t.dtype.code = DL_COMPLEX;
        complex->column[k].t.dtype.bits = 64;
    }
    expect_size("complex", complex, 12);
    model_t *later = make_model(F32, 6, 1, (int64_t[]){4}, (int64_t[]){1});
    for (int k = THETA; k <= S; k++) later->column[k].t.byte_offset = 8;
    expect_size("from the third element on", later, 4);
}

int main(void)
{
    run_conversions();
    run_layouts();
    run_misfits();
    run_without_memory();
    run_passes();
    puts("all is well");
    return 0;
}
