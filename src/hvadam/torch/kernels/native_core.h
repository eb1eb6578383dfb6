/* The arithmetic of a step on vectors of one type; included once for float and once for double.
 *
 * Legend, as in batch.py: theta parameters, g gradients, m their average, v the hidden vector, s
 * the preconditioner; inv1 = 1/bias1 and inv2 = 1/bias2 correct the bias of m and s.
 */

enum { NAME(WIDTH) = 32 / sizeof(REAL) }; /* elements in a vector */
typedef REAL NAME(vector_t) __attribute__((vector_size(32)));
typedef REAL NAME(part_t) __attribute__((vector_size(LANES * sizeof(REAL))));

/* The dots of one vector, added lane by lane in double. The difference is taken in double too:
 * rounded to float it would cost half the cosine's digits where v and m_hat are nearly parallel. */
INLINE void NAME(dot)(const NAME(vector_t) *m_hat, const NAME(vector_t) *v, lanes_t sums[][4])
{
    for (int part = 0; part < NAME(WIDTH) / LANES; part++) {
        NAME(part_t) m_part, v_part;
        memcpy(&m_part, (const char *)m_hat + part * sizeof m_part, sizeof m_part);
        memcpy(&v_part, (const char *)v + part * sizeof v_part, sizeof v_part);
        lanes_t a = WIDEN(m_part), b = WIDEN(v_part);
        lanes_t d = b - a;
        sums[part][0] += d * d;
        sums[part][1] += d * b;
        sums[part][2] += a * a;
        sums[part][3] += b * b;
    }
}

/* What the first pass reads of the options; a copy of its own, which no store can change. */
typedef struct {
    REAL one_beta1, beta2, one_beta2, eps, gamma, sign, decay, inv1;
} NAME(constants_t);

/* m and s of one vector from g, and the dots. */
INLINE void NAME(accumulate_vector)(const REAL *theta, const REAL *g, REAL *m, const REAL *v,
                                    REAL *s, NAME(constants_t) c, int adam, int coupled,
                                    lanes_t sums[][4])
{
    NAME(vector_t) x, m_, v_, s_, theta_;
    memcpy(&x, g, sizeof x);
    memcpy(&m_, m, sizeof m_);
    memcpy(&v_, v, sizeof v_);
    memcpy(&s_, s, sizeof s_);
    x *= c.sign;
    if (coupled) {
        memcpy(&theta_, theta, sizeof theta_);
        x += c.decay * theta_;
    }
    m_ += c.one_beta1 * (x - m_);
    if (adam) {
        s_ = c.beta2 * s_ + c.one_beta2 * x * x;
    } else {
        NAME(vector_t) dev_v = (x - v_) * (x - v_), dev_m = (x - m_) * (x - m_);
        NAME(vector_t) ratio = dev_v / (dev_m + c.gamma * dev_v + c.eps);
        s_ = c.beta2 * s_ + c.one_beta2 * (ratio * dev_v) + c.eps;
    }
    memcpy(m, &m_, sizeof m_);
    memcpy(s, &s_, sizeof s_);
    m_ *= c.inv1;
    NAME(dot)(&m_, &v_, sums);
}

INLINE void NAME(accumulate_as)(int64_t n, const REAL *theta, const REAL *g, REAL *m, const REAL *v,
                                REAL *s, const group_t *o, double inv1, int adam, int coupled,
                                double *dots)
{
    enum { WIDTH = NAME(WIDTH) };
    const NAME(constants_t) c = {
        (REAL)(1.0 - o->beta1), (REAL)o->beta2, (REAL)(1.0 - o->beta2), (REAL)o->eps,
        (REAL)o->gamma,         (REAL)o->sign,  (REAL)o->coupled_decay, (REAL)inv1,
    };
    lanes_t sums[2][4] = {{{0}}};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        NAME(accumulate_vector)(theta + i, g + i, m + i, v + i, s + i, c, adam, coupled, sums);
    if (i < n) { /* the rest, padded with zeros, which stay zero and add nothing */
        REAL rest[5][WIDTH] = {{0}};
        size_t size = (size_t)(n - i) * sizeof(REAL);
        memcpy(rest[0], theta + i, size);
        memcpy(rest[1], g + i, size);
        memcpy(rest[2], m + i, size);
        memcpy(rest[3], v + i, size);
        memcpy(rest[4], s + i, size);
        NAME(accumulate_vector)(rest[0], rest[1], rest[2], rest[3], rest[4], c, adam, coupled,
                                sums);
        memcpy(m + i, rest[2], size);
        memcpy(s + i, rest[4], size);
    }
    for (int k = 0; k < 4; k++) {
        lanes_t both = sums[0][k] + sums[1][k];
        for (int lane = 0; lane < LANES; lane++) dots[k] += both[lane];
    }
}

/* m and s from g; adds |v-m_hat|^2, <v-m_hat,v>, |m_hat|^2, |v|^2 to dots. */
INLINE void NAME(accumulate)(int64_t n, const REAL *theta, const REAL *g, REAL *m, const REAL *v,
                             REAL *s, const group_t *o, double inv1, double *dots)
{
    if (o->adam)
        NAME(accumulate_as)(n, theta, g, m, v, s, o, inv1, 1, o->coupled_decay != 0, dots);
    else if (o->coupled_decay != 0)
        NAME(accumulate_as)(n, theta, g, m, v, s, o, inv1, 0, 1, dots);
    else
        NAME(accumulate_as)(n, theta, g, m, v, s, o, inv1, 0, 0, dots);
}

/* v += weight (m_hat - v); theta = keep theta - lr m_hat / (sqrt(s_hat) + eps) - hidden v. */
INLINE void NAME(move)(int64_t n, REAL *restrict theta, const REAL *restrict m, REAL *restrict v,
                       const REAL *restrict s, double inv1_, double inv2_, double weight_,
                       double hidden_, const group_t *o)
{
    const REAL inv1 = (REAL)inv1_, inv2 = (REAL)inv2_, weight = (REAL)weight_;
    const REAL hidden = (REAL)hidden_, lr = (REAL)o->lr, eps = (REAL)o->eps;
    const REAL keep = (REAL)(1.0 - o->lr * o->decay), low = (REAL)o->low, high = (REAL)o->high;

    for (int64_t i = 0; i < n; i++) {
        REAL m_hat = m[i] * inv1;
        REAL v_new = v[i] + weight * (m_hat - v[i]);
        REAL x = theta[i] * keep - lr * (m_hat / (SQRT(s[i] * inv2) + eps)) - hidden * v_new;
        v[i] = v_new;
        theta[i] = x;
    }
    if (o->bounded) {
        for (int64_t i = 0; i < n; i++) { /* NaN passes through, as in torch.clamp */
            REAL x = theta[i];
            x = x < low ? low : x;
            theta[i] = x > high ? high : x;
        }
    }
}
