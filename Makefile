# Every target first installs what it needs, and only into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
PYTEST_ARGS ?=
CACP_URL ?= http://127.0.0.1:8080
COMPLY_CACHE ?= .cache/comply

# Tests that run the core in their own process: their coverage is measured, see pyproject.toml.
COVERED_BY := tests/schemas tests/contracts tests/peers tests/server/domain tests/server/store

# Tests are compiled once, not by each worker at each run: overrides the environment.
COMPILED := PYTHONDONTWRITEBYTECODE=
# Collecting compiles what it imports. A fresh checkout does it before the workers start, which would
# otherwise each compile everything at the same time.
COLLECT := $(COMPILED) $(BIN)/pytest --collect-only -qq -p no:cacheprovider
SPLIT := tests/server tests/cli

.PHONY: help install serve mesh cluster test test-postgres coverage soak lint format bench bench-instructions screenshots conformance comply docs lock dist clean
# A failed installation leaves no file that counts as done.
.DELETE_ON_ERROR:

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(VENV)/.installed ## Create .venv with the locked dependencies and the cacp command

serve: install ## Run a node on an embedded SQLite file (./data/cacp.db)
	$(BIN)/cacp serve

test: $(VENV)/.installed-dev ## Run the tests (under five minutes)
	@test -d tests/__pycache__ || { echo "Compiling the tests"; $(COLLECT) $(SPLIT) >/dev/null & \
		$(COLLECT) $(SPLIT:%=--ignore=%) >/dev/null; wait; }
	$(COMPILED) $(BIN)/pytest -n auto --dist worksteal -m "not soak" $(PYTEST_ARGS)

test-postgres: ## Run them with nodes on PostgreSQL (CACP_TEST_DATABASE_URL, or a server of their own)
	TEST_STORE=postgresql $(MAKE) --no-print-directory test

coverage: $(VENV)/.installed-dev ## Measure coverage of the core; fail below the floor
	rm -rf .cache/coverage
	mkdir -p .cache/coverage
	$(COMPILED) $(BIN)/coverage run -m pytest -q -n auto -m "not soak" $(COVERED_BY) $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --fail-under=0 --directory .cache/coverage/html
	$(BIN)/coverage report

mesh: install ## Run a mesh of three nodes on this machine, and show what each holds
	$(BIN)/cacp mesh

cluster: $(VENV)/.installed-cluster ## Run three replicas on PostgreSQL behind a proxy, and show their state
	$(BIN)/cacp cluster

soak: $(VENV)/.installed-dev ## Run the long crash and fuzz tests
	TMPDIR="$${TMPDIR:-/tmp}" TEST_PACE=real $(BIN)/pytest -m soak $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	for folder in examples/orders/*/; do $(BIN)/mypy --config-file= --strict $$folder || exit 1; done

format: $(VENV)/.installed-dev ## Format with ruff and apply its fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev ## Print speed ratios, measured side by side (needs wrk)
	$(BIN)/python -m bench
	$(BIN)/python -m bench.mesh

bench-instructions: $(VENV)/.installed-dev ## Instructions a call before and after (BEFORE=HEAD, AFTER=; needs valgrind)
	$(BIN)/python -m bench.instructions $(BEFORE) $(AFTER)

screenshots: $(VENV)/.installed-dev ## Picture each view of the page (needs Chromium); regenerate docs/images
	$(BIN)/python -m tests.page.screenshots .cache/screenshots

conformance: ## Run the public MCP suite against a running node (CACP_URL; needs Node.js 22 and npx)
	npx --yes @modelcontextprotocol/conformance@0.1.16 server --url $(CACP_URL)/mcp --expected-failures tests/conformance.yml

comply: $(VENV)/.installed-dev ## Test real agents; regenerate docs/comply-matrix.md (needs npm)
	$(BIN)/python -m tests.comply.real $(COMPLY_CACHE) docs/comply-matrix.md
	REAL_AGENTS=$(COMPLY_CACHE)/commands $(BIN)/pytest -q -m soak tests/cli/test_connect_real.py tests/feature

docs: $(VENV)/.installed ## Regenerate docs/ from the code
	$(BIN)/python -m cli.docs

dist: $(VENV)/.installed ## Build the sdist and the wheel into dist/, reproducibly
	rm -rf dist
	$(BIN)/hatchling build -d dist

lock: ## Regenerate the locks from pyproject.toml (needs uv)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --extra cluster -c requirements-dev.lock pyproject.toml -o requirements-cluster.lock
	printf 'hatchling>=1.27\neditables\n' | uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header -c requirements-dev.lock - -o requirements-build.lock

clean: ## Remove the environment and caches (never data/)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name it with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	$(PIP) --require-hashes -r requirements.lock -r requirements-build.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-cluster: requirements-cluster.lock $(VENV)/.installed
	$(PIP) --require-hashes -r requirements-cluster.lock
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(VENV)/.installed
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@
