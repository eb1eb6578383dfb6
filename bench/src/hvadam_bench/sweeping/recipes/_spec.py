"""The class of the recipes in this folder."""

from hvadam_bench.sweeping.recipe import Recipe

__all__ = ["Recipe"]
