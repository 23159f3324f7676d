# Everything a developer does here. `make` alone builds the backend's wheel into dist/.
# The first use sets up what is missing: a virtual environment in .venv/, a Rust for GPUs (tools/).

VENV   := .venv
PYTHON_IN_VENV := $(VENV)/bin/python
PIP    := $(PYTHON_IN_VENV) -m pip --disable-pip-version-check
SOURCES := pyproject.toml README.md \
           $(shell find rustcuda_backend -type f -not -path '*/__pycache__/*' -not -path '*/target/*')

.DEFAULT_GOAL := dist
.DELETE_ON_ERROR:
.PHONY: help dist setup rust test lint demo bench clean

help: ## say what there is to make
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

dist: dist/.stamp ## build the backend's wheel into dist/ (the default)

setup: rust $(VENV)/.stamp ## make .venv/ with all that the tests need, and see to Rust

test: setup lint ## lint, types, tests, and the branch coverage of the backend
	@rm -f .coverage .coverage.*
	$(PYTHON_IN_VENV) -m coverage run -m pytest -n auto $(PYTEST_ARGS)
	$(PYTHON_IN_VENV) -m coverage combine --quiet
	$(PYTHON_IN_VENV) -m coverage report

lint: $(VENV)/.stamp ## ruff and mypy --strict
	$(PYTHON_IN_VENV) -m ruff check .
	$(PYTHON_IN_VENV) -m ruff format --check .
	$(PYTHON_IN_VENV) -m mypy --strict

demo: rust dist ## build the sample's wheel in a new environment; run it where there is a GPU
	@tools/demo.sh dist

bench: setup ## measure how long the sample's kernels take to build
	$(PYTHON_IN_VENV) benchmarks/build_time.py $(BENCH_ARGS)

clean: ## remove what was built; .venv/ stays
	rm -rf dist build launcher/build *.egg-info launcher/*.egg-info sample_ext/build sample_ext/src/*.egg-info sample_ext/kernels/target
	rm -rf .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache

rust:
	@tools/ensure-rust.sh >/dev/null

$(PYTHON_IN_VENV):
	@tools/ensure-venv.sh $(VENV)

$(VENV)/.stamp: pyproject.toml | $(PYTHON_IN_VENV)
	$(PIP) install --quiet --editable '.[dev,test]'
	@touch $@

# setuptools packs whatever an earlier build left in build/lib, also modules that are gone since.
dist/.stamp: $(SOURCES) | $(PYTHON_IN_VENV)
	@rm -rf build/lib dist/*.whl
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	@touch $@
	@ls dist/*.whl
