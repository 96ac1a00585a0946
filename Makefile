# `make demo` and `make test` set up everything they need; they ask for nothing but Python 3.11 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint docs docs-write-out bench paper paper-quick advice-study format clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

demo: $(VENV)/demo.stamp  ## train 20 clients with every method and show who gains (a minute with the install)
	$(BIN)/dffl demo

test: $(VENV)/dev.stamp lint docs  ## style, types, import directions, docs and tests
	$(BIN)/pytest -n $(PYTEST_WORKERS) --dist worksteal

test-slow: $(VENV)/dev.stamp  ## the 100,000-instance oracle tests (minutes)
	$(BIN)/pytest -m slow -n $(PYTEST_WORKERS)

lint: $(VENV)/dev.stamp  ## style, types and import directions
	$(BIN)/ruff check src tests examples benchmarks docs
	$(BIN)/ruff format --check src tests examples benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/dev.stamp  ## build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site: site/index.html"

docs-write-out: $(VENV)/dev.stamp  ## write examples and tables into the pages that show them
	$(BIN)/python docs/write_out.py

bench: $(VENV)/demo.stamp  ## measure speed and memory on this machine
	$(BIN)/dffl bench

paper-quick: $(VENV)/demo.stamp  ## a small, faithful version of the paper's synthetic study (three minutes)
	$(BIN)/dffl paper --quick

advice-study: $(VENV)/demo.stamp  ## judge the advice on 432 synthetic federations (an hour)
	$(BIN)/dffl advice-study

paper: $(VENV)/demo.stamp  ## the whole synthetic study (hours; stop it and go on as you like)
	$(BIN)/dffl paper

format: $(VENV)/dev.stamp  ## rewrite the code in the project's style
	$(BIN)/ruff check --fix src tests examples benchmarks docs
	$(BIN)/ruff format src tests examples benchmarks docs

clean:  ## remove what was built
	rm -rf $(VENV) site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("dffl needs Python 3.11 or newer, found " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint,docs]'
	@touch $@
