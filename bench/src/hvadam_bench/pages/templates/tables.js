// Says where a table goes on beyond the edge, and opens what a link leads to.
"use strict";
for (const box of document.querySelectorAll(".scroll")) {
  new ResizeObserver(() => box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1)).observe(box);
}

function unfold() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let box = target && target.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();
