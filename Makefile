# The two commands: `make serve` runs Memplane, `make test` proves it. Each does all of its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip

.PHONY: help env serve demo test attack check lint types format lock bench bench-recall bench-backlog bench-documents bench-server bench-metering bench-proxy bench-sync bench-console bench-peers bench-scale eval training-env train-tiny screenshots clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

env: $(VENV)/ready ## Create .venv with Memplane in it

$(VENV)/ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Memplane needs Python 3.11 or newer; set PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --require-hashes -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

serve: env ## Run the server on 127.0.0.1:8700
	$(BIN)/memplane serve

demo: env ## A scripted tour in the terminal
	$(BIN)/memplane demo

test: env ## Run every test
	$(BIN)/python -m pytest -n auto --dist worksteal

# The long form of tests/attack. Each count can be set: `make attack MEMPLANE_ATTACK_SOAK_SECONDS=600`.
attack: export MEMPLANE_ATTACK = long
attack: export MEMPLANE_ATTACK_KILLS ?= 1000
attack: export MEMPLANE_ATTACK_SOAK_SECONDS ?= 3600
attack: export MEMPLANE_ATTACK_SEEDS ?= 20000
attack: export MEMPLANE_ATTACK_SPACES ?= 1000
attack: export MEMPLANE_ATTACK_TABLE ?= 1
attack: env ## Attack Memplane for hours: kills, credentials, bombs, a full disk, a soak, simulated syncs; prints a table
	$(BIN)/python -m pytest -n 2 --dist load --timeout 0 tests/attack

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env
	$(BIN)/mypy

check: lint types test ## Lint, types and tests: run it before a push

format: env ## Let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: env ## The engine benchmark, as ratios of one run
	$(BIN)/python -m benchmarks.engine

bench-recall: env ## The recall benchmark: latency by part, enrichment beside the bare model
	$(BIN)/python -m benchmarks.recall

bench-backlog: env ## Recall while 50,000 turns wait: empty answers, CPU against the budget, latency against the limit
	$(BIN)/python -m benchmarks.backlog

bench-documents: env ## The document benchmark: uploads a second, span recall at 10 k and 100 k spans
	$(BIN)/python -m benchmarks.documents

bench-server: env ## The server benchmark: calls a second and latencies, beside the engine's own
	$(BIN)/python -m benchmarks.server

bench-metering: env ## What metering, limits and the directory of documents cost
	$(BIN)/python -m benchmarks.metering

bench-proxy: env ## The proxy benchmark: what it adds to a turn, memory off and on
	$(BIN)/python -m benchmarks.proxy

bench-sync: env ## The sync benchmark: requests, bytes and time of pushes and pulls, what merging costs
	$(BIN)/python -m benchmarks.sync

bench-console: env ## How long the server takes for every page of the console at 100 k memories
	$(BIN)/python -m benchmarks.console

bench-scale: env ## PostgreSQL with many processes, many spaces and a large one, beside a bare pgvector query
	$(BIN)/python -m benchmarks.scale

bench-peers: env ## Memplane beside other memories, each installed into .venv-peers
	$(BIN)/python -m benchmarks.peers

eval: export MEMPLANE_EVAL_DATA ?= ../shared/data
eval: env ## Quality on the data sets in MEMPLANE_EVAL_DATA
	$(BIN)/python -m benchmarks.quality

training-env: .venv-training/ready

.venv-training/ready: training/requirements.txt
	$(PYTHON) -m venv .venv-training
	PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-training/bin/python -m pip install --quiet --prefer-binary -r training/requirements.txt
	@touch $@

train-tiny: training-env ## Every step of training the embedding model, on made-up data
	.venv-training/bin/python -m training.tiny

screenshots: env ## Pictures of the console for the docs, into docs/images
	PYTHONPATH=tests/support $(BIN)/python -m scripts.screenshots

lock: env ## Pin the dependencies anew, with hashes and without addresses
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header \
	  --no-emit-index-url --no-annotate --quiet --output-file requirements.lock

clean: ## Remove what the commands above made
	rm -rf $(VENV) .venv-peers .venv-training .conformance .eval-cache dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
