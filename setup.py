"""Builds the native kernel where a C compiler is; installation succeeds without one.

Everything else is in pyproject.toml.
"""

import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = "src/hvadam/torch/kernels/"


class BuildNative(build_ext):
    """Compile for the tools at hand: OpenMP if the compiler has it, else one thread."""

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception:
            ext.extra_compile_args = [x for x in ext.extra_compile_args if x != "-fopenmp"]
            super().build_extension(ext)


setup(
    ext_modules=[
        Extension(
            "hvadam.torch.kernels._native",
            [KERNELS + "native.c"],
            depends=[
                KERNELS + f"native_{part}.h"
                for part in ("8_bit", "bf16", "block", "core", "full", "storage", "vectors")
            ],
            # No -lgomp: torch has an OpenMP runtime loaded, and two would fight over the cores.
            extra_compile_args=[
                "-O3",
                "-std=c11",
                "-fopenmp",
                "-fvisibility=hidden",
                "-ffp-contract=off",  # fused where the source says so, not where a compiler likes
                "-fno-math-errno",
                "-fno-trapping-math",
                "-Wno-psabi",
            ],
            # Stripped: symbols are most of its size, and nobody debugs it from a wheel.
            extra_link_args=["-Wl,-s"] if sys.platform == "linux" else [],
            optional=True,  # without a compiler the portable kernels serve
        )
    ],
    cmdclass={"build_ext": BuildNative},
)
