# Every target sets up what it needs; nothing but Python 3.11+, make and git is expected.
# With a C compiler, kernels are built as well; without one, NumPy does their work.
PYTHON ?= python3
VENV ?= .venv
DATA ?= ../shared/data
BIN = $(VENV)/bin
# What an installation is made of, besides modules, which are used where they are.
BUILT_FROM = pyproject.toml hatch_build.py $(wildcard src/hybridmix/_kernels/*.[ch]) \
	src/hybridmix/_kernels/build.py

.PHONY: demo test lint check docs bench clean

demo: $(VENV)/.installed
	$(BIN)/hybridmix demo --folder build/demo

test: lint check docs

# Tests run in two processes; more threads than these would wait for each other.
check: export OMP_NUM_THREADS = 1
check: $(VENV)/.installed-test
	$(BIN)/python -m pytest tests src -n 2 -q

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/measures.py

docs: $(VENV)/.installed-test
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/run_all.py --data $(DATA)

clean:
	rm -rf $(VENV) build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BUILT_FROM) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	touch $@

$(VENV)/.installed-test: $(BUILT_FROM) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint,docs]'
	touch $@

$(VENV)/.installed-bench: $(BUILT_FROM) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@
