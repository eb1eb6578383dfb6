/* Tables of tensors that the driver makes, and how two of them are compared. */

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
    int theta, g, state, adam, coupled, bounds, offset, wild;
} case_t;

/* The buffers of one row; columns as in describe: theta, g, m, v, s, step, scales. */
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
        .beta1 = c->adam ? 0.2 : 0.9, /* below 1/2 m and v move another way */
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
        .seed = 0xfedcba98,
    };
}

static void train(table_t *table, const case_t *c, int threads)
{
    const double kept = c->adam ? 0.2 : 0.8, mix_[SCOPES] = {kept, kept, kept};
    const double gain[SCOPES] = {2.0, 2.0, 2.0};
    group_t o = group_of(c);
    row_t *rows = table->rows;
    for (int step = 0; step < STEPS; step++) {
        int failed = hvadam_norm(table->count, rows, &table->norm, threads);
        failed |= hvadam_first(table->count, rows, &o, table->dots[0], threads);
        failed |= hvadam_second(table->count, rows, &o, mix_, gain, threads);
        EXPECT(!failed, "no memory for the list of blocks");
        for (int64_t i = 0; i < table->count; i++)
            EXPECT(*rows[i].step == (float)(5 + step), "the step is not counted");
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
