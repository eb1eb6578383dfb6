"""The explorer's arithmetic against the bench's functions and oracles, its scenes and addresses."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from scripts import EXPLORER, evaluate

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam_bench import contenders
from hvadam_bench.publishing import palette
from hvadam_bench.studies.toy_functions.functions import FUNCTIONS, Array, Problem

NAMES = ("sgd", "adam", "nadam", "adabelief", "hvadam")
ANGLES, RATES, STEPS, START = (0.0, 30.0, 45.0), (0.01, 0.1), 300, (0.5, 1.0)


class Case(NamedTuple):
    """A race: who, at which angle, at which rate."""

    name: str
    angle: float
    lr: float


CASES = [Case(*one) for one in product(NAMES, ANGLES, RATES)]

# (name, angle, lr) -> the path
FREE = """given.map(([name, angle, lr]) => {
  const { x, y } = Racing.race(
    Functions.make("f2", angle, 40), name, lr, [0.5, 1], Racing.drawNoise(0, 1, 300));
  return [...x].map((one, n) => [one, y[n]]);
})"""
# (name, lr, where each step begins, gradients) -> where each step ends
FORCED = """given.map(([name, lr, froms, grads]) => {
  const optimizer = Optimizers.table[name];
  const state = optimizer.create();
  return grads.map((g, i) => {
    optimizer.step(state, froms[i], g, lr);
    return froms[i];
  });
})"""


@cache
def paths(stretch: float = 1.0) -> dict[Case, Array]:
    """Return the page's races, with all rates multiplied by a number."""
    given = [(one.name, one.angle, one.lr * stretch) for one in CASES]
    return dict(zip(CASES, map(np.array, evaluate(FREE, given)), strict=True))


@cache
def race(case: Case) -> tuple[Array, Array]:
    """Return the path of a contender's oracle, and the gradients on it.

    The oracle takes gradients and gives positions. The path that it leads along its own gradients
    is the one it leaves as it is: found by repetition, which is right for one step more each time.
    """
    problem, spec = Problem.of("f2", case.angle), contenders.get(case.name)
    assert spec.oracle is not None
    path = paths()[case]
    for _ in range(STEPS + 1):
        grads = problem.evaluate(path[:-1])[1]
        options = {**spec.defaults, "lr": case.lr}
        trace = spec.oracle([np.array(START)], [[g] for g in grads], options)
        found = np.array([START, *(one[0] for one in trace)])
        if np.array_equal(found, path):
            return path, grads
        path = found
    raise AssertionError("no path stays as it is")


def apart(one: Array, other: Array) -> float:
    """Return the largest difference of two paths, relative to where they are."""
    size = np.maximum(np.abs(one), np.abs(other)).max(-1, keepdims=True)
    return float((np.abs(one - other) / np.maximum(size, 1e-3)).max())


def forced(stretch: float = 1.0) -> list[float]:
    """Return how far each case's single steps end apart, from the same place and gradients."""
    given = []
    for case in CASES:
        path, grads = race(case)
        given.append((case.name, case.lr * stretch, path[:-1].tolist(), grads.tolist()))
    ends = evaluate(FORCED, given)
    return [apart(np.array(end), race(case)[0][1:]) for case, end in zip(CASES, ends, strict=True)]


def test_steps_are_those_of_the_oracles() -> None:
    """From the same place and the same gradients: but for the last digit, the same."""
    assert max(forced()) <= 1e-15


@pytest.mark.parametrize("case", CASES, ids=str)
def test_races_are_those_of_the_oracles(case: Case) -> None:
    assert apart(paths()[case], race(case)[0]) <= 1e-9


def test_another_rate_would_be_seen() -> None:
    """A millionth more is seen in every case, by either measure."""
    assert min(forced(1 + 1e-6)) > 1e-12
    assert min(apart(paths(1 + 1e-6)[case], race(case)[0]) for case in CASES) > 1e-9


def test_hidden_vectors_are_those_of_the_reference() -> None:
    """From the reference's state, with restarts on the way: v, its scalars and the step."""
    problem = Problem.of("f2", 0.0)
    slot, scope = Slot(np.array(START), Hyperparams(lr=0.01)), ScopeState()
    given, expected = [], []
    for _ in range(STEPS):
        g = problem.evaluate(slot.theta[None])[1][0]
        before = {"t": slot.t, "m": slot.m.tolist(), "v": slot.v.tolist(), "s": slot.s.tolist()}
        before |= {"age": scope.t2, "delta": scope.delta, "restarts": scope.restarts}
        given.append((before, slot.theta.tolist(), g.tolist()))
        step(scope, [slot], [g])
        scalars = [scope.delta, scope.gain, scope.mix, scope.cosine, scope.t2, scope.restarts]
        expected.append([*slot.theta, *slot.v, *scalars])
    assert scope.restarts > 5
    found = evaluate(
        """given.map(([before, theta, g]) => {
          const state = { ...Optimizers.table.hvadam.create(), ...before };
          Optimizers.table.hvadam.step(state, theta, g, 0.01);
          const { v, delta, gain, mix, cosine, age, restarts } = state;
          return [...theta, ...v, delta, gain, mix, cosine, age, restarts];
        })""",
        given,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_the_bench(name: str) -> None:
    points = np.random.default_rng(0).uniform(-2.5, 2.5, (40, 2))
    found = evaluate(
        """given.points.map(([x, y], i) => {
          const { angle, condition } = Functions.table[given.name];
          const problem = Functions.make(given.name, angle + 30 * (i % 3), condition);
          const out = [0, 0];
          return [problem.evaluate(x, y, out), ...out, ...problem.minimiser];
        })""",
        {"name": name, "points": points.tolist()},
    )
    for i, (point, (loss, *rest)) in enumerate(zip(points, found, strict=True)):
        problem = Problem.of(name, FUNCTIONS[name].angle + 30 * (i % 3))
        losses, gradients = problem.evaluate(point[None])
        np.testing.assert_allclose(loss, losses[0], rtol=1e-13)
        scale = float(np.abs(gradients).max())
        np.testing.assert_allclose(rest[:2], gradients[0], rtol=0, atol=1e-14 * scale)
        np.testing.assert_allclose(rest[2:], problem.minimiser, rtol=0, atol=1e-15 * 4)
    usual = evaluate("Functions.table[given].start", name)
    assert tuple(usual) == FUNCTIONS[name].start


def test_the_quadratic_has_its_condition_number() -> None:
    found = evaluate(
        """[[1, 0], [0, 1]].map(([x, y]) => {
          const out = [0, 0];
          return [Functions.make("quadratic", 0, 50).evaluate(x, y, out), ...out];
        })"""
    )
    np.testing.assert_allclose(found, [[0.5, 1, 0], [0.01, 0, 0.02]])


def test_noise_is_normal_and_the_same_for_everyone() -> None:
    noise, again, other = (
        np.array(one)
        for one in evaluate("[7, 7, 8].map((seed) => [...Racing.drawNoise(3, seed, 3000)])")
    )
    assert np.array_equal(noise, again)
    assert not np.array_equal(noise, other)
    assert abs(noise.mean()) < 4 * 3 / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(3, rel=0.05)
    assert abs(np.corrcoef(noise[::2], noise[1::2])[0, 1]) < 0.08


def test_optimizers_look_as_everywhere() -> None:
    table = evaluate("Optimizers.table")
    assert tuple(table) == NAMES
    for name, found in table.items():
        look = palette.look(name)
        dash = [] if look.dash == "solid" else [int(x[:-2]) for x in look.dash.split(",")]
        assert found["label"] == look.label
        assert found["look"] == {
            **{"light": look.light, "dark": look.dark, "dash": dash, "width": look.width}
        }


# scenes and addresses


@cache
def scenes() -> list[dict[str, Any]]:
    """Return what becomes of each scene: the last loss of everyone, and HVAdam's scalars."""
    return evaluate(
        """Scenes.scenes.map(({ state }) => {
          const problem = Functions.make(state.f, state.angle, state.k);
          const noise = Racing.drawNoise(state.noise, state.seed, state.steps);
          const start = [state.x, state.y];
          const found = {};
          for (const name of state.on) {
            const lr = state.best
              ? Racing.bestRate(problem, name, start, noise) : state.rates[name];
            const { loss, hidden } = Racing.race(problem, name, lr, start, noise);
            const tail = loss.slice(-Math.round(state.steps / 10));
            found[name] = tail.reduce((a, b) => a + b) / tail.length;
            if (!hidden) continue;
            found.gain = Math.max(...hidden.gain.slice(1));
            found.restarts = hidden.restarts.at(-1);
            found.v = [[...hidden.v1], [...hidden.v2]];
          }
          return found;
        })"""
    )


def test_scenes_show_what_their_sentences_say() -> None:
    axis, turned, finds, noise, shrinking, loses = scenes()
    assert axis["adam"] == pytest.approx(axis["hvadam"], rel=0.2)  # nothing to add
    assert turned["adam"] > 10 * axis["adam"]  # Adam stalls
    assert turned["hvadam"] < 0.2 * turned["adam"]  # a small part of it
    np.testing.assert_allclose(np.array(finds["v"])[:, 2], [1, 1], rtol=1e-12)  # in two steps
    assert noise["gain"] < 0.002  # its floor is 0.001
    assert np.linalg.norm(np.array(noise["v"])[:, -1]) < 1e-6  # nothing is left
    assert noise["adabelief"] < noise["hvadam"]
    assert shrinking["gain"] == 0
    assert shrinking["restarts"] == 150  # at every second step of 300
    assert max(loses[name] for name in ("adam", "adabelief", "sgd")) < loses["hvadam"]


def test_the_best_rate_ends_lowest() -> None:
    scores = evaluate(
        """(() => {
          const problem = Functions.make("f2", 45, 40);
          const noise = Racing.drawNoise(0, 1, 300);
          const best = Racing.bestRate(problem, "adam", [0.5, 1], noise);
          return [best / 2, best, best * 2].map((lr) => {
            const tail = Racing.race(problem, "adam", lr, [0.5, 1], noise).loss.slice(270);
            return tail.reduce((a, b) => a + b) / tail.length;
          });
        })()"""
    )
    assert scores[1] == min(scores)


def test_addresses_lead_back() -> None:
    """Hold the address of every scene, and of a state that is none's, to a round trip."""
    found = evaluate(
        """[...Scenes.scenes.map(({ state }) => state),
           { ...Scenes.usual("f4", { angle: -12.5, x: 0.1234, steps: 350, t: 17, seed: 4 }),
             on: ["sgd", "hvadam"] }].map((state) => {
          const address = Scenes.encode(state);
          const { state: back, notes } = Scenes.decode(address);
          return [address, Scenes.encode(back), notes];
        })"""
    )
    for i, (address, back, notes) in enumerate(found):
        assert back == address
        assert notes == []
        assert (address == f"scene={i + 1}") == (i < 6)
    assert found[-1][0] == (
        "f=f4&angle=-12.5&k=40&noise=0&seed=4&steps=350&x=0.1234&y=2&on=sgd,hvadam&lr=0.1,0.01"
        "&speed=fast&t=17"
    )


@pytest.mark.parametrize(
    ("address", "note"),
    [
        ("scene=9", "scene must be 1 to 6, got “9”"),
        ("scene=1&angle=400", "angle must be a number from -90 to 90, got “400”"),
        ("scene=1&angle=wide", "angle must be a number from -90 to 90, got “wide”"),
        ("scene=1&angle=", "angle must be a number from -90 to 90, got “”"),
        ("scene=1&steps=99.5", "steps must be a whole number from 50 to 3000, got “99.5”"),
        ("scene=1&t=301", "t must be at most steps, 300, got 301"),
        ("scene=1&k=NaN", "k must be a number from 1 to 1000, got “NaN”"),
        ("scene=1&x=1e999", "x must be a number from -10 to 10, got “1e999”"),
        ("scene=1&on=adam,muon", "on must name some of sgd, adam"),
        ("scene=1&lr=0.1", "lr must be “best” or a rate from 0.0001 to 3.2 for each, got “0.1”"),
        ("scene=1&lr=0,5", "lr must be “best”"),
        ("scene=1&speed=warp", "speed must be slow or fast, got “warp”"),
        ("scene=1&colour=red", "“colour” is not known"),
        ("f=toString", "f must be one of f1, f2, f3, f4, fig3, quadratic, got “toString”"),
        ("f=f2&angle=10", "not given, and taken as usual: k, noise, seed"),
        ("<script>", "not given"),
    ],
)
def test_bad_addresses_are_noted(address: str, note: str) -> None:
    """Hold what cannot be taken to a state that can be shown and sent."""
    notes, back, again = evaluate(
        """(() => {
          const { state, notes } = Scenes.decode(given);
          const address = Scenes.encode(state);
          return [notes, address, Scenes.decode(address).notes];
        })()""",
        address,
    )
    assert any(note in one for one in notes)
    assert back
    assert again == []


def test_the_page_names_every_script_and_nothing_else() -> None:
    page = (EXPLORER / "index.html").read_text(encoding="utf-8")
    for path in EXPLORER.iterdir():
        assert path.name in page or path.name == "index.html"
    assert "http:" not in page
    assert "https:" not in page
    assert sum(path.stat().st_size for path in EXPLORER.iterdir()) < 100_000
