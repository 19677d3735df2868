# Needs Python 3.11 or newer, make and git; every target sets up for itself what it needs.
# Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
PY     := .venv/bin/python
ARGS   ?=
# Where each stack of the end-to-end tests leaves what its functions needed of AWS.
BOOKS  := $(CURDIR)/.local/books
BASE_IMAGE := python:3.13-slim-trixie
NEWEST := $(CURDIR)/.local/newest
# The tests that only compute: they start neither an emulator nor Node.
COMPUTING := tests/unit tests/property tests/simulation

# Container images set this variable. With it, every process of the tests compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE

SHELL         := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test test-long check lint format typecheck pytest unit simulate mutants chaos bench \
        serving computing waiting fuzz scale yield export-scale hostile-site deployed arm64 \
        browser newest image site release setup venv up down status wheel lock clean python

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## crawl a small site on this machine and show what came of it
	@$(PY) -m tests.demo $(ARGS)

test: setup lint ## everything: format, lint, types and all tests; before a merge
	@$(MAKE) --no-print-directory -j 3 typecheck pytest

check: lint typecheck ## format, lint, types and the tests that take a minute; before every commit
	@$(PY) -m pytest -q -n 2 --dist worksteal -m "not thorough and not slow and not long and not emulator and not infra" \
	    tests/unit tests/property tests/contract tests/simulation $(ARGS)

lint: venv ## format check, lint and prose
	@$(PY) -m ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(PY) -m ruff check --quiet .
	@$(PY) tools/prose.py

format: venv ## reformat, and fix what can be fixed safely
	@$(PY) -m ruff check --quiet --fix-only . && $(PY) -m ruff format .

typecheck: venv ## strict types
	@$(PY) -m mypy

# The tests that only compute have a low priority: they fill the time in which the others wait. First
# those run that start servers, then the end-to-end tests. A few that failed run once more, alone.
pytest: setup $(if $(ARGS),,computing waiting) ## all tests; ARGS="-k robots -x" runs the ones asked for
	@$(PY) $(if $(ARGS),-m pytest $(ARGS),tools/tests.py failed)

serving: setup
	@$(PY) tools/tests.py part serving -- -n 3 --dist worksteal -m "not e2e and not long" $(COMPUTING:%=--ignore=%)

computing: setup
	@nice -n 15 $(PY) tools/tests.py part computing --quiet -- -n 2 --dist worksteal -m "not long" $(COMPUTING)

# The end-to-end tests of a process share a deployed stack.
waiting: serving
	@rm -rf $(BOOKS)
	@ORBWEAVER_BOOKS=$(BOOKS) $(PY) tools/tests.py part e2e --quiet -- -n 2 --dist loadfile \
	    -m "e2e and not chaos and not long" tests/e2e
	@$(PY) -m tests.iam $(BOOKS)

test-long: setup ## the tests that take minutes or measure times, which `make test` leaves out
	@rm -rf $(BOOKS)
	@ORBWEAVER_BOOKS=$(BOOKS) $(PY) -m pytest -n 2 --dist loadfile -m "long and not chaos" $(ARGS)
	@$(PY) -m tests.iam $(BOOKS) $(if $(ARGS),,--all)
	@$(PY) -m pytest -m chaos $(ARGS)

unit: venv ## the tests that start nothing
	@$(PY) -m pytest -m "not emulator and not e2e and not infra" $(ARGS)

hostile-site: venv ## serve the hostile site, and print what must become of each URL
	@$(PY) -m tests.sites.hostile $(ARGS)

simulate: venv ## many seeds of the simulation; SEEDS=20000, ARGS=--mutants
	@$(PY) -m tests.simulation $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

mutants: setup ## random changes of the product, each against its tests; ARGS="--count 50 --seed 7"
	@$(PY) -m tests.mutants $(ARGS)

chaos: setup ## a deployed stack under faults, kills and copies; SEED=7, ARGS="--pages 3000 --json"
	@$(PY) -m tests.chaos $(if $(SEED),--seed $(SEED)) $(ARGS)

bench: setup ## ours beside other crawlers; ARGS="--quick --sites python,generated --peers floor,worker"
	@$(PYTHON) tools/bootstrap.py bench
	@$(PY) -m bench $(ARGS)

fuzz: venv ## fuzzers, a minute for each of what strangers write; ARGS="--seconds 10 --only robots"
	@$(PYTHON) tools/bootstrap.py fuzz
	@$(PY) -m tests.fuzz $(ARGS)

yield: setup ## what the first requests to real applications find; ARGS="--apps cgit --crawlers ours,wget"
	@$(PYTHON) tools/bootstrap.py bench
	@$(PY) -m bench.yields $(ARGS)

scale: venv ## a thousand workers over a hundred thousand hosts, in virtual time; ARGS="--only grid"
	@$(PY) -m bench.scale $(ARGS)

export-scale: venv ## export a day of a million pages under a limit of 256 MB; ARGS="--rows 20000"
	@$(PY) -m tests.exports_scale $(ARGS)

deployed: ## unit, property, contract and simulation tests with the Python that the functions run on (3.13)
	@tools/interpreter.sh 3.13 -q -n 2 --dist worksteal \
	    -m "not e2e and not long and not emulator and not infra" $(or $(ARGS),tests/unit tests/property tests/contract tests/simulation)

arm64: ## import the functions as deployed (arm64, Python 3.13) under emulation; needs apt and root
	@tools/arm64.sh

browser: setup ## tests of the console and of rendering, which need a Chromium or Chrome
	@$(PY) -m pytest -n 2 --dist worksteal -m "not long" tests/integration/test_console*.py tests/integration/test_audit_page.py tests/rendering $(ARGS)

newest: setup ## tests of the fetcher with the newest aiohttp instead of the locked one
	@rm -rf $(NEWEST)
	@.venv/bin/uv pip --quiet install --system-certs --target $(NEWEST) aiohttp
	@PYTHONPATH=$(NEWEST) $(PY) -c 'import aiohttp; print("aiohttp", aiohttp.__version__)'
	@PYTHONPATH=$(NEWEST) $(PY) -m pytest -n 2 --dist worksteal -m "not long" \
	    tests/unit/adapters tests/integration/fetcher $(ARGS)

# The digest of the base image pins it. Without DIGEST, the registry's present one is used.
image: ## build the container images orbweaver and orbweaver:chromium; needs Docker; DIGEST=sha256:…
	@digest=$${DIGEST:-$$(docker buildx imagetools inspect $(BASE_IMAGE) --format '{{.Manifest.Digest}}')}; \
	case $$digest in sha256:*) ;; *) echo "$(BASE_IMAGE) has no digest: is Docker running?" >&2; exit 1;; esac; \
	echo "base: $(BASE_IMAGE)@$$digest"; \
	docker build --build-arg BASE_DIGEST=@$$digest --target chromium --tag orbweaver:chromium . && \
	docker build --build-arg BASE_DIGEST=@$$digest --target plain --tag orbweaver .

site: venv ## build the documentation site into .local/site/html; SOURCE=https://…/blob/main links to code
	@$(PYTHON) tools/bootstrap.py site
	@$(PY) tools/website.py $(if $(SOURCE),--source $(SOURCE))

release: venv ## check the version, build wheel, sdist and checksums into dist/, print the next commands
	@$(PY) tools/release.py

up: setup ## start the emulator and deploy the stack to it
	@$(PY) -m localstack up $(ARGS)

down: venv ## stop the emulator
	@$(PY) -m localstack down $(ARGS)

status: venv ## what is running on this machine
	@$(PY) -m localstack status $(ARGS)

wheel: python ## build the wheel into dist/
	@$(PYTHON) tools/bootstrap.py venv node
	@$(PY) -m hatchling build -t wheel

setup: python ## install all that is needed (.venv, .local/emulator, node_modules, tests/console/node_modules)
	@$(PYTHON) tools/bootstrap.py venv emulator node console
ifeq ($(MAKECMDGOALS),setup)
	@echo "[setup] done; next: . .venv/bin/activate, then orbweaver crawl URL; or make demo, make test"
endif

venv: python
	@$(PYTHON) tools/bootstrap.py venv

lock: venv ## compile the requirement files anew; ARGS=--upgrade takes newer versions
	@$(PYTHON) tools/bootstrap.py --lock $(ARGS)

clean: ## stop emulators and remove all that was installed or made
	@if [ -x $(PY) ]; then $(PY) -m localstack down --all || true; fi
	@rm -rf .venv .local node_modules tests/console/node_modules bench/clients/spider/node_modules cdk.out build dist htmlcov .coverage .coverage.* .hypothesis \
	    .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Orbweaver needs Python 3.11 or newer, and '$(PYTHON)' is not." \
	         "Name one that is: make PYTHON=python3.13 ..." >&2; exit 1; }
