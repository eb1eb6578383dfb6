"""Sentences of the pages that no record decides: what was done, and how to read it."""

OPENING = """\
<!-- Written by `hvadam findings` from the records; edit src/hvadam/bench/findings. -->

# What we found

{headline}

```
make evidence    # the runs, in hours; stops and goes on as you like
make findings    # this page, its figures, the README's table and `evidence.json`, from the runs
```

**Read it for what it is.** The tasks are small: {steps} steps a run, networks that train in seconds
to a minute on one core. What holds here need not hold at another scale, and what fails here may
work there. Every contender was tuned alike: {trials} learning rates around its own default, more
where the best was at the edge, chosen on a validation split with one seed; then judged by {seeds}
fresh seeds on the test set, once. Other options stayed at their defaults; HVAdam's were {defaults}.
{provenance}

*Ahead* and *behind*: the interval of the paired difference, corrected for all comparisons on that
task, does not include 0, and so many seeds agree that chance does so in at most one case of ten.
*Tie*: it includes 0. *Unsettled*: the seeds agree, but are too few. A tie of five seeds does not
mean that there is no difference; it means that this much work did not show one.
"""

CLAIMS = """\
## The paper's claims

*Does not hold* is said of these small tasks, and of HVAdam with its default options and a tuned
learning rate, beside those of the paper's baselines that ran here. A claim to be the best *holds*
where HVAdam is ahead of all of them on each task, *does not hold* where it is behind one of them on
one task, holds *in part* where it is ahead of all on some of the tasks, and is *undecided* where it
is neither. A claim that something helps in general *holds* where it does on more than half of the
tasks and harms on none, *does not hold* where it helps on none, and holds *in part* between these;
it is not judged before half of the tasks are finished. "Almost all" is nine pairs of ten.
"""

BESIDE = """\
## HVAdam beside Adam

The median difference to Adam's run with the same seed, as a share of Adam's median, and its
interval; to the right is better. Grey: not settled to be ahead or behind.

![HVAdam beside Adam, task by task](figures/evidence-against-adam.png)

"Usual" is HVAdam with gamma 0 and eps 1e-16, which the paper calls the usual values; "no hidden
step" is HVAdam with `hidden_scale=0`. Each has a learning rate of its own. The best other contender
is chosen by the test values that are compared then, so it is a hard one to be ahead of.
"""

CURVES = """\
## On the way

![Validation values over steps](figures/evidence-curves.png)

Median over seeds; the bands are quartiles, of HVAdam and Adam only. *Steps to Adam's end*: the
first evaluation at which HVAdam was as good on the validation split as Adam's run with the same
seed was at its end, over the first at which Adam was. There are about {evaluations} evaluations in
a run, so it is coarse.
"""

GAIN = """\
**Does the hidden step wake up?** The gain b multiplies the step along the hidden vector. It is
$10^{6δ-3}$, where δ averages how well the hidden vector agrees with the gradient's average, from 0
on. So it starts at 0.001 and is 1, where that step is as long as the hidden vector times the
learning rate, once δ is 0.5: after some 700 steps if they agree wholly, and never if their
alignment stays below 0.5.
"""

SENSITIVITY = """\
## How much the learning rate matters

![Decades of learning rates within 1% of the best](figures/evidence-rates.png)

How wide a range of the learning rates tried stays within 1% of the best validation value, one dot
per task. The rates are half a decade apart and were run with one seed, so a single task says
little. A wider range is easier to tune, unless the best is worse.
"""

ABLATION = """\
## The parts of the method

![The ablation, and when the hidden step wakes up](figures/evidence-ablation.png)

Middle: the gain b over the long runs, medians over seeds, with 1 dotted and the end of the short
runs dashed; below, how well the hidden vector agrees with the gradient's average. HVAdam⁰ is Adam;
HVAdam¹ adds the step along the hidden vector, HVAdam² the preconditioner made from
it, HVAdam the restarts. Each level has its own learning rate, in the short runs and again in the
long ones.
"""

MAPS = """\
## Which options

![Learning rate against gamma, eps and hidden_scale](figures/evidence-maps.png)

One run in a cell, on the validation split; the colour is how far it is from the best of its map.
Two values of an option are told apart only where their best cells differ by more than
{clear:g}√2 standard deviations of HVAdam over seeds on that task (where its runs are finished, else
by 1%): *tied* means not told apart from the best.

The best of many single runs is partly luck. What stands out below was run again on fresh seeds
before it could become a default: [decision 31](decisions/0031-defaults-after-the-comparison.md).
"""

GENERATORS = """\
## Generators

![Fréchet distances of generators](figures/evidence-generators.png)

The Fréchet distance is of features of this project, not of Inception: compare it within a task,
never with a published FID. Each contender began with {trials} learning rates, and got up to
{extensions} more where the best was at the edge; "(edge)" says that it still is, so that contender
may do better yet. {seeds} seeds cannot settle a comparison: even if all agree, chance alone does so
one time in four. So these say which way it leans, and no more.
"""

COST = """\
## What it costs

**Memory.** HVAdam keeps {ours:g} bytes a parameter between steps where Adam keeps {theirs:g};
`state_dtype="bfloat16"` keeps {half:g}.

**Time of a step by itself**, over that of `torch.optim.Adam(fused=True)` next to it: median and
quartiles over rounds ({cpu}, {threads} thread{plural}; `make speed`). Forward and backward passes
are not in it.
"""

CARE = """\
## Read with care

- A few small tasks are no sample of anything. Counts of ahead and behind describe these tasks.
- One seed tunes. Where rates are close the choice is partly luck, for everyone alike; the fresh
  seeds judge the choice as it fell.
- Tuning is of the learning rate alone. The paper searched gamma too (appendix F), and gave its
  baselines the settings of the literature; here nobody gets more than the others.
- AdamW has a weight decay of 0.01 throughout; the others have what the task sets, which may be
  none. Where there is one, it is the protocol's number for everyone, though not one thing: in SGD,
  Adam and AdaBelief it is part of the gradient, in HVAdam, Lion and Muon it is apart from it. What
  is between Adam and AdamW on a task is due to nothing else.
- Tasks keep the architecture's kind and the data of the paper where they can, at a fraction of the
  width, data and length; `hvadam recipes` lists what the full protocols would cost.
"""
