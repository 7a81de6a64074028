# Everything runs in a local virtual environment; the machine needs Python >= 3.11 with pip, and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
MINIMUM_PYTHON ?= python3.11
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
THREADS ?= 1
# Workers share the cores: one BLAS thread each, unless THREADS is given.
ONE_THREAD := OMP_NUM_THREADS=$(THREADS) OPENBLAS_NUM_THREADS=$(THREADS) MKL_NUM_THREADS=$(THREADS)
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

.PHONY: demo test test-processes test-kernels test-minimum campaign lint format paper bench-literal bench-methods bench-peers bench-scale bench-anchors bench-dask bench-selection bench-deep bench-safety bench-auto bench-small bench-steady bench-landmarks bench-trust bench-tables bench-text bench-drift bench-problems bench-differential bench-speed methods-table clean help

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per set of extras: reinstalled only when pyproject.toml changes.
$(VENV)/installed-core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-data: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[data]"
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@

$(VENV)/installed-lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[lint]"
	@touch $@

$(VENV)/installed-bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[bench,data]"
	@touch $@

$(VENV)/installed-dist: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet build twine
	@touch $@

$(VENV)/installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

demo: $(VENV)/installed-core ## adapt printed digits to handwritten ones and show the accuracies
	$(BIN)/transferable demo
	@echo "To use it in this shell: . $(BIN)/activate"

test: $(VENV)/installed-test ## run the test suite and the documentation's examples
	$(PYTEST) -m "not processes" $(TESTS)

test-processes: $(VENV)/installed-test ## the tests that kill processes, build wheels or start clusters
	$(PYTEST) -m processes $(TESTS)

# Products differ in their last digits from one processor to another; none of the tests may notice.
KERNELS ?= Haswell
test-kernels: $(VENV)/installed-test ## the tests of algebra and of every estimator with the BLAS of another processor
	OPENBLAS_CORETYPE=$(KERNELS) $(PYTEST) tests/test_all_estimators.py tests/linalg tests/transformers tests/kernel

# Warnings are errors. The checks read the built site: links, names, and what a browser shows.
.PHONY: docs
docs: $(VENV)/installed-docs ## build the documentation site into build/docs and check it
	rm -rf build/docs docs/reference docs/families/figures  # what the code made before
	$(ONE_THREAD) $(BIN)/python -m sphinx -E -W --keep-going -q -d build/doctrees -b html docs build/docs
	$(BIN)/python -m pytest -q docs/checks

.PHONY: dist test-dist check-release
dist: $(VENV)/installed-dist ## build the sdist and the wheel into dist and check what indexes would show of them
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

test-dist: $(VENV)/installed-test ## run the tests of the sdist in dist, unpacked, against its own source
	rm -rf build/sdist && mkdir -p build/sdist
	tar -xzf dist/transferable-*.tar.gz -C build/sdist --strip-components 1
	cd build/sdist && $(ONE_THREAD) PYTHONPATH=src $(abspath $(BIN))/python -m pytest -q -n $(WORKERS) --dist worksteal \
	    -m "not processes" $(TESTS)

check-release: ## whether version, changelog and citation agree, and with TAG if that is given
	$(PYTHON) .ci/release.py

# The lowest versions of everything that pyproject.toml declares, on the lowest Python. Old versions
# warn of what newer ones have changed, so warnings are not errors here.
MINIMUM := .venv-minimum
$(MINIMUM)/installed: pyproject.toml .ci/lowest.py
	$(MINIMUM_PYTHON) -m venv --clear $(MINIMUM)
	$(MINIMUM)/bin/python .ci/lowest.py test > $(MINIMUM)/constraints.txt
	$(MINIMUM)/bin/python -m pip install --quiet --constraint $(MINIMUM)/constraints.txt --editable ".[test]"
	@touch $@

test-minimum: $(MINIMUM)/installed ## run the test suite with the lowest versions that are declared
	$(ONE_THREAD) $(MINIMUM)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal -o filterwarnings=default \
	    -m "not processes" --ignore tests/campaign

# TRIALS="api=500 models" runs some areas, SEED=1000 begins elsewhere, CASE=file runs one case again;
# WORKERS processes share the trials.
campaign: $(VENV)/installed-test ## hostile input by the thousand; counts per area, failing cases in build/campaign
	$(ONE_THREAD) PYTHONPATH=tests $(BIN)/python -m campaign $(if $(CASE),--again $(CASE),\
	    --workers $(WORKERS) --seed $(or $(SEED),0) $(if $(TRIALS),--trials $(TRIALS)))

lint: $(VENV)/installed-lint ## ruff, formatting, types, direction of imports, spelling and phrases of the pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python .ci/prose.py

format: $(VENV)/installed-lint ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Records are kept in build/paper: a run that was stopped goes on, and what no code changed is kept.
REPRODUCTION := benchmarks/records/reproduction
paper: $(VENV)/installed-data ## the paper's tables and figures from the real data, into benchmarks/records/reproduction
	$(BIN)/python -m paper --out build/paper
	$(BIN)/python -m paper --protocol label-free --methods TFDF --out build/paper-label-free
	cp build/paper/summary.csv build/paper/tables/*.csv build/paper-label-free/tables/*.csv $(REPRODUCTION)
	( echo "# The paper's experiments, reproduced"; echo; \
	  echo "Commit \`$$(git describe --always --dirty)\`, written by \`make paper\`."; echo; \
	  cat build/paper/report.md; echo; echo "## TFDF with settings picked without target labels"; echo; \
	  cat build/paper-label-free/report.md ) > $(REPRODUCTION)/report.md
	cp build/paper/figures/*.png $(REPRODUCTION)/figures/

bench-literal: $(VENV)/installed-data ## time the library against the paper's equations as printed
	$(BIN)/python benchmarks/bench_literal.py

bench-peers: $(VENV)/installed-bench ## time the transformers against skada's and against dense formulas
	$(BIN)/python benchmarks/peers.py

bench-methods: $(VENV)/installed-bench ## every method on the same tasks, and beside POT's and skada's
	$(ONE_THREAD) $(BIN)/python benchmarks/methods.py
	$(ONE_THREAD) $(BIN)/python benchmarks/peers_methods.py

bench-scale: $(VENV)/installed-bench ## time and memory as rows grow, and the peers on the same rows
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/scale_transformers.py

$(VENV)/installed-dask: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[dask]"
	@touch $@

bench-dask: $(VENV)/installed-dask ## fits over Dask on two worker processes beside those in memory
	$(ONE_THREAD) $(BIN)/python benchmarks/dask_scale.py

bench-anchors: $(VENV)/installed-data ## accuracy of the graph of anchors beside that of neighbours, on every kind of data
	$(ONE_THREAD) $(BIN)/python benchmarks/anchors.py

bench-selection: $(VENV)/installed-data ## how well settings are chosen without target labels
	$(ONE_THREAD) $(BIN)/python benchmarks/selection.py
	$(ONE_THREAD) $(BIN)/python benchmarks/grids.py

# Records are kept in build/safety: a run that was stopped goes on.
bench-safety: $(VENV)/installed-data ## what shifted class shares cost
	$(ONE_THREAD) $(BIN)/python benchmarks/safety.py

# Records are kept in build/auto: a run that was stopped goes on.
bench-auto: $(VENV)/installed-data ## AutoAdapter beside logistic regression and TFDF
	$(ONE_THREAD) $(BIN)/python benchmarks/auto.py

bench-small: $(VENV)/installed-bench ## small problems of two columns, as people try first
	$(ONE_THREAD) $(BIN)/python benchmarks/small.py

bench-steady: $(VENV)/installed-data ## how far answers move where 2 % of the source are left out, and fresh draws of digits
	$(ONE_THREAD) $(BIN)/python benchmarks/steady.py

bench-landmarks: $(VENV)/installed-data ## landmarks beside exact solves on every larger task
	$(ONE_THREAD) $(BIN)/python benchmarks/landmarks.py

bench-trust: $(VENV)/installed-bench ## how far verdicts hold and what audits buy
	$(ONE_THREAD) $(BIN)/python benchmarks/trust.py

bench-tables: $(VENV)/installed-data ## pairs of tables through transferable adapt
	$(ONE_THREAD) $(BIN)/python benchmarks/tables.py

# Records are kept in build/regression: a run that was stopped goes on.
bench-regression: $(VENV)/installed-bench ## numbers under shift: every method, and twenty measured rows
	$(ONE_THREAD) $(BIN)/python benchmarks/regression.py

bench-text: $(VENV)/installed-data ## texts through TableClassifier beside logistic regression, and the time of many
	$(ONE_THREAD) $(BIN)/python benchmarks/texts.py
	$(ONE_THREAD) $(BIN)/python benchmarks/texts.py --rows 20000

bench-drift: $(VENV)/installed-data ## how often drift raises false and true alarms
	$(ONE_THREAD) $(BIN)/python benchmarks/drift.py

$(VENV)/installed-deep: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[deep,data,images]" torchvision
	@touch $@

bench-deep: $(VENV)/installed-deep ## the deep methods on full digits, best on a GPU
	$(BIN)/python benchmarks/deep.py --out build/deep
	$(BIN)/python benchmarks/deep.py --out build/deep --render

# Records are kept in build/problems: a run that was stopped goes on.
bench-problems: $(VENV)/installed-bench ## several sources and a few target labels against doing without
	$(ONE_THREAD) $(BIN)/python benchmarks/real_problems.py
	$(BIN)/python benchmarks/real_problems.py --render

# BEFORE=../other/src is the source of another checkout, ONLY=word some of the problems.
bench-differential: $(VENV)/installed-test ## whether the source in BEFORE and this one compute the same, and how long
	$(BIN)/python benchmarks/differential.py --before $(BEFORE) $(if $(ONLY),--only "$(ONLY)")
	$(BIN)/python benchmarks/differential.py --before $(BEFORE) --timing

# BEFORE=../other/src is the source of another checkout, ONLY=word some of the rows.
bench-speed: $(VENV)/installed-bench ## processor seconds where people wait, beside floors and the source in BEFORE
	$(BIN)/python benchmarks/speed.py $(if $(BEFORE),--before $(BEFORE)) $(if $(ONLY),--only "$(ONLY)")

methods-table: $(VENV)/installed-deep ## what each estimator takes, from what the classes state, into docs/methods.md
	$(BIN)/python benchmarks/abilities.py

clean: ## remove the environment and what was generated
	rm -rf $(VENV) $(MINIMUM) build dist docs/examples docs/reference docs/families/figures .pytest_cache .mypy_cache .ruff_cache
