"""The step-time benchmark: HVAdam beside Adam and AdaBelief, on the same tensors, in pairs.

``benchmark.benchmark`` measures, ``result.Speed`` is what it found. Importing this package, or the
result's types, loads no framework.
"""
