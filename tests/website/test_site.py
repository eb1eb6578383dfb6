"""The site as it is built: strict, whole, quiet, and readable from disk in Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import prepare
import pytest
from look import BROWSERS, SIZES, WIDTH, Browser, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (prepare.ROOT / ".git").exists(), reason="needs a clone"),
]
in_chromium = pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="needs Chromium")

# Formulas as they are written, in what a reader sees: all but code and what KaTeX has set.
RAW = r"""(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const { parentElement: parent, data } = walker.currentNode;
    if (parent.closest("code, pre, script, style, .katex, .plotly")) continue;
    if (/\\[a-zA-Z(\[]|\$\$|\$[^$\d][^$]*\$/.test(data)) found.push(data.trim().slice(0, 80));
  }
  return found.concat([...document.querySelectorAll(".katex-error")].map((e) => e.title));
})()"""
# Fonts of KaTeX that formulas ask for and its style does not have.
FONTLESS = """(() => {
  const there = new Set([...document.fonts].map((one) => one.family));
  const family = (one) => getComputedStyle(one).fontFamily.split(",")[0];
  const asked = new Set([...document.querySelectorAll(".katex *")].map(family));
  return [...asked].filter((one) => one.startsWith("KaTeX") && !there.has(one));
})()"""
BROKEN = "[...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
LOADED = "document.readyState === 'complete' && [...document.images].every((i) => i.complete)"
EAGER = "document.querySelectorAll('img').forEach((one) => (one.loading = 'eager'))"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in a folder of its own, with the commands of `make docs`."""
    folder = tmp_path_factory.mktemp("site")
    config = (prepare.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    config = config.replace("build/docs", "docs").replace("build/site", "site")
    config = config.replace("paths: [src]", f"paths: [{prepare.ROOT / 'src'}]")
    (folder / "mkdocs.yml").write_text(config, encoding="utf-8")
    (folder / "website").symlink_to(prepare.ROOT / "website")
    prepare.prepare(folder / "docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=folder, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder / "site"


class Links(HTMLParser):
    """A page's addresses, those of what it loads, and the places in it that links can lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names."""
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        loads = tag != "link" or named.get("rel") not in ("canonical", "prev", "next")
        if tag != "a" and loads:
            self.loaded += [named[name] for name in ("src", "href") if name in named]


@cache
def taken_apart(page: Path) -> Links:
    return Links(page)


def test_links_lead_somewhere(site: Path) -> None:
    """Within the site to files and anchors that there are, and to nothing by an absolute path."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        found = taken_apart(page)
        for address in found.links + found.loaded:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "mailto", "data"):
                assert address not in found.loaded or parts.scheme == "data", (page, address)
                continue
            if page.name == "404.html":  # which has the server's root for its own
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page.relative_to(site)}: {address}"
            if parts.fragment and target.suffix == ".html" and "explorer" not in target.parts:
                assert unquote(parts.fragment) in taken_apart(target).anchors, (page, address)


def test_the_reference_shows_types_maths_and_examples(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    assert r"\hat m" in page
    assert "<blockquote>" not in page  # which >>> would be, if not taken for code
    assert "WeightDecayMode" in page
    for method in ("step", "diagnostics", "load_state_dict"):
        assert f'id="hvadam.torch.optimizer.HVAdam.{method}"' in page


def test_pages_of_their_own_are_in_the_navigation(site: Path) -> None:
    """The theme has them as links, for they are none of its pages."""
    found = taken_apart(site / "valley.html").links
    for page in ("explorer/index.html", "evidence.html"):
        assert page in found


# in Chromium


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Return one browser for all pages."""
    with browser() as found:
        yield found


def visit(tab: Browser, page: Path, size: str, ground: str) -> list[str]:
    """Open a page and return what is wrong with it."""
    tab.events.clear()
    tab.fit(size, ground)
    tab.call("Page.navigate", url=page.as_uri())
    tab.wait_for("document.readyState !== 'loading'")
    tab.evaluate(EAGER)
    if not tab.wait_for(LOADED, seconds=30):
        return ["it does not load"]
    wrong = tab.complaints()
    wrong += [f"raw: {one}" for one in tab.evaluate(RAW)]
    wrong += [f"no font: {one}" for one in tab.evaluate(FONTLESS)]
    wrong += [f"broken: {one}" for one in tab.evaluate(BROKEN)]
    wide = tab.evaluate(WIDTH)
    return wrong + ([] if wide <= SIZES[size] else [f"{wide} wide in {SIZES[size]}"])


@in_chromium
def test_every_page_is_whole_on_a_phone(site: Path, chromium: Browser) -> None:
    wrong: dict[str, list[str]] = {}
    for page in sorted(site.rglob("*.html")):
        if page.name != "404.html" and (found := visit(chromium, page, "phone", "dark")):
            wrong[str(page.relative_to(site))] = found
    assert wrong == {}


@in_chromium
@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize("page", ["index", "method", "reference/api", "findings"])
def test_pages_are_whole_on_a_desk(site: Path, chromium: Browser, page: str, ground: str) -> None:
    assert visit(chromium, site / f"{page}.html", "desktop", ground) == []
    scheme = chromium.evaluate("document.body.dataset.mdColorScheme")
    assert scheme == {"light": "default", "dark": "slate"}[ground]


@in_chromium
def test_formulas_are_set(site: Path, chromium: Browser) -> None:
    assert visit(chromium, site / "method.html", "desktop", "light") == []
    assert chromium.evaluate("document.querySelectorAll('.katex').length") > 50
    fonts = "document.fonts.ready.then(() => document.fonts.check('1em KaTeX_Math'))"
    done = chromium.call("Runtime.evaluate", expression=fonts, awaitPromise=True)
    assert done["result"]["value"] is True


@in_chromium
def test_the_search_works_from_disk(site: Path, chromium: Browser) -> None:
    assert visit(chromium, site / "index.html", "desktop", "light") == []
    chromium.evaluate("document.querySelector('.md-search__input').focus()")
    chromium.call("Input.insertText", text="restart")
    assert chromium.wait_for("document.querySelectorAll('.md-search-result__item').length > 3", 30)
    assert chromium.complaints() == []
