/* The passes over state that is kept in full, of one type; included once for float and once for
 * double, after the arithmetic.
 */

/* m and s from g, and the dots. */
INLINE void NAME(first_vector)(const REAL *theta, const REAL *g, REAL *m, const REAL *v, REAL *s,
                               const NAME(constants_t) *c, int flags, NAME(vector_t) sums[4])
{
    NAME(vector_t) x, m_, v_, s_, theta_ = {0};
    memcpy(&x, g, sizeof x);
    memcpy(&m_, m, sizeof m_);
    memcpy(&v_, v, sizeof v_);
    memcpy(&s_, s, sizeof s_);
    if (flags & COUPLED) memcpy(&theta_, theta, sizeof theta_);
    NAME(average)(x, theta_, &m_, v_, &s_, c, flags);
    memcpy(m, &m_, sizeof m_);
    memcpy(s, &s_, sizeof s_);
    NAME(dot)(m_ * c->inv1, v_, sums);
}

INLINE void NAME(first_loop)(int64_t n, const REAL *theta, const REAL *g, REAL *m, const REAL *v,
                             REAL *s, NAME(constants_t) c, int flags, NAME(vector_t) sums[4])
{
    enum { WIDTH = NAME(WIDTH) };
    NAME(vector_t) own[4] = {{0}};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        NAME(first_vector)(theta + i, g + i, m + i, v + i, s + i, &c, flags, own);
    if (i < n) { /* the rest, padded with zeros, which add nothing */
        REAL rest[5][WIDTH] = {{0}};
        size_t size = (size_t)(n - i) * sizeof(REAL);
        if (flags & COUPLED) memcpy(rest[0], theta + i, size);
        memcpy(rest[1], g + i, size);
        memcpy(rest[2], m + i, size);
        memcpy(rest[3], v + i, size);
        memcpy(rest[4], s + i, size);
        NAME(first_vector)(rest[0], rest[1], rest[2], rest[3], rest[4], &c, flags, own);
        memcpy(m + i, rest[2], size);
        memcpy(s + i, rest[4], size);
    }
    memcpy(sums, own, sizeof own);
}

/* The first pass over a part of a tensor; theta is not read unless the flags ask for it. The usual
 * flags have loops of their own, which ask nothing. Returns whether the dots can be trusted. */
static int NAME(first_pass)(int64_t n, const REAL *theta, const REAL *g, REAL *m, const REAL *v,
                            REAL *s, const NAME(constants_t) *c, double dots[4])
{
    NAME(vector_t) sums[4];
    if (c->flags == 0)
        NAME(first_loop)(n, theta, g, m, v, s, *c, 0, sums);
    else
        NAME(first_loop)(n, theta, g, m, v, s, *c, c->flags, sums);
    return NAME(fold)(sums, n, dots);
}

INLINE void NAME(second_vector)(REAL *theta, const REAL *m, REAL *v, const REAL *s,
                                const NAME(constants_t) *c, int flags)
{
    NAME(vector_t) theta_, m_, v_, s_;
    memcpy(&theta_, theta, sizeof theta_);
    memcpy(&m_, m, sizeof m_);
    memcpy(&v_, v, sizeof v_);
    memcpy(&s_, s, sizeof s_);
    m_ *= c->inv1;
    v_ = NAME(moved)(v_, m_, c, flags);
    theta_ = NAME(stepped)(theta_, m_, v_, ROOT(s_), c, flags);
    memcpy(v, &v_, sizeof v_);
    memcpy(theta, &theta_, sizeof theta_);
}

INLINE void NAME(second_loop)(int64_t n, REAL *theta, const REAL *m, REAL *v, const REAL *s,
                              NAME(constants_t) c, int flags)
{
    enum { WIDTH = NAME(WIDTH) };
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        NAME(second_vector)(theta + i, m + i, v + i, s + i, &c, flags);
    if (i < n) {
        REAL rest[4][WIDTH] = {{0}};
        size_t size = (size_t)(n - i) * sizeof(REAL);
        memcpy(rest[0], theta + i, size);
        memcpy(rest[1], m + i, size);
        memcpy(rest[2], v + i, size);
        memcpy(rest[3], s + i, size);
        NAME(second_vector)(rest[0], rest[1], rest[2], rest[3], &c, flags);
        memcpy(theta + i, rest[0], size);
        memcpy(v + i, rest[2], size);
    }
}

/* v += weight (m_hat - v); theta = keep theta - lr m_hat / (sqrt(s_hat) + eps) - along v. */
static void NAME(second_pass)(int64_t n, REAL *theta, const REAL *m, REAL *v, const REAL *s,
                              const NAME(constants_t) *c)
{
    if (!(c->flags & (STILL | BOUNDED | FAR)))
        NAME(second_loop)(n, theta, m, v, s, *c, 0);
    else
        NAME(second_loop)(n, theta, m, v, s, *c, c->flags);
}
