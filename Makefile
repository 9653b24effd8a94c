# Everything needs only make and Python 3.11 or newer; the rest is installed into .venv.
# Another Python: make PYTHON=/path/to/python3.12 demo

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
	$(shell $(p) -c 'import sys; print(sys.version_info >= (3, 11) and sys.executable or "")' 2>/dev/null)))
PYTHON312 ?= $(firstword $(foreach p,$(PYTHON) python3.14 python3.13 python3.12 \
	$(wildcard $(HOME)/.pyenv/versions/3.1[2-9].*/bin/python),\
	$(shell $(p) -c 'import sys; print(sys.version_info >= (3, 12) and sys.executable or "")' 2>/dev/null)))
VENV := .venv
LM_EVAL := .venv-lm-eval
EVAL_FRAMEWORK := .venv-eval-framework
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
CODE := src tests tools bench examples
# What runs a second time with every array access checked. Bounds checking is no part of the key of
# Numba's cache, so it has a cache of its own.
KERNEL_TESTS := tests/test_naive.py tests/test_nasty.py tests/test_json_rows.py

.PHONY: help setup demo test test-frameworks lint bench docs clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

setup: $(INSTALLED) ## make .venv and install the package with what its tests need

demo: $(INSTALLED) ## HumanEval against the text of this environment: about a minute
	@$(PY) examples/demo.py

test: lint ## lint, every test, the kernel tests once more with bounds checking, the frameworks
	$(PY) -m pytest
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/build/numba-boundscheck $(PY) -m pytest $(KERNEL_TESTS)
	$(MAKE) test-frameworks

test-frameworks: $(LM_EVAL)/.installed $(EVAL_FRAMEWORK)/.installed ## with the real lm-evaluation-harness and eval-framework
	$(LM_EVAL)/bin/python -m pytest tests/test_lm_eval.py
	$(EVAL_FRAMEWORK)/bin/python -m pytest tests/test_eval_framework.py

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
	rm -rf $(VENV) $(LM_EVAL) $(EVAL_FRAMEWORK) build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer was found" >&2; \
		echo "hint: install one, or name it: make PYTHON=/path/to/python" >&2; exit 2; }
	@echo "using $$($(PYTHON) --version) at $(PYTHON)"
	@$(PYTHON) -m venv $(VENV) || { echo "hint: on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@echo "installing into $(VENV), a minute or two ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Both frameworks bring a gigabyte of packages, and eval-framework needs Python 3.12.
$(LM_EVAL)/.installed: pyproject.toml
	@$(PYTHON) -m venv $(LM_EVAL)
	@echo "installing lm-evaluation-harness into $(LM_EVAL) ..."
	@$(LM_EVAL)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[lm-eval]' \
		pytest hypothesis sympy math_verify antlr4-python3-runtime==4.11 # minerva_math asks for the last three
	@touch $@

$(EVAL_FRAMEWORK)/.installed: pyproject.toml
	@test -n "$(PYTHON312)" || { echo "error: eval-framework needs Python 3.12 or newer" >&2; \
		echo "hint: install one, or name it: make PYTHON312=/path/to/python3.12 test-frameworks" >&2; exit 2; }
	@$(PYTHON312) -m venv $(EVAL_FRAMEWORK)
	@echo "installing eval-framework into $(EVAL_FRAMEWORK) ..."
	@$(EVAL_FRAMEWORK)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[eval-framework]' pytest hypothesis
	@touch $@
