# Two commands for a fresh machine: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench clean

$(VENV)/.base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,dev]'
	touch $@

demo: $(VENV)/.base
	$(BIN)/loadbench demo

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# LOADBENCH_TESTS=thorough for many times the examples of each property; some tests: .venv/bin/python -m pytest PATH
test: lint
	$(BIN)/python scripts/tests.py

# BENCH=--quick for two minutes instead of twelve; one part: BENCH="floor W1:500"
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(BENCH)

clean:
	rm -rf $(VENV) dist build runs
