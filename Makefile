# The house's commands. `make` alone lists them.
PYTHON ?= python3
DEMO_ARGS ?=
TEST_ARGS ?=
# A file's tests stay together: its servers start once. WORKERS="-n 0" runs everything in one process.
# The order of the files is that of tests/conftest.py.
WORKERS ?= -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder
LOCK_ARGS ?=
# A release must be this old before a lock takes it (supply-chain cool-down).
COOLDOWN ?= 7 days
# Tests start hundreds of processes: they share compiled modules, also where the environment wants none beside the code.
COMPILED := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/.cache/bytecode
HEAVY := browser or engine or kubernetes or postgres or pulumi or valkey
EMPTY :=
HEAVY_MARKS := mark\.($(subst $(EMPTY) or $(EMPTY),|,$(HEAVY)))\b
# The files of the heavy tiers, unless TEST_ARGS names some: collecting every test takes half a minute.
HEAVY_FILES = $(if $(findstring tests/,$(TEST_ARGS)),,$(shell grep -rlE "$(HEAVY_MARKS)" tests --include="*.py"))
BENCH_ARGS ?=
BIN := .venv/bin
INSTALLED := .venv/.installed
UV_READY := .tools/uv/.installed
PATHS := cli control_plane engines fleet gateway infra local policies simulator sources workloads tests benchmarks .ci

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-heavy check format-check lint imports types audit fix reference bench lock tools tools-engine clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

install: $(INSTALLED) ## build .venv from the locks (needs python3 >= 3.11 with venv)

$(INSTALLED): requirements-uv.lock requirements-dev.lock pyproject.toml .ci/install.py
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing. On Debian or Ubuntu install it as root: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) .ci/install.py
	@touch $@ $(UV_READY)

$(UV_READY): requirements-uv.lock .ci/install.py
	@$(PYTHON) .ci/install.py --uv-only
	@touch $@

demo: $(INSTALLED) ## start the local fleet and take the tour (DEMO_ARGS="--once --yes --no-open" to run through)
	@$(BIN)/enginehouse demo $(DEMO_ARGS)

test: $(INSTALLED) ## every test that needs only Python packages
	@echo "All of it takes 5 to 13 minutes on two cores. The heavy tiers are left out: make test-heavy runs them."
	@$(COMPILED) $(BIN)/pytest -m "not ($(HEAVY))" $(WORKERS) $(TEST_ARGS)

test-all: $(INSTALLED) ## every test, the heavy tiers too
	@$(COMPILED) $(BIN)/pytest $(TEST_ARGS)

test-heavy: $(INSTALLED) ## the heavy tiers alone (make tools builds what they need)
	@$(COMPILED) $(BIN)/pytest -m "$(HEAVY)" $(WORKERS) $(HEAVY_FILES) $(TEST_ARGS)

check: format-check lint imports types audit ## format, lint, import contracts, types, known vulnerabilities

format-check: $(INSTALLED)
	@$(BIN)/ruff format --check $(wildcard $(PATHS))

lint: $(INSTALLED)
	@$(BIN)/ruff check $(wildcard $(PATHS))

imports: $(INSTALLED)
	@$(BIN)/lint-imports

types: $(INSTALLED)
	@$(BIN)/mypy

audit: $(INSTALLED)
	@$(BIN)/python .ci/audit.py requirements.lock

fix: $(INSTALLED) ## format, and repair what ruff can repair
	@$(BIN)/ruff check --fix $(wildcard $(PATHS))
	@$(BIN)/ruff format $(wildcard $(PATHS))

reference: $(INSTALLED) ## write the reference pages of docs/ again from the code
	@$(BIN)/python .ci/reference

bench: $(INSTALLED) ## the gateway's benchmarks into docs/reference/performance.md (BENCH_ARGS=--quick: only whether they work)
	@$(BIN)/python benchmarks/bench.py $(BENCH_ARGS)

lock: $(UV_READY) ## make the locks again from pyproject.toml (LOCK_ARGS=--upgrade for newer versions)
	@COOLDOWN="$(COOLDOWN)" $(PYTHON) .ci/lock.py $(LOCK_ARGS)

tools: $(UV_READY) ## the pinned uv, and what the heavy tiers need, in .tools/ (versions: .ci/tools.toml)
	@$(PYTHON) .ci/tools.py

tools-engine: $(UV_READY) ## the real engine of tier engine, in .tools/vllm (6 GB)
	@$(PYTHON) .ci/engine.py

clean: ## remove everything that was built here
	rm -rf .venv .tools .cache build dist .hypothesis .schemathesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
