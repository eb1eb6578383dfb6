"""An LSTM over the characters of Shakespeare's plays."""

from hvadam_bench.problems.characters import task

TASK = task("shakespeare_lstm", "tinyshakespeare", "Character LSTM on tiny Shakespeare")
