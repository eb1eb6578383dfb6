# The one list of commands. Paths are relative, so a clone may live in a folder with spaces.
PYTHON ?= python3
PY = .venv/bin/python
# The build of torch to ask for. On many systems plain PyPI's brings gigabytes of CUDA with it: name
# a CPU build there, as torch's own site gives it: make TORCH='torch==2.13.0 --index-url ...'.
TORCH ?= torch==2.13.0
# The oldest build of torch that `make wheels` is to try as well, likewise.
OLDEST ?=
INSTALL = $(PY) -m pip install --disable-pip-version-check -c constraints.txt
NATIVE = $(wildcard src/hvadam/torch/kernels/native*.[ch])

.PHONY: help demo valley evidence findings theory speed figure look docs wheels test test-slow check lint format types clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/'

demo: .venv/bench  ## HVAdam beside Adam on a smooth problem and with mini-batches, and a report
	@echo 'hvadam: next, the demo: about two minutes on one core; if stopped, "make demo" goes on'
	$(PY) -m hvadam demo
	@echo 'hvadam: to look at the report: $(PY) -m hvadam open demo/report.html'

valley: .venv/bench  ## race every contender on the paper's toy functions, write the page; resumable
	$(PY) -m hvadam valley --all --out .

evidence: .venv/bench  ## make the whole comparison, in hours; stops and goes on as you like
	$(PY) -m hvadam evidence --out .

findings: .venv/bench  ## write what the comparison found: pages, figures, the README's table
	$(PY) -m hvadam evidence --steps evidence --out .

theory: .venv/bench  ## measure the paper's theorems beside their bounds; some minutes
	$(PY) -m hvadam theory --out .

speed: .venv/peers  ## time a step of HVAdam beside Adam and AdaBelief; on a quiet machine, minutes
	$(PY) -m hvadam speed

docs: .venv/docs  ## the documentation site in build/site, to be read from disk
	$(PY) website/prepare.py build/docs
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo 'hvadam: to look at it: open build/site/index.html'

wheels: .venv/wheels  ## both packages as others get them: built, checked, tried in an empty place
	rm -rf dist build/lib build/bdist.* bench/build
	$(PY) -m build --outdir dist .
	$(PY) -m build --outdir dist ./bench
	$(PY) -m twine check --strict dist/*
	$(PY) tests/empty_place.py dist "$(PYTHON)" $(TORCH)
	@if [ -n '$(OLDEST)' ]; then $(PY) tests/empty_place.py dist "$(PYTHON)" $(OLDEST); \
	  else echo 'hvadam: not tried with the oldest torch; name a CPU build of it: make OLDEST=...'; fi

figure: .venv/bench  ## draw the figure of the method again
	$(PY) website/method_figure.py docs/figures

look: .venv/dev  ## pictures of the report in Chromium, wide and narrow, light and dark
	PYTHONPATH=tests $(PY) tests/look.py look

test: check  ## lint, type-check, run the fast tests

check: lint types
	$(PY) -m pytest -m "not slow"

test-slow: .venv/dev  ## the rest: matrices, real processes, compilers
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -m slow

lint: .venv/dev
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

format: .venv/dev  ## rewrite the sources in the project's style
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

types: .venv/dev
	$(PY) -m basedpyright

# What each command needs and no more: the bench runs without the tools that develop it.
.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'hvadam: Python 3.11 or newer is needed as "$(PYTHON)"; name another: make PYTHON=python3.12 ...'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'hvadam: "$(PYTHON) -m venv" is missing. On Debian or Ubuntu: apt install python3-venv'; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/bench: .venv/python pyproject.toml bench/pyproject.toml constraints.txt setup.py $(NATIVE)
	@echo 'hvadam: installing "$(TORCH)"; for another build, say without CUDA, stop and name it: make TORCH=...'
	$(INSTALL) $(TORCH)
	@echo 'hvadam: next, the library and the bench'
	$(INSTALL) -e '.[torch]' -e ./bench
	@echo 'hvadam: installed in .venv, once'
	@touch $@

.venv/dev: .venv/bench
	@echo 'hvadam: installing what develops and tests it: linters, trainers, JAX, Ray; once, some minutes'
	$(INSTALL) -e '.[dev]' -e './bench[peers,ray]'
	@touch $@

.venv/peers: .venv/bench
	@echo 'hvadam: installing the optimizers of others, to time them'
	$(INSTALL) -e '.[torch]' -e './bench[peers]'
	@touch $@

.venv/docs: .venv/bench
	@echo 'hvadam: installing what builds the documentation'
	$(INSTALL) -e '.[docs]' -e ./bench
	@touch $@

.venv/wheels: .venv/python constraints.txt
	$(INSTALL) build twine
	@touch $@

clean:  ## remove what the commands made
	rm -rf .venv build dist demo look runs speed-results theory-results valley-results .pytest_cache .ruff_cache .hypothesis
