# Everything a newcomer or CI runs. `make demo` and `make test` set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench gallery docs wheel clean

help: ## Show this list.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## Create the virtual environment with development dependencies.

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: $(STAMP) ## Ingest the bundled capture, print the ledger, write the report.
	@mkdir -p out
	$(BIN)/roundline ingest traces/worked-example/capture.sqlite -o out/demo.roundline --force
	$(BIN)/roundline reconcile out/demo.roundline --model qwen3.6-27b --draft-steps 3 \
	  --log traces/worked-example/server.log
	$(BIN)/roundline report out/demo.roundline --model qwen3.6-27b --draft-steps 3 \
	  --log traces/worked-example/server.log -o out/demo.md --force

test: $(STAMP) ## Run the tests.
	$(BIN)/python -m pytest -n auto --dist loadfile

check: $(STAMP) ## Lint, types and SQL lint.
	$(BIN)/ruff check pipeline tests benchmarks
	$(BIN)/ruff format --check pipeline tests benchmarks
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/sql/test_sql_contract.py

format: $(STAMP) ## Format the code.
	$(BIN)/ruff check --fix pipeline tests benchmarks
	$(BIN)/ruff format pipeline tests benchmarks

bench: $(STAMP) ## Measure speed and memory against the floor of this machine.
	$(BIN)/python benchmarks/run.py

docs: $(STAMP) ## Regenerate the data dictionary and the command reference.
	$(BIN)/python -m roundline.report.dictionary > docs/data-dictionary.md

wheel: $(STAMP) ## Build the wheel.
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean: ## Remove everything that can be made again.
	rm -rf $(VENV) dist out build .pytest_cache .mypy_cache .ruff_cache
