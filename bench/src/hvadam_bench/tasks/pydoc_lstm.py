"""An LSTM over the characters of Python's own help, which needs no download.

The text grows with Python's versions: compare runs under the same one.
"""

from hvadam_bench.problems.characters import task

TASK = task("pydoc_lstm", "pydoc", "Character LSTM on Python's help texts")
