"""The explorer in Chromium: dragged, touched, typed at and sent, in all its looks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest
from look import BROWSERS, SIZES, WIDTH, Browser, browser
from scripts import EXPLORER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="needs Chromium"),
]

PAGE = (EXPLORER / "index.html").as_uri()
STATE = "Page.shown.state"
LOOKED_AT = (("desktop", "light"), ("phone", "dark"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Return one browser for all tests; each loads the page anew."""
    with browser() as found:
        yield found


class Explorer:
    """The page, loaded in a window; it must not complain."""

    def __init__(self, tab: Browser) -> None:
        self.tab = tab

    def open(
        self, address: str = "", size: str = "desktop", ground: str = "light", calm: bool = True
    ) -> None:
        """Load the page at an address, or at a query if it begins so, played only if not calm."""
        self.tab.events.clear()
        self.tab.fit(size, ground, calm=calm)
        self.tab.call("Emulation.setTouchEmulationEnabled", enabled=size == "phone")
        self.tab.call("Page.navigate", url="about:blank")  # another address alone loads nothing
        self.tab.call(
            "Page.navigate", url=PAGE + (address if address.startswith("?") else f"#{address}")
        )
        assert self.tab.wait_for("document.readyState === 'complete' && !!Page.shown.view")

    def evaluate(self, expression: str) -> Any:
        """Return the value of a script."""
        return self.tab.evaluate(expression)

    def settled(self, expression: str) -> Any:
        """Return the value of a script after the next frame is drawn."""
        done = self.tab.call(
            "Runtime.evaluate",
            expression="new Promise((go) => requestAnimationFrame(() => setTimeout(go)))",
            awaitPromise=True,
        )
        assert "exceptionDetails" not in done
        return self.evaluate(expression)

    def middle(self, selector: str) -> tuple[float, float]:
        """Return where an element is in the window, after scrolling to it."""
        x, y = self.evaluate(
            f"""(() => {{
              const one = document.querySelector({selector!r});
              one.scrollIntoView({{ block: "center" }});
              const box = one.getBoundingClientRect();
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        return x, y

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Press, move or release the mouse."""
        buttons = {"button": "left", "buttons": 1, "clickCount": 1}
        self.tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **buttons)

    def click(self, selector: str) -> None:
        """Click an element with the mouse."""
        x, y = self.middle(selector)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def press(self, key: str, shift: bool = False) -> None:
        """Press a key and let it go."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.tab.call(
                "Input.dispatchKeyEvent",
                **{"type": kind, "key": key, "modifiers": 8 * shift},
                **(text if kind == "keyDown" else {}),
            )

    @property
    def address(self) -> str:
        """Return the address without the page's own."""
        return self.evaluate("location.hash.slice(1)")


@pytest.fixture
def explorer(chromium: Browser) -> Iterator[Explorer]:
    """Return the page to be opened; in the end nothing may have failed or left the machine."""
    made = Explorer(chromium)
    yield made
    assert chromium.complaints() == []


# Every scene on a desk and on a phone, and one of them in the other two looks.
LOOKS = [(scene, *look) for look in LOOKED_AT for scene in range(1, 7)]
LOOKS += [(2, "desktop", "dark"), (2, "phone", "light")]


@pytest.mark.parametrize(("scene", "size", "ground"), LOOKS)
def test_every_scene_is_drawn(explorer: Explorer, scene: int, size: str, ground: str) -> None:
    explorer.open(f"scene={scene}", size, ground)
    assert explorer.evaluate(WIDTH) == SIZES[size]
    current = "document.querySelector('#scenes [aria-current]').textContent"
    assert explorer.evaluate(current).startswith(f"{scene}. ")
    assert len(explorer.evaluate("document.getElementById('story').textContent")) > 100
    for canvas in ("landscape", "construction", "loss", "alignment", "gain"):
        colours = f"""(() => {{
          const one = document.getElementById({canvas!r});
          const data = one.getContext("2d").getImageData(0, 0, one.width, one.height).data;
          return new Set(new Uint32Array(data.buffer)).size;
        }})()"""
        assert explorer.evaluate(colours) > 5, canvas
        assert explorer.evaluate(f"document.getElementById({canvas!r}).ariaLabel")


def test_scenes_differ_and_are_chosen_by_click_and_key(explorer: Explorer) -> None:
    explorer.open()
    assert explorer.address.startswith("scene=1")
    explorer.click("#scenes li:nth-child(4) button")
    assert explorer.evaluate(f"{STATE}.noise") == 6
    assert explorer.address.startswith("scene=4")
    explorer.press("6")
    assert explorer.evaluate(f"{STATE}.best")
    assert explorer.evaluate("document.getElementById('rate-adam').disabled")


def test_the_start_is_dragged(explorer: Explorer) -> None:
    explorer.open("scene=2")
    before = explorer.evaluate(f"[{STATE}.x, {STATE}.y, Page.shown.races[0].loss[300]]")
    x, y = explorer.middle("#start")
    explorer.mouse("mousePressed", x, y)
    for i in range(1, 6):
        explorer.mouse("mouseMoved", x - 12 * i, y + 8 * i)
    explorer.mouse("mouseReleased", x - 60, y + 40)
    after = explorer.settled(f"[{STATE}.x, {STATE}.y, Page.shown.races[0].loss[300]]")
    per_pixel = 4 / explorer.evaluate("document.getElementById('landscape').clientWidth")
    assert after[0] - before[0] == pytest.approx(-60 * per_pixel, abs=2 * per_pixel)
    assert after[1] - before[1] == pytest.approx(-40 * per_pixel, abs=2 * per_pixel)
    assert after[2] != before[2]
    assert explorer.evaluate("Page.shown.races[0].x[0]") == after[0]
    now = explorer.middle("#start")
    assert now == pytest.approx((x - 60, y + 40), abs=1.5)
    assert explorer.address.startswith("f=fig3&")


def test_the_start_is_touched(explorer: Explorer) -> None:
    """With a finger: dragged by its handle, and put where the picture is tapped."""
    explorer.open("scene=2", "phone")
    x, y = explorer.middle("#start")
    before = explorer.evaluate(f"[{STATE}.x, {STATE}.y]")
    for kind, by in (("touchStart", 0), ("touchMove", 20), ("touchMove", 40), ("touchEnd", 40)):
        points = [] if kind == "touchEnd" else [{"x": x - by, "y": y}]
        explorer.tab.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    after = explorer.settled(f"[{STATE}.x, {STATE}.y]")
    per_pixel = 4 / explorer.evaluate("document.getElementById('landscape').clientWidth")
    assert after[0] - before[0] == pytest.approx(-40 * per_pixel, abs=2 * per_pixel)
    assert after[1] == pytest.approx(before[1], abs=2 * per_pixel)
    x, y = explorer.middle("#landscape")
    for kind in ("touchStart", "touchEnd"):
        points = [] if kind == "touchEnd" else [{"x": x - 60, "y": y + 60}]
        explorer.tab.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    assert explorer.tab.wait_for(f"{STATE}.x < -0.3", seconds=30)


def test_the_keyboard_does_all(explorer: Explorer) -> None:
    explorer.open("scene=2")
    explorer.evaluate("document.getElementById('start').focus()")
    before = explorer.evaluate(f"[{STATE}.x, {STATE}.y]")
    explorer.press("ArrowLeft")
    explorer.press("ArrowUp", shift=True)
    after = explorer.settled(f"[{STATE}.x, {STATE}.y]")
    assert after == pytest.approx([before[0] - 0.04, before[1] + 0.004])
    explorer.evaluate("document.getElementById('angle').focus()")
    explorer.press("ArrowRight")
    assert explorer.settled(f"{STATE}.angle") == 46
    explorer.evaluate("document.activeElement.blur()")
    explorer.press(" ")
    assert explorer.tab.wait_for("Page.isPlaying()", seconds=30)
    explorer.press(" ")
    assert not explorer.evaluate("Page.isPlaying()")


def test_motion_grows_the_paths(explorer: Explorer) -> None:
    explorer.open("scene=2", calm=False)
    assert explorer.evaluate("Page.isPlaying()")
    assert explorer.tab.wait_for(f"{STATE}.t > 5", seconds=20)
    explorer.click("#play")
    stopped = explorer.evaluate(f"{STATE}.t")
    time.sleep(0.2)
    assert explorer.evaluate(f"{STATE}.t") == stopped
    assert "t=" in explorer.address
    explorer.click("#forth")
    assert explorer.evaluate(f"{STATE}.t") == int(stopped) + 1


def test_who_wants_no_motion_sees_the_end(explorer: Explorer) -> None:
    explorer.open("scene=2")
    assert not explorer.evaluate("Page.isPlaying()")
    assert explorer.evaluate(f"{STATE}.t") == 1000


def test_settings_lead_to_other_races(explorer: Explorer) -> None:
    explorer.open("scene=2")
    set_to = """(([id, value]) => {
      const one = document.getElementById(id);
      if (one.type === "checkbox") one.checked = value; else one.value = value;
      one.dispatchEvent(new Event(one.type === "range" ? "input" : "change"));
    })"""
    loss = "Page.shown.races.map((race) => race.loss.at(-1))"
    seen = [explorer.evaluate(loss)]
    for change in (
        '["angle", 20]',
        '["k", 2]',
        '["noise", 2]',
        '["steps", 500]',
        '["rate-adam", -1]',
        '["on-sgd", true]',
        '["best", true]',
        '["f", "f4"]',
    ):
        explorer.evaluate(f"{set_to}({change})")
        seen.append(explorer.settled(loss))
        assert seen[-1] != seen[-2], change
    assert len(seen[-1]) == 4
    assert explorer.evaluate("document.getElementById('k').disabled")
    address, state = explorer.address, explorer.evaluate(STATE)
    explorer.open(address)
    assert explorer.evaluate(loss) == seen[-1]
    again = explorer.evaluate(STATE)
    assert {**again, "rates": None} == {**state, "rates": None}
    assert explorer.address == address
    assert explorer.evaluate("document.getElementById('note').hidden")


def test_bad_addresses_fall_back_with_a_note(explorer: Explorer) -> None:
    explorer.open("scene=2&angle=400&x=north")
    assert not explorer.evaluate("document.getElementById('note').hidden")
    note = explorer.evaluate("document.getElementById('note').textContent")
    assert "angle must be a number from -90 to 90, got “400”" in note
    assert "x must be a number" in note
    assert explorer.evaluate(f"{STATE}.angle") == 45
    assert explorer.address.startswith("scene=2")
    for address in ("constructor=1", "toString=1", "scene=2&valueOf=3"):
        explorer.open(address)
        assert "is not known" in explorer.evaluate("document.getElementById('note').textContent")
        assert explorer.evaluate("Page.shown.races.length") >= 2


def test_a_query_is_an_address(explorer: Explorer) -> None:
    explorer.open("?scene=4&utm_source=letter")
    assert explorer.evaluate("document.getElementById('note').hidden")
    assert explorer.evaluate(f"{STATE}.noise") == 6
    assert explorer.address.startswith("scene=4")


def test_numbers_stand_behind_the_picture(explorer: Explorer) -> None:
    explorer.open("scene=2")
    rows = explorer.evaluate(
        """[...document.querySelectorAll("#table tr")].map(
          (row) => [...row.cells].map((cell) => cell.textContent))"""
    )
    assert rows[0] == [
        *("step", "Adam, loss", "HVAdam, loss", "HVAdam (no hidden step), loss"),
        *("alignment", "gain", "restarts"),
    ]
    *numbers, mean = rows[1:]
    assert [row[0] for row in numbers] == [str(n) for n in range(0, 1001, 100)]
    last, end = explorer.evaluate(
        """[(race) => race.loss[1000], (race) => Racing.end(race.loss)]
          .map((one) => Page.shown.races.map(one))"""
    )
    assert [float(one) for one in numbers[-1][1:4]] == pytest.approx(last, rel=0.01)
    assert mean[0] == "mean of the last tenth"
    assert [float(one) for one in mean[1:4]] == pytest.approx(end, rel=0.01)
    story = explorer.evaluate("document.getElementById('story').textContent")
    at = {row[0]: row for row in numbers}
    assert all(one in story for one in [*at["100"][1:4], *at["800"][1:4], at["800"][5]])
    label = explorer.evaluate("document.getElementById('landscape').ariaLabel")
    assert f"Adam {numbers[-1][1]}, HVAdam {numbers[-1][2]}" in label


def test_nobody_chosen_and_everybody_diverging_are_shown_too(explorer: Explorer) -> None:
    rest = "f=f4&angle=0&k=40&noise=0&seed=1&steps=100&x=-1.5&y=2&speed=fast"
    explorer.open(f"{rest}&on=sgd&lr=3")
    assert "diverged" in explorer.evaluate("document.getElementById('table').textContent")
    explorer.click("#on-sgd")
    assert explorer.settled("Page.shown.races.length") == 0
    assert explorer.evaluate("document.getElementById('event').textContent").startswith("Choose")
    explorer.open(explorer.address)
    assert explorer.evaluate("document.getElementById('note').hidden")
    assert explorer.evaluate("Page.shown.races.length") == 0
