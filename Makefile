# The whole kit from two commands: `make run`, `make test`. Both set .venv up first when it is
# missing or out of date. `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help setup ready run site slides figures lab lint test soak test-matrix sdk-v3 ray bench doctor lock bundle clean distclean
SHELL := /bin/sh

# Another Python for .venv:  make setup PYTHON=/path/to/python3.11
PYTHON ?=
BIN := .venv/bin
# Tests that run at once:  make test WORKERS=2
WORKERS ?= 3
# What a target starts finds mpirun, torchrun and python in .venv first.
INSIDE := PATH="$$PWD/$(BIN):$$PATH"; export PATH; exec
BOOTSTRAP := python=$$(command -v python3 || command -v python3.11 || command -v python3.12) \
	|| { echo "No python3 was found: install Python 3.11 first."; exit 1; }; "$$python" -sE -m tools.setup

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | awk -F'\t' '{printf "make %-12s %s\n", $$1, $$2}'

setup: ## install everything into .venv; in seconds where nothing is to do
	@$(BOOTSTRAP) --force $(if $(PYTHON),--python "$(PYTHON)")

ready: # set up only when missing or out of date
	@$(BOOTSTRAP)

run: ready ## run every lesson here, no AWS account; the pages go to build/
	@$(INSIDE) $(BIN)/workshop run

site: ready ## build the site in build/site from the pages of the last `make run`
	@$(INSIDE) $(BIN)/python -m tools.site

figures: ready ## renew the README's pictures and table from the last `make run`
	@$(INSIDE) $(BIN)/python -m tools.figures

slides: ready ## build decks for lessons and timetables in build/slides from the last `make run`
	@$(INSIDE) $(BIN)/python -m tools.slides

lab: ready ## open the lessons in JupyterLab, emulator up (ARGS=--no-browser: its options)
	@$(INSIDE) $(BIN)/workshop lab $(ARGS)

lint: ready ## check style, types, imports and the course's texts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tests/lint
	@$(BIN)/python -m tools.sync --check

test: ready ## run the tests, three at a time (WORKERS=2: two)
	@unset PYTHONDONTWRITEBYTECODE; $(INSIDE) $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

soak: ready ## the tests that repeat for minutes: kills, hundreds of jobs, a fuzzer
	@$(INSIDE) $(BIN)/pytest -m soak --timeout 3600

test-matrix: ready ## run the scripts' tests in the frameworks of AWS's images (ONLY=NAME: one)
	@PYTHONPATH="$$PWD" exec $(BIN)/python tests/scripts/matrix $(ONLY)

sdk-v3: ready ## the lessons' jobs with version 3 of the SDK (1 GB, once; ONLY=11: one lesson's)
	@cmp -s notebooks/sdk_v3/requirements.txt build/sdk-v3/whole || { \
		rm -f build/sdk-v3/whole && $(BIN)/python -m venv build/sdk-v3 \
		&& build/sdk-v3/bin/pip install -q -r notebooks/sdk_v3/requirements.txt \
		&& build/sdk-v3/bin/python -m ipykernel install --name sdk-v3 --display-name "SDK v3" \
			--prefix build/sdk-v3/kernel > build/sdk-v3/kernel.log 2>&1 \
		&& cp notebooks/sdk_v3/requirements.txt build/sdk-v3/whole; }
	@JUPYTER_PATH="$$PWD/build/sdk-v3/kernel/share/jupyter:$$JUPYTER_PATH"; export JUPYTER_PATH; \
		$(INSIDE) $(BIN)/python notebooks/sdk_v3/run.py $(ONLY)

ray: ready ## Ray Train starts the DDP script (downloads Ray once, 1.5 GB)
	@cmp -s tests/scripts/launch/ray.txt build/ray/whole || { \
		rm -f build/ray/whole && $(BIN)/python -m venv build/ray \
		&& build/ray/bin/pip install -q -r tests/scripts/launch/ray.txt \
		&& cp tests/scripts/launch/ray.txt build/ray/whole; }
	@$(INSIDE) $(BIN)/pytest -m soak tests/scripts/launch/test_ray.py

bench: ready ## measure all-reduces and training steps on narrow links
	@$(INSIDE) $(BIN)/python -m tools.bench

doctor: ready ## check this machine, one line per requirement
	@$(INSIDE) $(BIN)/workshop doctor

lock: ready ## resolve tools/requirements/*.in again (UPGRADE=1: newest versions)
	@$(BIN)/python -m tools.setup.lock $(if $(UPGRADE),--upgrade)

bundle: ready ## the kit with all packages as one file, for laptops without a network
	@$(INSIDE) $(BIN)/python -m tools.bundle

clean: ## stop the emulator, remove build/ and tools' caches
	@if [ -x $(BIN)/local-sagemaker ]; then $(BIN)/local-sagemaker stop >/dev/null 2>&1 || true; fi
	rm -rf build .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## and .venv and its uv, too
	rm -rf .venv .uv
