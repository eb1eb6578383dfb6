/* The arithmetic of a step on vectors of one type; included for float, for double, and for the wider
 * vectors of float that low-bit state is computed with.
 *
 * Legend, as in batch.py: theta parameters, g gradients, m their average, v the hidden vector, s
 * the preconditioner; inv1 = 1/bias1 and inv2 = 1/bias2 correct the bias of m and s.
 * FMA(a, b, c) is a b + c, rounded once where the instruction set can; AT_MOST(x, top) is the lesser
 * of the two, and NaN if x is; LARGEST and SMALLEST are the type's, above 0.
 */

enum { NAME(WIDTH) = sizeof(NAME(vector_t)) / sizeof(REAL) }; /* elements in a vector */

/* What the passes read of a tensor and its options, every number in all lanes; a copy of its own,
 * which no store can change. */
typedef struct {
    NAME(vector_t) one_beta1, beta2, one_beta2, eps, gamma, factor, coupled_decay, inv1, root_inv2;
    NAME(vector_t) minus_lr, keep, beta1;
    NAME(vector_t) weight, mix, minus_along; /* v's move and the step along it */
    REAL low, high;
    int flags;
} NAME(constants_t);

INLINE NAME(vector_t) NAME(all)(double x) { return (REAL)x - (NAME(vector_t)){0}; }

/* The first pass moves nothing: its weight and along are 0. */
INLINE NAME(constants_t) NAME(constants)(const row_t *row, const group_t *o, double weight,
                                         double along)
{
    const int swift = o->beta1 < 0.5, far = swift && fabs(weight) >= 0.5;
    return (NAME(constants_t)){
        .one_beta1 = NAME(all)(1.0 - o->beta1),
        .beta2 = NAME(all)(o->beta2),
        .one_beta2 = NAME(all)(1.0 - o->beta2),
        .eps = NAME(all)(o->eps),
        /* Not 0, which times a square that overflowed is NaN: nothing that eps does not cover. */
        .gamma = NAME(all)(fmax(o->gamma, SMALLEST)),
        .factor = NAME(all)(o->factor),
        .coupled_decay = NAME(all)(o->coupled_decay),
        .inv1 = NAME(all)(row->inv1),
        .root_inv2 = NAME(all)(sqrt(row->inv2)),
        .minus_lr = NAME(all)(-o->lr),
        .keep = NAME(all)(1.0 - o->lr * o->decay),
        .beta1 = NAME(all)(o->beta1),
        .weight = NAME(all)(weight),
        .mix = NAME(all)(1.0 - weight),
        .minus_along = NAME(all)(-along),
        .low = (REAL)o->low,
        .high = (REAL)o->high,
        .flags = (o->adam ? ADAM : 0) | (o->coupled_decay != 0 ? COUPLED : 0) |
                 (o->lr == 0 ? STILL : 0) | (o->bounded ? BOUNDED : 0) | (swift ? SWIFT : 0) |
                 (far ? FAR : 0),
    };
}

/* ---- one vector ---- */

/* |v-m_hat|^2, <v-m_hat,v>, |m_hat|^2, |v|^2, lane by lane. The difference is taken first: nearly
 * parallel vectors would cancel, while v - m_hat is exact where the two are close. */
INLINE void NAME(dot)(NAME(vector_t) m_hat, NAME(vector_t) v, NAME(vector_t) sums[4])
{
    NAME(vector_t) d = v - m_hat;
    sums[0] = FMA(d, d, sums[0]);
    sums[1] = FMA(d, v, sums[1]);
    sums[2] = FMA(m_hat, m_hat, sums[2]);
    sums[3] = FMA(v, v, sums[3]);
}

INLINE NAME(vector_t) NAME(clamp)(NAME(vector_t) x, REAL low, REAL high)
{
    for (int lane = 0; lane < NAME(WIDTH); lane++) { /* NaN passes, as in torch.clamp */
        REAL y = x[lane];
        y = y < low ? low : y;
        x[lane] = y > high ? high : y;
    }
    return x;
}

/* v += weight (m_hat - v). Where m may leap, from a number that it leaves far behind, what is added
 * to is the end that is nearer: beside the other one all digits would be lost. */
INLINE NAME(vector_t) NAME(moved)(NAME(vector_t) v, NAME(vector_t) m_hat,
                                  const NAME(constants_t) *c, int flags)
{
    return flags & FAR ? FMA(c->mix, v - m_hat, m_hat) : FMA(c->weight, m_hat - v, v);
}

/* m and s from the gradient x. */
INLINE void NAME(average)(NAME(vector_t) x, NAME(vector_t) theta, NAME(vector_t) *m,
                          NAME(vector_t) v, NAME(vector_t) *s, const NAME(constants_t) *c,
                          int flags)
{
    x *= c->factor;
    if (flags & COUPLED) x = FMA(c->coupled_decay, theta, x);
    *m = flags & SWIFT ? FMA(c->beta1, *m - x, x) : FMA(c->one_beta1, x - *m, *m);
    if (flags & ADAM) {
        *s = FMA(c->one_beta2 * x, x, c->beta2 * *s);
    } else {
        NAME(vector_t) from_v = x - v, from_m = x - *m, dev_v = from_v * from_v;
        NAME(vector_t) dev_m = FMA(from_m, from_m, FMA(c->gamma, dev_v, c->eps));
        NAME(vector_t) ratio = dev_v / AT_MOST(dev_m, LARGEST); /* else inf / inf would be NaN */
        *s = FMA(c->one_beta2 * ratio, dev_v, FMA(c->beta2, *s, c->eps));
    }
}

/* theta after decay and both steps; root is that of s. */
INLINE NAME(vector_t) NAME(stepped)(NAME(vector_t) theta, NAME(vector_t) m_hat, NAME(vector_t) v,
                                    NAME(vector_t) root, const NAME(constants_t) *c, int flags)
{
    if (flags & STILL) return theta; /* no rate, no move, whatever the step is */
    NAME(vector_t) step = m_hat / FMA(root, c->root_inv2, c->eps);
    theta = FMA(c->minus_along, v, FMA(c->minus_lr, step, theta * c->keep));
    return flags & BOUNDED ? NAME(clamp)(theta, c->low, c->high) : theta;
}
