# Everything here works on a fresh machine with python3, make and the package registries.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

# The stamps are remade when pyproject.toml changes, so that a pull never runs on stale packages.
$(VENV)/.stamp-run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.stamp-dev: $(VENV)/.stamp-run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

# What only the slow tests need: local image models, the real Codex, tmux and npm. It is large.
$(VENV)/.stamp-local: $(VENV)/.stamp-dev scripts/components.sh
	sh scripts/components.sh
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group local
	@touch $@

setup: $(VENV)/.stamp-dev ## Install limner and the tools to work on it into .venv

demo: $(VENV)/.stamp-run ## Draw a picture offline, then look at it
	@$(BIN)/limner demo

test: $(VENV)/$(if $(filter all,$(REQUIRE)),.stamp-local,.stamp-dev) ## Run the tests (REQUIRE=all runs the slow ones too and fails where a component is missing)
	@$(PYTEST) $(if $(filter all,$(REQUIRE)),,-m "not slow") $(ARGS)

check: $(VENV)/.stamp-dev ## Lint, types, layers and documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/reference.py --check

format: $(VENV)/.stamp-dev ## Format the code and regenerate the reference pages
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .
	$(BIN)/python scripts/reference.py

bench: $(VENV)/.stamp-dev ## Measure limner and its peers side by side
	$(BIN)/python -m benchmarks

prices: $(VENV)/.stamp-dev ## List where our price rows and public price maps differ
	@$(BIN)/python scripts/prices.py

fuzz: $(VENV)/.stamp-dev ## Run the property tests and attackers for long
	LIMNER_FUZZ=long $(PYTEST) -m "slow or not slow" -k "property or attacker or hostile or kill" --timeout=3600 $(ARGS)

clean: ## Remove what make made
	rm -rf $(VENV) dist build .bench .pytest_cache .ruff_cache .hypothesis

.PHONY: help setup demo test check format bench prices fuzz clean
