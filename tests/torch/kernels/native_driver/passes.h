/* The passes: every type and option, at every instruction set, thread count and kind of size. */

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
    for (int options = 0; options < 8; options++) {
        case_t c = {.adam = options & 1, .coupled = options >> 1 & 1, .bounds = options >> 2 & 1};
        for (c.offset = 0; c.offset < 2; c.offset++) {
            c.wild = c.offset ^ (options & 1); /* each with each, but not at every option */
            run_types(c, small, count);
        }
    }
    for (int wild = 0; wild < 2; wild++) {
        case_t c = {.wild = wild, .offset = !wild};
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
        EXPECT(hvadam_first(1, table->rows, &o, table->dots[0], 1) == -1, "first");
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
