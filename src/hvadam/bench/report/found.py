"""What a comparison as a whole found, as the page opens with it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

STANDINGS = {"holds": "ahead", "does not hold": "behind", "holds in part": "unsettled"}


class Found(NamedTuple):
    """A headline, and claims with a verdict on each.

    Attributes:
        headline: The answer in a few sentences.
        claims: Each with ``claim``, ``where``, ``verdict``, ``why``, and ``figure``, a name or "".
        figures: PNGs by the names that claims have for them.
        commands: What makes it again.
    """

    headline: str
    claims: Sequence[Mapping[str, str]]
    figures: Mapping[str, bytes]
    commands: Sequence[str]

    def rows(self) -> list[dict[str, object]]:
        """The claims for the template."""
        return [
            {
                **one,
                "standing": STANDINGS.get(one["verdict"], "none"),
                "why": inline(one["why"]),
                "figure": one["figure"] if self._shows(one) else "",
            }
            for one in self.claims
        ]

    def _shows(self, claim: Mapping[str, str]) -> bool:
        judged = claim["verdict"] not in ("not finished", "not testable here")
        return judged and claim["figure"] in self.figures

    def pictures(self) -> dict[str, str]:
        """The figures for the template."""
        return {name: base64.b64encode(png).decode() for name, png in self.figures.items()}


def inline(text: str) -> Markup:
    r"""Markdown's code and escapes, within a sentence, as HTML.

    Example:
        >>> inline(r"`hidden_scale=0` is < 1\*")
        Markup('<code>hidden_scale=0</code> is &lt; 1*')
    """
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\\([\\*_|<>\[\]#])", r"\1", html))
