/* The arithmetic of a step on vectors of one type; included once for float and once for double.
 *
 * Legend, as in batch.py: theta parameters, g gradients, m their average, v the hidden vector, s
 * the preconditioner; inv1 = 1/bias1 and inv2 = 1/bias2 correct the bias of m and s.
 */

enum { NAME(WIDTH) = 32 / sizeof(REAL) }; /* elements in a vector */
typedef REAL NAME(vector_t) __attribute__((vector_size(32)));
typedef REAL NAME(part_t) __attribute__((vector_size(LANES * sizeof(REAL))));

/* What the passes read of a tensor and its options; a copy of its own, which no store can change. */
typedef struct {
    REAL one_beta1, beta2, one_beta2, eps, gamma, factor, coupled_decay, inv1, inv2;
    REAL lr, keep, low, high;     /* the adaptive step */
    REAL inv1_before, weight, along; /* what is pending */
    int bounded, has_bounds;
} NAME(constants_t);

INLINE NAME(constants_t) NAME(constants)(const row_t *row, const group_t *o)
{
    NAME(constants_t) c = {
        .one_beta1 = (REAL)(1.0 - o->beta1),
        .beta2 = (REAL)o->beta2,
        .one_beta2 = (REAL)(1.0 - o->beta2),
        .eps = (REAL)o->eps,
        .gamma = (REAL)o->gamma,
        .factor = (REAL)o->factor,
        .coupled_decay = (REAL)o->coupled_decay,
        .inv1 = (REAL)row->inv1,
        .inv2 = (REAL)row->inv2,
        .lr = (REAL)o->lr,
        .keep = (REAL)(1.0 - o->lr * o->decay),
        .low = (REAL)o->low,
        .high = (REAL)o->high,
        .inv1_before = (REAL)row->inv1_before,
        .weight = (REAL)row->weight,
        .along = (REAL)row->along,
        .bounded = o->bounded != 0,
        .has_bounds = o->has_bounds && row->along != 0, /* what does not move is not projected */
    };
    return c;
}

/* The dots of one vector, added lane by lane in double. The difference is taken in double too:
 * rounded to float it would cost half the cosine's digits where v and m_hat are nearly parallel. */
INLINE void NAME(dot)(const NAME(vector_t) *m_hat, const NAME(vector_t) *v, lanes_t sums[4])
{
    for (int part = 0; part < NAME(WIDTH) / LANES; part++) {
        NAME(part_t) m_part, v_part;
        memcpy(&m_part, (const char *)m_hat + part * sizeof m_part, sizeof m_part);
        memcpy(&v_part, (const char *)v + part * sizeof v_part, sizeof v_part);
        lanes_t a = WIDEN(m_part), b = WIDEN(v_part);
        lanes_t d = b - a;
        sums[0] += d * d;
        sums[1] += d * b;
        sums[2] += a * a;
        sums[3] += b * b;
    }
}

INLINE void NAME(fold)(lanes_t sums[4], double *dots)
{
    for (int k = 0; k < 4; k++)
        for (int lane = 0; lane < LANES; lane++) dots[k] += sums[k][lane];
}

INLINE void NAME(clamp)(NAME(vector_t) *x, REAL low, REAL high) /* NaN passes, as in torch.clamp */
{
    for (int lane = 0; lane < NAME(WIDTH); lane++) {
        REAL y = (*x)[lane];
        y = y < low ? low : y;
        (*x)[lane] = y > high ? high : y;
    }
}

/* What is pending: v has moved already; the step along it, and the projection. */
INLINE void NAME(settle_vector)(NAME(vector_t) *theta, NAME(vector_t) v, const NAME(constants_t) *c)
{
    if (c->along != 0) *theta -= c->along * v;
    if (c->has_bounds) NAME(clamp)(theta, c->low, c->high);
}

/* m and s from the gradient x. */
INLINE void NAME(average_vector)(NAME(vector_t) x, NAME(vector_t) theta, NAME(vector_t) *m,
                                 NAME(vector_t) v, NAME(vector_t) *s, const NAME(constants_t) *c,
                                 int adam, int coupled)
{
    x *= c->factor;
    if (coupled) x += c->coupled_decay * theta;
    *m += c->one_beta1 * (x - *m);
    if (adam) {
        *s = c->beta2 * *s + c->one_beta2 * x * x;
    } else {
        NAME(vector_t) dev_v = (x - v) * (x - v), dev_m = (x - *m) * (x - *m);
        NAME(vector_t) ratio = dev_v / (dev_m + c->gamma * dev_v + c->eps);
        *s = c->beta2 * *s + c->one_beta2 * (ratio * dev_v) + c->eps;
    }
}

/* The adaptive step, and the projection. */
INLINE void NAME(adapt_vector)(NAME(vector_t) *theta, NAME(vector_t) m_hat, NAME(vector_t) s,
                               const NAME(constants_t) *c)
{
    if (c->lr == 0) return; /* no rate, no move, whatever the step is */
    *theta = *theta * c->keep - c->lr * (m_hat / (ROOT(s * c->inv2) + c->eps));
    if (c->bounded) NAME(clamp)(theta, c->low, c->high);
}

/* One vector of the first pass: m and s from g, and the dots. The late step does before what is
 * pending, and after it the adaptive step. */
INLINE void NAME(first_pass_vector)(REAL *theta, const REAL *g, REAL *m, REAL *v, REAL *s,
                                    const NAME(constants_t) *c, int adam, int coupled, int late,
                                    int dotted, lanes_t sums[4])
{
    NAME(vector_t) x, m_, v_, s_, theta_ = {0};
    memcpy(&x, g, sizeof x);
    memcpy(&m_, m, sizeof m_);
    memcpy(&v_, v, sizeof v_);
    memcpy(&s_, s, sizeof s_);
    if (coupled || late) memcpy(&theta_, theta, sizeof theta_);
    if (late) {
        v_ += c->weight * (m_ * c->inv1_before - v_);
        memcpy(v, &v_, sizeof v_);
        NAME(settle_vector)(&theta_, v_, c);
    }
    NAME(average_vector)(x, theta_, &m_, v_, &s_, c, adam, coupled);
    memcpy(m, &m_, sizeof m_);
    memcpy(s, &s_, sizeof s_);
    m_ *= c->inv1;
    if (late) {
        NAME(adapt_vector)(&theta_, m_, s_, c);
        memcpy(theta, &theta_, sizeof theta_);
    }
    if (dotted) NAME(dot)(&m_, &v_, sums);
}

INLINE void NAME(first_pass_as)(int64_t n, REAL *theta, const REAL *g, REAL *m, REAL *v, REAL *s,
                                NAME(constants_t) c, int adam, int coupled, int late, int dotted,
                                double *dots)
{
    enum { WIDTH = NAME(WIDTH) };
    lanes_t sums[4] = {{0}};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        NAME(first_pass_vector)(theta + i, g + i, m + i, v + i, s + i, &c, adam, coupled, late,
                                dotted, sums);
    if (i < n) { /* the rest, padded with zeros, which stay zero and add nothing */
        REAL rest[5][WIDTH] = {{0}};
        size_t size = (size_t)(n - i) * sizeof(REAL);
        memcpy(rest[0], theta + i, size);
        memcpy(rest[1], g + i, size);
        memcpy(rest[2], m + i, size);
        memcpy(rest[3], v + i, size);
        memcpy(rest[4], s + i, size);
        NAME(first_pass_vector)(rest[0], rest[1], rest[2], rest[3], rest[4], &c, adam, coupled, late,
                                dotted, sums);
        if (late) memcpy(theta + i, rest[0], size);
        memcpy(m + i, rest[2], size);
        if (late) memcpy(v + i, rest[3], size);
        memcpy(s + i, rest[4], size);
    }
    if (dotted) NAME(fold)(sums, dots);
}

/* m and s from g; adds |v-m_hat|^2, <v-m_hat,v>, |m_hat|^2, |v|^2 to dots. */
INLINE void NAME(first_pass)(int64_t n, REAL *theta, const REAL *g, REAL *m, REAL *v, REAL *s,
                             NAME(constants_t) c, int adam, int coupled, int late, double *dots)
{
    if (adam)
        NAME(first_pass_as)(n, theta, g, m, v, s, c, 1, coupled, late, 1, dots);
    else if (coupled)
        NAME(first_pass_as)(n, theta, g, m, v, s, c, 0, 1, late, 1, dots);
    else if (late)
        NAME(first_pass_as)(n, theta, g, m, v, s, c, 0, 0, 1, 1, dots);
    else
        NAME(first_pass_as)(n, theta, g, m, v, s, c, 0, 0, 0, 1, dots);
}

/* The dots alone, for state that was rounded after its update. */
INLINE void NAME(dots)(int64_t n, const REAL *m, const REAL *v, REAL inv1, double *dots)
{
    enum { WIDTH = NAME(WIDTH) };
    lanes_t sums[4] = {{0}};
    NAME(vector_t) m_ = {0}, v_ = {0};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        memcpy(&m_, m + i, sizeof m_);
        memcpy(&v_, v + i, sizeof v_);
        m_ *= inv1;
        NAME(dot)(&m_, &v_, sums);
    }
    if (i < n) {
        m_ = v_ = (NAME(vector_t)){0};
        memcpy(&m_, m + i, (size_t)(n - i) * sizeof(REAL));
        memcpy(&v_, v + i, (size_t)(n - i) * sizeof(REAL));
        m_ *= inv1;
        NAME(dot)(&m_, &v_, sums);
    }
    NAME(fold)(sums, dots);
}

/* v += weight (m_hat - v). */
INLINE void NAME(move_hidden)(int64_t n, const REAL *restrict m, REAL *restrict v, REAL inv1,
                              REAL weight)
{
    for (int64_t i = 0; i < n; i++) v[i] += weight * (m[i] * inv1 - v[i]);
}

/* v += weight (m_hat - v); theta = keep theta - lr m_hat / (sqrt(s_hat) + eps) - along v. */
INLINE void NAME(second_pass)(int64_t n, REAL *restrict theta, const REAL *restrict m,
                              REAL *restrict v, const REAL *restrict s, NAME(constants_t) c,
                              REAL weight, REAL along)
{
    const REAL inv1 = c.inv1, inv2 = c.inv2, keep = c.keep, lr = c.lr, eps = c.eps;
    if (lr == 0 && along == 0 && !c.bounded) { /* no rate, no move, whatever the step is */
        NAME(move_hidden)(n, m, v, inv1, weight);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        REAL m_hat = m[i] * inv1;
        REAL v_new = v[i] + weight * (m_hat - v[i]);
        REAL x = theta[i] * keep - lr * (m_hat / (SQRT(s[i] * inv2) + eps)) - along * v_new;
        v[i] = v_new;
        theta[i] = x;
    }
    if (c.bounded) {
        for (int64_t i = 0; i < n; i++) { /* NaN passes, as in torch.clamp */
            REAL x = theta[i];
            x = x < c.low ? c.low : x;
            theta[i] = x > c.high ? c.high : x;
        }
    }
}

/* The pending step along v, which moved already, and the projection. */
INLINE void NAME(settle)(int64_t n, REAL *restrict theta, const REAL *restrict v,
                         NAME(constants_t) c)
{
    if (c.along == 0) return;
    for (int64_t i = 0; i < n; i++) theta[i] -= c.along * v[i];
    if (c.has_bounds) {
        for (int64_t i = 0; i < n; i++) {
            REAL x = theta[i];
            x = x < c.low ? c.low : x;
            theta[i] = x > c.high ? c.high : x;
        }
    }
}
