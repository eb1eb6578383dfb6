"""Profiles for hypothesis: a short one for every run, a long one for `make test-slow`."""

import os

from hypothesis import HealthCheck, settings

common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("short", max_examples=40, derandomize=True, **common)
settings.register_profile("long", max_examples=1000, **common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))
