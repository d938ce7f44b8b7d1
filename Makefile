# `make demo` and `make test` need Python 3.11 or later and nothing else: they create .venv and install into it.
PYTHON ?= python3
TO ?= de
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow check check-native format clean

help:
	@echo "make demo [TO=de|fr|zh]   train a translator in minutes and see it translate"
	@echo "make test                 run the tests"
	@echo "make check                format, lint, types, floors, spelling"
	@echo "make check-native         the engine's tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make test-slow            run the long tests too"

$(STAMP): pyproject.toml constraints.txt $(wildcard native/cpp/* native/src/headway_native/*) native/CMakeLists.txt native/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "headway needs Python 3.11 or later; found $$($(PYTHON) --version). Pass another with: make PYTHON=python3.12 demo"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check ./native || echo "headway-native, the engine for processors, was not built (it wants a C++20 compiler): torch computes in its place"
	@touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/headway demo --to $(TO)

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m "slow or not slow"

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/codespell

check-native: $(STAMP)
	native/check.sh $(BIN)/python

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) runs
