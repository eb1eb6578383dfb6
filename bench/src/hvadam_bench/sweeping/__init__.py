"""Many runs: the search for hyperparameters, and engines that run jobs side by side."""
