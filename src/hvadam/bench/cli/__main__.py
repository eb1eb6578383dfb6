"""``python -m hvadam.bench.cli``."""

import sys

from hvadam.bench.cli import main

sys.exit(main())
