"""Compiles the Triton passes for a GPU that need not be there; prints what to look at, as JSON."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from hvadam.torch.kernels import triton_passes

TABLE, DOUBLES = "*i64", "*fp64"
COMMON = {"table": TABLE, "options": DOUBLES, "work": DOUBLES}
PATTERNS = {
    "wide": r"ld\.global\.v4\.b32",  # 16 bytes at once
    "fused": r"\bfma\.rn\.f",  # rounds once instead of twice
    "loose": r"\b(?:div|sqrt)\.(?!rn)",  # does not round to nearest
}


def main() -> None:
    assembly("prepare", COMMON)
    assembly("fold", {"partial": DOUBLES, "ends": TABLE, "dots": DOUBLES})
    found: dict[str, dict[str, int]] = {}
    for flag, kept, aligned in itertools.product((False, True), range(3), (False, True)):
        for name, ptx in passes(flag, kept, aligned).items():
            counts = {what: len(re.findall(pattern, ptx)) for what, pattern in PATTERNS.items()}
            found[f"{name} {flag=} {kept=} {aligned=}"] = counts
    print(json.dumps(found))


def passes(flag: bool, kept: int, aligned: bool) -> dict[str, str]:
    """The assembly of the passes over memory, in one of their forms."""
    chunked, scalars = {**COMMON, "chunks": TABLE}, {"mix": DOUBLES, "gain": DOUBLES}
    theta = tl.bfloat16 if flag else tl.float32
    types = {"THETA_TYPE": theta, "REAL": tl.float32, "KEPT": kept, "ALIGNED": aligned}
    squares = {"table": TABLE, "chunks": TABLE, "partial": DOUBLES}
    return {
        "squares": assembly("squares", squares, G_TYPE=theta, ALIGNED=aligned),
        "first": assembly(
            *("first", {**chunked, "partial": DOUBLES}),
            **{**types, "G_TYPE": theta, "ADAM": flag, "COUPLED": flag},
        ),
        "second": assembly("second", {**chunked, **scalars}, **types),
    }


def assembly(name: str, pointers: dict[str, str], **constants: Any) -> str:
    function = getattr(triton_passes, name)
    place = function.arg_names.index
    signature = {x: pointers.get(x, "i32") for x in function.arg_names if x not in constants}
    source = ASTSource(
        function,
        {**signature, **dict.fromkeys(constants, "constexpr")},
        {(place(x),): value for x, value in constants.items()},
        {(place(x),): [["tt.divisibility", 16]] for x in pointers},
    )
    made = compile(source, GPUTarget("cuda", 80, 32), {"enable_fp_fusion": False})
    assert made.asm["cubin"]
    return made.asm["ptx"]


if __name__ == "__main__":
    main()
