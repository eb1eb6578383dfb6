"""Equations as physics-informed networks have them: residuals at points, no grid of unknowns."""
