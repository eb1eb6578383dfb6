"""The paper's three theorems, measured beside their bounds.

``measurement.measure`` runs the study, ``result.Theory`` is what it found.
"""
