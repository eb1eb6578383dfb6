"""Optimizers at work on small problems; needs the extra ``hvadam[bench]``."""
