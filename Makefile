# Everything needs only make and Python 3.11 or newer; the rest is installed into .venv.
# Another Python: make PYTHON=/path/to/python3.12 demo

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys; print(sys.version_info >= (3, 11) and sys.executable or "")' 2>/dev/null)))
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
CODE := src tests tools bench examples
# What runs a second time with every array access checked. Bounds checking is no part of the key of
# Numba's cache, so it has a cache of its own.
KERNEL_TESTS := tests/test_naive.py tests/test_nasty.py tests/test_json_rows.py

.PHONY: help setup demo test lint bench docs clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

setup: $(INSTALLED) ## make .venv and install the package with what its tests need

demo: $(INSTALLED) ## HumanEval against the text of this environment: about a minute
	@$(PY) examples/demo.py

test: lint ## lint, every test, and the kernel tests once more with bounds checking
	$(PY) -m pytest
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/numba-boundscheck $(PY) -m pytest $(KERNEL_TESTS)

lint: $(INSTALLED) ## ruff and mypy
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m mypy

bench: $(INSTALLED) ## Unseen and its peers on one pool (needs Python 3.12 for decon); ARGS="..." are passed on
	$(PY) -m bench.peers $(ARGS)

docs: $(INSTALLED) ## write the pages that are made from the code
	$(PY) tools/make_cli_reference.py
	$(PY) tools/make_schema_reference.py

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer was found" >&2; \
		echo "hint: install one, or name it: make PYTHON=/path/to/python" >&2; exit 2; }
	@echo "using $$($(PYTHON) --version) at $(PYTHON)"
	@$(PYTHON) -m venv $(VENV) || { echo "hint: on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "installing into $(VENV), a minute or two ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
