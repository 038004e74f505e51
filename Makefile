# Everything here works on a fresh machine with python3, make and the package registries.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
# Without compiled files every process would compile limner anew, and there are many in the tests.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# The stamps name the Python, so that another one gets a new environment.
VERSION := $(shell $(PYTHON) -c "import sys; print('%d.%d' % sys.version_info[:2])")
RUN := $(VENV)/.stamp-run-$(VERSION)
DEV := $(VENV)/.stamp-dev-$(VERSION)
LOCAL := $(VENV)/.stamp-local-$(VERSION)
ALL := $(filter all,$(REQUIRE))
# ARGS may choose tests of one tier alone; pytest calls the other run, with no test, a failure.
OR_NONE := || test $$? -eq 5

# The stamps are remade when a dependency changes, so that a pull never runs on stale packages.
$(RUN): pyproject.toml requirements/runtime.txt requirements/build.txt
	@test -e $@ || $(PYTHON) -m venv --clear $(VENV)
	$(PIP) --require-hashes -r requirements/build.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUN) requirements/dev.txt
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

# What only the slow tests need: local image models, the real Codex, tmux, npm and PostgreSQL. It is large. No
# hash holds for every build of torch (see scripts/lock.py), so pip adds torch at the end.
$(LOCAL): $(DEV) requirements/local.txt scripts/components.sh
	sh scripts/components.sh
	$(PIP) --require-hashes --no-deps -r requirements/local.txt
	$(PIP) --group local
	@touch $@

##@ Start here

demo: $(RUN) ## Draw a scene, a chart and a diagram offline, and look at one
	@$(BIN)/limner demo

# No test makes a claim about time, so the slow ones share the cores too, a file at a time.
test: $(if $(ALL),$(LOCAL),$(DEV)) ## Run the tests (REQUIRE=all runs the slow ones too and fails if a component is missing)
	@$(PYTEST) -m "not slow and not browser" --numprocesses auto --dist worksteal $(ARGS) $(if $(ALL),$(OR_NONE))
	@$(if $(ALL),$(PYTEST) -m slow --numprocesses auto --dist loadfile $(ARGS) $(OR_NONE))

help: ## List what can be made
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Work on limner

setup: $(DEV) ## Install limner and the tools to work on it into .venv

check: $(DEV) ## Lint, types, layers and documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python scripts/reference.py --check

format: $(DEV) ## Format the code and regenerate the reference pages
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .
	$(BIN)/python scripts/reference.py

clean: ## Remove what make made
	rm -rf $(VENV) dist build .bench .browser .ecosystem .pytest_cache .ruff_cache .hypothesis

##@ Try it hard

bench: $(DEV) ## Measure limner and its peers side by side
	$(BIN)/python -m benchmarks

fuzz: $(LOCAL) ## Run the property tests and attackers for long
	LIMNER_FUZZ=long REQUIRE=all $(PYTEST) -m "slow or not slow" -k "hypothesis or property or attacker or hostile or kill" --timeout=3600 --numprocesses 6 --dist worksteal $(ARGS)

coverage: $(DEV) requirements/coverage.txt ## Run the fast tests, and list the ten modules whose lines and branches they reach least
	$(PIP) --require-hashes --no-deps -r requirements/coverage.txt
	@rm -rf build/coverage && mkdir -p build/coverage
	@# The two tests that it leaves out see the counting itself: in the list of modules, and in the output of a worker.
	$(BIN)/python -m coverage run -m pytest -m "not slow and not browser" -n auto -q -k "not (loads_no_heavy_module or stray_print)" $(ARGS)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --sort=cover --skip-empty | sed -n '1,12p;/^TOTAL/p'

mutants: $(DEV) requirements/mutants.txt ## Change core files at random and count what the tests notice
	$(PIP) --require-hashes --no-deps -r requirements/mutants.txt
	$(BIN)/python scripts/mutants.py $(ARGS)

faults: $(LOCAL) ## Let every system call of a paid call fail once, then try small limits (needs strace and root; takes hours)
	$(BIN)/python -m tests.faults.sweep $(ARGS)
	$(BIN)/python -m tests.faults.sweep --answered $(ARGS)
	$(BIN)/python -m tests.faults.limits

browser: $(LOCAL) ## Drive the studio and the docs site in Chromium, with axe and Schemathesis; screenshots are in .browser/
	LIMNER_SHOTS=.browser REQUIRE=all $(PYTEST) tests/browser --timeout=1800 $(ARGS)

kills: $(LOCAL) ## Kill the workers of a batch of 10,000 rows 50 times, and caption 2,000 pictures with interruptions
	$(BIN)/python -m tests.faults.batch_kills 10000 50
	$(BIN)/python -m tests.faults.lane_kills
	$(BIN)/python -m tests.faults.captions 2000 3

cluster: $(LOCAL) ## Run 10,000 rows on two hosts, one of them cut off, and on Ray, with a node killed, and the suites of PostgreSQL and S3 (needs root and iproute2)
	REQUIRE=all $(PYTEST) -m slow --numprocesses auto --dist loadfile tests/storage tests/money tests/batches tests/acceptance/test_object_storage.py tests/acceptance/test_lost_commits.py $(ARGS)
	$(BIN)/python -m tests.faults.cluster 10000
	$(BIN)/python -m tests.faults.ray_cluster 10000

ecosystem: $(DEV) ## Run limner in every agent and framework, with four releases of the MCP SDK and the conformance suite (ARGS="langchain crewai" runs two)
	$(BIN)/python -m tests.ecosystem $(ARGS)

##@ Release

docs: $(DEV) ## Build the documentation site in build/site; a broken link fails
	$(BIN)/python scripts/docs_site.py
	$(BIN)/zensical build --strict --clean

lock: ## Write the versions and hashes of all dependencies (ARGS=--upgrade takes the newest)
	$(PYTHON) scripts/lock.py $(ARGS)

audit: ## Look for known vulnerabilities in the locked dependencies, if the database can be reached
	$(PYTHON) scripts/audit.py

prices: $(DEV) ## List where our price rows and public price maps differ
	@$(BIN)/python scripts/prices.py

wheel: $(RUN) ## Build the wheel, always the same bytes, and its SBOM (CycloneDX) in dist/
	rm -rf dist
	$(BIN)/python -m hatchling build --target wheel --directory dist
	$(BIN)/python scripts/sbom.py dist

.PHONY: help docs coverage setup lock wheel audit demo test check format bench prices fuzz faults kills cluster ecosystem mutants clean browser
