# The environment is .venv in this folder, made from requirements.lock when a target first needs it and again when the
# lock changes. `make PYTHON=/path/to/python3.12 setup` picks another interpreter.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.made-from-lock
DOCS := examples/library
OUT := demo-out

.PHONY: help setup demo test vllm check format bench lock library clean
.DEFAULT_GOAL := help

help: ## what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

setup: $(STAMP) ## the environment in .venv

$(STAMP): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "MARG-Ray needs Python 3.11 or newer; $$(python3 --version 2>/dev/null || echo 'no python3') was found." >&2; \
		echo "Install python3.11 (with its venv module), or name one: make PYTHON=/path/to/python3.12 setup" >&2; exit 1; fi
	@echo "making .venv from requirements.lock with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv .venv || { echo "the venv module is missing: on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## three questions of examples/library, answered offline into demo-out/
	@BIN=$(BIN) DOCS=$(DOCS) OUT=$(OUT) bash examples/demo.sh

test: $(STAMP) ## all tests
	$(BIN)/python -m pytest -q

vllm: ## the tests of both tiers on the real engine, in an environment of their own (.venv-vllm, 4 GB)
	bash tests/vllm/environment.sh
	.venv-vllm/bin/python -m pytest -q tests/vllm

check: $(STAMP) ## format, lint, types and the layers of the packages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP) ## benchmarks; results go to standard output
	$(BIN)/python benchmarks/overhead.py

lock: ## resolve pyproject.toml into requirements.lock, keeping its pins; make lock UPGRADE=--upgrade takes the newest
	@cp requirements.lock requirements.lock.new
	@$(BIN)/python -m piptools compile --quiet $(UPGRADE) --extra dev --strip-extras --no-header --no-annotate --allow-unsafe \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
		--output-file requirements.lock.new pyproject.toml
	@{ echo "# Exact versions of the core and dev dependencies in pyproject.toml, resolved for Python 3.11 on Linux."; \
	   echo "# Written by 'make lock'; edit pyproject.toml instead. torch stands without a local build tag, so that the"; \
	   echo "# index a machine uses decides between its CPU and its GPU build."; \
	   grep -Ev '^(#|$$|pip==)' requirements.lock.new | sed -E 's/^(torch==[0-9.]+)\+[a-z0-9.]+/\1/'; } > requirements.lock
	@rm -f requirements.lock.new

library: $(STAMP) ## build the PDF and Word files of examples/library again
	$(BIN)/python examples/build_library.py

clean: ## remove what was built, except the environments
	rm -rf $(OUT) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
