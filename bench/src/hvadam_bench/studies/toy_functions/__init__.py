"""The paper's toy functions, raced from everywhere instead of from one start.

``comparison.compare`` runs the study, ``result.Comparison`` is what it found. Importing this
package, or the result's types, loads no framework.
"""
