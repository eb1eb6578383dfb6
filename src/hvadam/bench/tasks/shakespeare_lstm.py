"""An LSTM over the characters of Shakespeare's plays."""

from hvadam.bench.tasks._characters import task

TASK = task("shakespeare_lstm", "tinyshakespeare", "Character LSTM on tiny Shakespeare")
