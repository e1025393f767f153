# Needs only python3 (3.11 or newer) and make. The environment is made once, on first use.
#
#   make demo     open a private table, ask it five questions, and see what that costs
#   make test     checks and tests
#   make installs install the wheel and the sdist afresh, with old and new versions, and use them
#   make audit    audit everything that ships, at a size that means something (minutes)
#   make check    lint, format, types
#   make bench    the benchmarks
#   make docs     build the documentation into site/

PYTHON ?= python3
PYTEST_FLAGS ?= -n auto
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
STAMP := $(VENV)/.installed-for-development
# a hundred children of the tests import the package, and pytest rewrites every file of tests: compile them once
unexport PYTHONDONTWRITEBYTECODE
INSTALL = $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test installs audit check bench docs format clean

demo: $(READY)
	@$(BIN)/discreet demo

test: check
	@$(BIN)/python -m pytest $(PYTEST_FLAGS)

installs:
	@$(PYTHON) scripts/installs.py

audit: $(STAMP)
	@$(BIN)/python -m pytest tests/attacks tests/audit -m "slow or not slow" $(PYTEST_FLAGS)

check: $(STAMP)
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy

bench: $(STAMP)
	@set -e; for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

format: $(STAMP)
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

clean:
	@rm -rf $(VENV) site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discreet needs Python 3.11 or newer; try  make PYTHON=python3.12")'
	@echo "installing into $(VENV) (once, a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable '.[tables,plot]'
	@touch $@

$(STAMP): $(READY)
	@echo "installing what the tests need (once, a few minutes)"
	@$(INSTALL) --editable '.[tables,postgres,spark,learn,torch,plot,excel,server,client,dev]'
	@scripts/postgres.sh || true
	@scripts/chromium.sh || true
	@touch $@
