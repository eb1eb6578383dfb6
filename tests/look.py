"""Pictures of a report in a real browser, to look at: wide and narrow, light and dark.

    PYTHONPATH=tests python tests/look.py FOLDER [report.html]

writes FOLDER/{desktop,phone}-{light,dark}.png, with -unfolded all that is folded, with -runs the
list behind a cell and with -samples what generators made at first, of a page; if none is given, of
one with made-up records, which it puts there too. It fails if a chart is not drawn, the slider of
samples changes no picture, a script fails, the page asks for anything over the network, is wider
than its window, or does not say that a table goes on beyond it.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hvadam_bench.running.records import Record

SIZES = {"desktop": 1280, "phone": 390}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRAWN = "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))"
# Samples of the first step, come into view; whether some picture changed. None if there are none.
SLID = """(() => {
  const images = document.querySelectorAll(".pictures figure:not([hidden]) img");
  const sources = () => [...images].map((one) => one.src);
  const before = sources();
  for (const slider of document.querySelectorAll(".steps input")) {
    slider.value = 0;
    slider.dispatchEvent(new Event("input"));
  }
  document.querySelector("dialog")?.close();
  document.querySelector(".samples:has(.steps)")?.scrollIntoView();
  return before.length ? sources().some((source, i) => source !== before[i]) : null;
})()"""

# Whether each table that is wider than its box says so, and no other does.
HINTED = """[...document.querySelectorAll(".scroll")].every((box) =>
  (box.scrollWidth > box.clientWidth + 1) === box.classList.contains("wide"))"""
WIDTH = "document.documentElement.scrollWidth"
HEIGHT = "document.documentElement.scrollHeight"


class Browser:
    """A page of Chromium, spoken to in the DevTools protocol over a pair of pipes."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back = to, back
        self.buffer, self.count, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer; keep the events that come before it."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self.count:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def fit(self, size: str, ground: str, height: int = 900, calm: bool = False) -> None:
        """Give the window its size, and the ground and the motion that its reader prefers."""
        preferred = {
            "color-scheme": ground,
            "reduced-motion": "reduce" if calm else "no-preference",
        }
        features = [
            {"name": f"prefers-{name}", "value": value} for name, value in preferred.items()
        ]
        self.call("Emulation.setEmulatedMedia", features=features)
        window = {"width": SIZES[size], "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **window, mobile=size == "phone")

    def evaluate(self, expression: str) -> Any:
        """The value of a script."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 60) -> bool:
        """Whether it came true in time."""
        until = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def picture(self, path: Path) -> None:
        """What the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self) -> list[str]:
        """Errors, and requests for anything but files and data."""
        said = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                said.append(json.dumps(params["exceptionDetails"])[:500])
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                said.append(params["entry"]["text"])
            elif event.get("method") == "Network.requestWillBeSent":
                url = params["request"]["url"]
                said += [] if url.startswith(("file:", "data:", "blob:")) else [f"asked for {url}"]
        return said

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            read = os.read(self.back, 1 << 20)
            if not read:
                raise RuntimeError("look: the browser is gone")
            self.buffer += read
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless one with a profile of its own."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        sys.exit("look: there is no Chromium here; on Debian: apt install chromium")
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()

    def place() -> None:
        """The protocol's pipes are descriptors 3 and 4; copies first, as they may be those."""
        copies = os.dup(theirs_in), os.dup(theirs_out)
        os.dup2(copies[0], 3)
        os.dup2(copies[1], 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        process = subprocess.Popen(
            [found, *flags, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            pass_fds=(3, 4),
            preexec_fn=place,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Browser(ours_out, ours_in)
        finally:
            process.terminate()
            process.wait()


def look(page: Path, folder: Path, size: str, ground: str) -> list[str]:
    """Take the pictures of one size and ground; returns what is wrong."""
    width = SIZES[size]
    with browser() as tab:
        tab.fit(size, ground)
        tab.call("Page.navigate", url=page.resolve().as_uri())
        tab.wait_for("document.readyState === 'complete'")
        wide = tab.evaluate(WIDTH)
        tab.fit(size, ground, tab.evaluate(HEIGHT))
        drawn = tab.wait_for(DRAWN)
        tab.picture(folder / f"{size}-{ground}.png")
        if tab.evaluate("document.querySelector('.fold') !== null"):
            tab.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
            wide = max(wide, tab.evaluate(WIDTH))
            tab.fit(size, ground, tab.evaluate(HEIGHT))
            tab.picture(folder / f"{size}-{ground}-unfolded.png")
        hinted = tab.wait_for(HINTED, seconds=5)
        tab.fit(size, ground)
        tab.evaluate("document.querySelector('td button')?.click()")
        if tab.evaluate("document.querySelector('dialog')?.open"):
            tab.picture(folder / f"{size}-{ground}-runs.png")
        slid = tab.evaluate(SLID)
        if slid is not None:
            tab.picture(folder / f"{size}-{ground}-samples.png")
        wrong = tab.complaints()
    wrong += [] if drawn else ["some chart was not drawn"]
    wrong += [] if hinted else ["a table does not say that it goes on"]
    wrong += ["no slider changed a picture"] if slid is False else []
    return wrong + ([] if wide <= width else [f"the page is {wide} wide in a window of {width}"])


def made_up(folder: Path) -> Path:
    """A page with all that a page can have."""
    from made_sweeps import TASKS, Made, record, sweep

    from hvadam_bench.pages import report
    from hvadam_bench.running.records import Store

    store = Store(folder / "runs")
    published = TASKS[1]._replace(published={"adam": 85.04, "hvadam": 83.31})
    few = TASKS[0]._replace(name="few", title="Three seeds only")
    runs = [run for task in TASKS for run in sweep(task)]
    runs += sweep(published, scale="paper")
    runs += [record(few, "adam", scale="smoke", seed=i) for i in range(3)]
    runs += [record(few, "hvadam", scale="smoke", seed=i, loss=0.02) for i in range(3)]
    wgan = Made("wgan", "A generator of digits", "frechet", "min", 300.0, 20.0)
    for run in sweep(wgan):
        store.put(*generated(run))
    for run in runs:
        store.put(run)
    [page] = report.write(store, folder / "report.html")
    return page


def generated(run: Record) -> tuple[Record, dict[str, bytes]]:
    """A run that made pictures, and these: digits that come out of noise, or all alike."""
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_digits

    chance = np.random.default_rng(run.config.seed)
    digits = load_digits(return_X_y=True)[0][chance.permutation(1000)[:64]] * 15.9
    if run.config.contender == "sgd" and run.status == "done":
        digits[:] = digits[0]
        reason = "the samples are all alike, from step 200 to the end."
        run = replace(run, status="collapsed", reason=reason)
    pictures: dict[str, bytes] = {}
    for point in run.curve[::2]:
        share = math.exp(-point.step / 80)
        mixed = (1 - share) * digits + share * chance.uniform(0, 255, digits.shape)
        sheet = mixed.reshape(8, 8, 8, 8).transpose(0, 2, 1, 3).reshape(64, 64).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(sheet).save(buffer, format="PNG")
        pictures[f"samples-{point.step:07d}.png"] = buffer.getvalue()
    test = {**run.test, "frechet_sd": 0.7} if run.test else {}
    return replace(run, artifacts=tuple(pictures), test=test), pictures


def main(folder: Path, page: Path | None = None) -> None:
    """All pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    page = page or made_up(folder)
    wrong: list[str] = []
    for size in SIZES:
        for ground in ("light", "dark"):
            wrong += [f"{size}, {ground}: {one}" for one in look(page, folder, size, ground)]
            print(f"wrote {folder / f'{size}-{ground}.png'}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
