// Sets the formulas of a page, which arithmatex marks, with the KaTeX beside it.
"use strict";

function setFormulas() {
  for (const one of document.querySelectorAll(".arithmatex:not(:has(.katex))")) {
    const text = one.textContent.trim();
    const displayMode = text.startsWith("\\[");
    katex.render(text.slice(2, -2), one, { displayMode, throwOnError: false });
  }
}

document.addEventListener("DOMContentLoaded", setFormulas);
