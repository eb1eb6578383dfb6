/* Descriptions: tensors are told apart by their layout, and what does not fit is not read. */

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
    int64_t blocks = (elements + STATE_BLOCK - 1) / STATE_BLOCK, one = 1;
    int full = state == F64 ? F64 : F32;
    const int types[COLUMNS] = {full, full, state, state, state == I8 ? U8 : state,
                                F32,  F32,  F32,   F32};
    for (int k = 0; k < COLUMNS; k++) {
        int64_t n = k < STEP ? elements : k == STEP ? 1 : blocks;
        model->present[k] = k <= STEP || state == I8;
        if (k < STEP)
            set(&model->column[k], types[k], ndim, shape, strides);
        else if (k == STEP)
            set(&model->column[k], types[k], 0, NULL, NULL);
        else
            set(&model->column[k], types[k], 1, &blocks, &one);
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
        case_t c = {0};
        group_t o = group_of(&c);
        double dots[4] = {0}, mix_ = 0.5, gain = 1.0, total = 0;
        int failed = hvadam_norm(1, &row, &total, 1);
        failed |= hvadam_first(1, &row, &o, dots, 1);
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
    const int64_t one = 1;
    for (int k = 0; k < COLUMNS; k++) {
        int last = errors_cleared;
        BROKEN("refused", I8, column[k].refused = 1);
        EXPECT(errors_cleared > last, "the error stays");
        BROKEN("no memory", I8, column[k].t.data = NULL);
        BROKEN("another device", I8, column[k].t.device.type = 2);
        BROKEN("vectors", I8, column[k].t.dtype.lanes = 4);
        BROKEN("a type of nobody's", I8, column[k].t.dtype.bits = 24);
        if (k != M && k != V && k != S)
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
