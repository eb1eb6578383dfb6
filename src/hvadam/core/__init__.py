"""The method itself, NumPy only: hyper-parameters, scalar policy, and the float64 reference."""
