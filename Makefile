# The one list of commands. Paths are relative, so a clone may live in a folder with spaces.
PYTHON ?= python3
PY = .venv/bin/python

.PHONY: help demo valley evidence findings theory speed look test test-slow check lint format types clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/'

demo: .venv/installed  ## race in the valley, tune and train six optimizers on three tasks, write a report
	$(PY) -m hvadam.bench.cli demo

valley: .venv/installed  ## race every contender on the paper's toy functions, write the page; resumable
	$(PY) -m hvadam.bench.cli valley --all --out .

evidence: .venv/installed  ## make the whole comparison, in hours; stops and goes on as you like
	$(PY) -m hvadam.bench.cli evidence

findings: .venv/installed  ## write what the comparison found: pages, figures, the README's table
	$(PY) -m hvadam.bench.cli findings

theory: .venv/installed  ## measure the paper's theorems beside their bounds; some minutes
	$(PY) -m hvadam.bench.cli theory --out .

speed: .venv/peers  ## time a step of HVAdam beside Adam and AdaBelief; on a quiet machine, minutes
	$(PY) -m hvadam.bench.cli speed

look: .venv/installed  ## pictures of the report in Chromium, wide and narrow, light and dark
	PYTHONPATH=tests $(PY) tests/bench/look.py look

test: check  ## lint, type-check, run the fast tests

check: lint types
	$(PY) -m pytest -m "not slow"

test-slow: .venv/installed  ## the rest: matrices, real processes, compilers
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -m slow

lint: .venv/installed
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

format: .venv/installed  ## rewrite the sources in the project's style
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

types: .venv/installed
	$(PY) -m basedpyright

.venv/installed: pyproject.toml constraints.txt setup.py $(wildcard src/hvadam/torch/kernels/native*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'hvadam: Python 3.11 or newer is needed as "$(PYTHON)"; name another: make PYTHON=python3.12 ...'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'hvadam: "$(PYTHON) -m venv" is missing. On Debian or Ubuntu: apt install python3-venv'; exit 1; }
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch .venv/installed

.venv/peers: .venv/installed
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench,peers]'
	@touch .venv/peers

clean:  ## remove what the commands made
	rm -rf .venv build dist demo look runs speed-results theory-results valley-results valley-runs .pytest_cache .ruff_cache .hypothesis
