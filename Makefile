# `make demo` and `make test` set up everything they need; they ask for nothing but Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_WORKERS ?= 2
PYTHONS ?= python3.11 python3.12 python3.13
CODE := src studies/src studies/tests tests examples benchmarks docs tools conftest.py
BOTH := --editable . --editable ./studies

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-federation test-lowest test-pythons lint hooks docs docs-write-out bench leaderboard-quick paper paper-quick advice-study \
  release-check audit format clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(VENV)/demo.stamp  ## train 20 clients with eight methods and show who gains (about two minutes with the install)
	$(BIN)/dffl demo

test: $(VENV)/dev.stamp lint docs  ## style, types, import directions, docs and tests
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal --durations 40 --durations-min 4

test-slow: $(VENV)/dev.stamp  ## what `make test` leaves out: 100,000-instance oracle tests, interrupts at random moments, and the tests of tests/slow.txt (long)
	$(BIN)/pytest -m slow -n $(PYTEST_WORKERS)

test-federation: $(VENV)/dev.stamp  ## 20 of each fault in a real federation of processes, and 20 sites that are killed in turn (an hour)
	$(BIN)/python -m benchmarks.federation_faults
	$(BIN)/python -m benchmarks.federation_faults --churn

test-lowest: $(VENV)/release.stamp  ## the tests with the lowest version that is allowed of each dependency (20 minutes)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/lowest
	$(BIN)/uv pip install --quiet --python $(VENV)/lowest --resolution lowest-direct --editable '.[test]' --editable ./studies
	$(VENV)/lowest/bin/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal

test-pythons: $(VENV)/release.stamp  ## the tests with each Python of PYTHONS that is at hand (20 minutes each)
	@found=0; for python in $(PYTHONS); do \
	  if $$python -c '' 2>/dev/null; then \
	    $(BIN)/uv venv --quiet --clear --python "$$($$python -c 'import sys; print(sys.executable)')" $(VENV)/other && \
	    $(BIN)/uv pip install --quiet --python $(VENV)/other --editable '.[test]' --editable ./studies && \
	    $(VENV)/other/bin/python --version && \
	    $(VENV)/other/bin/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal || exit 1; found=1; \
	  else echo "$$python: not at hand"; fi; done; [ $$found = 1 ] || { echo "none of these is at hand: $(PYTHONS)"; exit 1; }

lint: $(VENV)/dev.stamp  ## style, types and import directions
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

hooks: $(VENV)/release.stamp  ## run the linters before every commit
	$(BIN)/pre-commit install

docs: $(VENV)/dev.stamp  ## build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site: site/index.html"

docs-write-out: $(VENV)/dev.stamp  ## write examples, tables and what commands print into the pages and notebooks that show them
	$(BIN)/python docs/write_out.py

bench: $(VENV)/demo.stamp  ## measure speed and memory on this machine
	$(BIN)/dffl bench

leaderboard-quick: $(VENV)/demo.stamp  ## all methods on three federations, with ranks and cost (five minutes)
	$(BIN)/dffl leaderboard --quick

paper-quick: $(VENV)/demo.stamp  ## a small, faithful version of the paper's synthetic study (six minutes)
	$(BIN)/dffl paper --quick

advice-study: $(VENV)/demo.stamp  ## judge the advice on 432 synthetic federations (hours)
	$(BIN)/dffl advice-study

paper: $(VENV)/demo.stamp  ## the whole synthetic study (hours; stop it and continue as you like)
	$(BIN)/dffl paper

release-check: $(VENV)/release.stamp  ## build wheel and sdist, look into them, run the demo from the wheel (three minutes)
	$(BIN)/python tools/release_check.py

audit: $(VENV)/release.stamp  ## known vulnerabilities of the dependencies, where their list can be reached
	$(BIN)/pip-audit --local --skip-editable

format: $(VENV)/dev.stamp  ## rewrite the code in the project's style
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

clean:  ## remove what was built
	rm -rf $(VENV) site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("dffl needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(BIN)/python pyproject.toml studies/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(BOTH)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint,docs]' --editable ./studies
	@touch $@

$(VENV)/release.stamp: $(VENV)/dev.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]' --editable ./studies
	@touch $@
