"""The explorer's arithmetic against the bench's functions and oracles, its scenes and addresses."""

from __future__ import annotations

import operator
import re
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from scripts import EXPLORER, evaluate

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam_bench import contenders
from hvadam_bench.pages import palette
from hvadam_bench.studies.valley.functions import FUNCTIONS, Array, Problem

NAMES = ("sgd", "adam", "nadam", "adabelief", "hvadam", "no_hidden_step")
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
    problem = Problem("f2", (case.angle,))
    path = paths()[case]
    for _ in range(STEPS + 1):
        grads = problem.evaluate(path[:-1])[1]
        found = oracle(case.name, case.lr, path[0], grads)
        if np.array_equal(found, path):
            return path, grads
        path = found
    raise AssertionError("no path stays as it is")


def oracle(name: str, lr: float, start: Array, grads: Array) -> Array:
    """Return where an optimizer's oracle goes by some gradients, its start before."""
    changed = {"hidden_scale": 0.0} if name == "no_hidden_step" else {}
    spec = contenders.get("hvadam" if changed else name)
    assert spec.oracle is not None
    trace = spec.oracle([start], [[g] for g in grads], {**spec.defaults, "lr": lr, **changed})
    return np.array([start, *(one[0] for one in trace)])


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
    problem = Problem("f2", (0.0,))
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
        problem = Problem(name, (FUNCTIONS[name].angle + 30 * (i % 3),))
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
        look = palette.look("hvadam (no hidden step)" if name == "no_hidden_step" else name)
        dash = [] if look.dash == "solid" else [int(x[:-2]) for x in look.dash.split(",")]
        assert found["label"] == look.label
        assert found["look"] == {
            **{"light": look.light, "dark": look.dark, "dash": dash, "width": look.width}
        }


# scenes and addresses


# What only a computation can say: numbers, which a sentence takes from the races by {readings}, and
# comparisons, which stand in claims.
NUMBERS = re.compile(
    r"\d|\b(two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|twice|double|half|thirds?"
    r"|quarters?|fifth|tenth|every second)\b",
    re.IGNORECASE,
)
COMPARING = re.compile(
    r"\b(than|ahead|behind|below|above|under|beats?|wins?|loses?|leads?|fails?|stalls?|slow\w*|fast\w*"
    r"|better|best|worse|worst|less|least|more|most|low\w*|high\w*|small\w*|large\w*|near\w*|close\w*"
    r"|equal\w*|too|only|alone|nothing|never|always|enough|hardly|still|until|ends?|reach\w*|little|much"
    r"|helps?|costs?|drowns?)\b",
    re.IGNORECASE,
)
READING = re.compile(r"\{(\w+)\}")
SETTINGS = {"f", "angle", "noise", "steps"}


@cache
def scenes() -> list[dict[str, Any]]:
    """Return the scenes: their titles, what they say and their states."""
    return evaluate("Scenes.scenes")


def claims() -> list[tuple[int, dict[str, Any]]]:
    """Return every claim with the number of its scene."""
    return [
        (i, one)
        for i, scene in enumerate(scenes())
        for one in scene["says"]
        if isinstance(one, dict)
    ]


def parts(check: str) -> tuple[str, str, float, str | None]:
    """Return who is compared by a check of a claim, how, with how many times whom."""
    name, sign, factor, *other = check.split()
    assert sign in "<>="
    assert len(other) <= 1
    return name, sign, float(factor), other[0] if other else None


def undue(words: str, *patterns: re.Pattern[str]) -> str:
    """Return the first of the patterns in what is typed of a sentence, if there is any."""
    typed = READING.sub("", words)
    return next((found[0] for one in patterns if (found := one.search(typed))), "")


def test_scenes_say_nothing_that_is_not_computed() -> None:
    """No number is typed, no comparison stands outside a claim, and a claim shows what it holds."""
    for scene in scenes():
        assert not undue(scene["title"], NUMBERS, COMPARING)
        for one in scene["says"]:
            if isinstance(one, str):
                assert not undue(one, NUMBERS, COMPARING), one
                assert set(READING.findall(one)) <= SETTINGS
                continue
            assert not undue(one["words"], NUMBERS), one["words"]
            named = {name for check in one["holds"] for name in parts(check)[::3] if name}
            assert named
            assert named == set(READING.findall(one["words"])) - {"at"}
            racing = named & set(NAMES)
            assert racing <= set(scene["state"]["on"])
            steps = scene["state"]["steps"]
            assert not racing or one["at"] in ("end", *range(0, steps + 1, steps // 10))


@pytest.mark.parametrize(
    "sentence",
    [
        "Adam runs down it, and HVAdam has nothing to add.",
        "After 300 steps its loss is a part of Adam's.",
        "Its loss is a small part of Adam's.",
        "Two steps between the walls show it.",
        "What is left of HVAdam is its adaptive step; AdaBelief ends lower.",
        "v restarts at every second step.",
        "AdaBelief and plain momentum end below HVAdam.",
        "Where HVAdam loses",
        "Turned: Adam stalls",
        "HVAdam is ahead.",
        "It is faster.",
    ],
)
def test_such_sentences_would_be_seen(sentence: str) -> None:
    assert undue(sentence, NUMBERS, COMPARING)


def test_claims_hold() -> None:
    """In the scene, and beside it: what a rounding could turn would be said of one browser."""
    nudges = (0.0, 1e-9, -1e-9, 1e-7)
    asked = [(i, one["at"], *parts(check)) for i, one in claims() for check in one["holds"]]
    found = evaluate(
        """given.nudges.map((nudge) => {
          const told = Scenes.scenes.map(({ state }) => {
            const moved = { ...state, x: state.x * (1 + nudge) };
            return [moved, Racing.runAll(moved).races];
          });
          return given.asked.map(([i, at, one, _sign, factor, other]) => {
            const read = (name) => Scenes.read(name, at, ...told[i]);
            return [read(one), factor * (other ? read(other) : 1)];
          });
        })""",
        {"nudges": nudges, "asked": asked},
    )
    compare = {"<": operator.lt, ">": operator.gt, "=": operator.eq}
    for nudge, values in zip(nudges, found, strict=True):
        for (i, at, one, sign, *rest), (left, right) in zip(asked, values, strict=True):
            assert compare[sign](left, right), (i + 1, at, one, sign, rest, left, right, nudge)


def test_scenes_are_told_with_their_numbers() -> None:
    """Hold every reading in a sentence to what the races give, in the digits of the table."""
    told = evaluate(
        """Scenes.scenes.map((scene) => {
          const { races } = Racing.runAll(scene.state);
          const loss = (name, at) => Construction.figure(
            races.find((one) => one.name === name)?.loss[at] ?? 0);
          return [Scenes.tell(scene, races), loss("adam", 30), loss("no_hidden_step", 800)];
        })"""
    )
    for text, *_ in told:
        assert not re.search(r"[{}]|NaN|undefined|–", text)
    assert f"at step 30 its loss is 0.147, Adam's {told[0][1]}" in told[0][0]
    assert f"without it at {told[1][2]}" in told[1][0]


def test_scenes_are_races_of_the_oracles() -> None:
    """Along a scene's own gradients everyone's oracle goes where the scene does; v as well."""
    found = evaluate(
        """Scenes.scenes.map(({ state }) => {
          const { problem, races } = Racing.runAll(state);
          const noise = Racing.drawNoise(state.noise, state.seed, state.steps);
          return races.map(({ name, lr, x, y, hidden }) => {
            const path = [...x].map((one, n) => [one, y[n]]);
            const grads = path.slice(0, -1).map(([a, b], n) => {
              const g = [0, 0];
              problem.evaluate(a, b, g);
              return [g[0] + noise[2 * n], g[1] + noise[2 * n + 1]];
            });
            const { v1, v2, gain, cosine, restarts } = hidden ?? {};
            const columns = hidden ? [v1, v2, gain, cosine, restarts].map((one) => [...one]) : null;
            return { name, lr, path, grads, columns };
          });
        })"""
    )
    for race in (race for scene in found for race in scene):
        path, grads = np.array(race["path"]), np.array(race["grads"])
        assert apart(oracle(race["name"], race["lr"], path[0], grads), path) <= 1e-12
        if race["columns"] is None:
            continue
        slot, scope = Slot(path[0], Hyperparams(lr=race["lr"])), ScopeState()
        rows = []
        for g in grads:
            step(scope, [slot], [g])
            rows.append([*slot.v, scope.gain, scope.cosine, scope.restarts])
        np.testing.assert_allclose(np.array(race["columns"]).T[1:], rows, rtol=1e-9, atol=1e-9)


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


def random_states() -> list[dict[str, Any]]:
    """Return states that the page may get into, at the ends of their ranges too."""
    random = np.random.default_rng(0)
    ranges = {"angle": (-90, 90), "k": (1, 1000), "noise": (0, 20), "x": (-10, 10), "y": (-10, 10)}
    found = []
    for i in range(300):
        state: dict[str, Any] = {key: float(random.uniform(*ranges[key])) for key in ranges}
        if i % 3 == 0:
            state = {key: float(random.choice(ends)) for key, ends in ranges.items()}
        state |= {"f": str(random.choice(["f1", "f2", "f3", "f4", "fig3", "quadratic"]))}
        state |= {"seed": int(random.integers(1, 10000)), "steps": int(random.integers(50, 3001))}
        state["t"] = float(random.choice([0, 1, random.random()])) * state["steps"]
        state["on"] = [name for name in NAMES if random.random() < i / 150 - 0.2]
        state["rates"] = {name: float(10 ** random.uniform(-4, 0.5)) for name in NAMES}
        state |= {"best": bool(i % 5 == 0), "speed": str(random.choice(["slow", "fast"]))}
        found.append(state)
    return found


def test_what_the_page_writes_it_reads() -> None:
    """Lead any state's address back to itself, nobody's too, with nothing to note."""
    states = random_states()
    assert {len(one["on"]) for one in states} >= {0, 1, 6}
    for state, (address, back, notes, on) in zip(
        states,
        evaluate(
            """given.map((one) => {
              const address = Scenes.encode(one);
              const { state, notes } = Scenes.decode(address);
              return [address, Scenes.encode(state), notes, state.on];
            })""",
            states,
        ),
        strict=True,
    ):
        assert notes == []
        assert back == address
        assert on == state["on"]


def test_rates_belong_to_whom_an_address_names() -> None:
    state = evaluate('Scenes.decode("scene=1&on=hvadam,adam&lr=0.1,0.2").state')
    assert (state["rates"]["hvadam"], state["rates"]["adam"]) == (0.1, 0.2)


def test_an_address_may_be_a_query() -> None:
    """After # first; of a query only what is the page's, for others add theirs to links."""
    cases = {
        ("", ""): "",
        ("#scene=3", ""): "scene=3",
        ("", "?scene=2"): "scene=2",
        ("#scene=3", "?scene=2"): "scene=3",
        ("", "?utm_source=letter"): "",
        ("", "?scene=2&t=7&constructor=1&utm_source=letter"): "scene=2&t=7",
        ("", "?scene=1&on=sgd,adam"): "scene=1&on=sgd%2Cadam",
    }
    found = evaluate("given.map((one) => Scenes.choose(...one))", list(cases))
    assert found == list(cases.values())


BAD = [
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
    ("constructor=1", "“constructor” is not known"),
    ("toString=1", "“toString” is not known"),
    ("scene=2&valueOf=3", "“valueOf” is not known"),
    ("scene=1&on=&lr=0.1", "lr must be “best”"),
    ("scene=1&on=adam,toString", "on must name some of sgd, adam"),
    ("f=toString", "f must be one of f1, f2, f3, f4, fig3, quadratic, got “toString”"),
    ("f=f2&angle=10", "not given, and taken as usual: k, noise, seed"),
    ("<script>", "not given"),
]


@cache
def decoded() -> dict[str, tuple[list[str], str, list[str]]]:
    """Return what becomes of the bad addresses: notes, what is written instead, notes to that."""
    found = evaluate(
        """given.map((one) => {
          const { state, notes } = Scenes.decode(one);
          const address = Scenes.encode(state);
          return [notes, address, Scenes.decode(address).notes];
        })""",
        [address for address, _ in BAD],
    )
    return {address: one for (address, _), one in zip(BAD, found, strict=True)}


@pytest.mark.parametrize(("address", "note"), BAD)
def test_bad_addresses_are_noted(address: str, note: str) -> None:
    """Hold what cannot be taken to a state that can be shown and sent."""
    notes, back, again = decoded()[address]
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
