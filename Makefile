# Everything runs in a local virtual environment; the machine needs Python >= 3.11 with pip, and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
WORKERS ?= 2
# Workers share the cores: one BLAS thread each.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test lint format paper bench-literal bench-peers bench-scale bench-selection bench-deep clean help

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# One stamp per set of extras: reinstalled only when pyproject.toml changes.
$(VENV)/installed-core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@

$(VENV)/installed-lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[lint]"
	@touch $@

$(VENV)/installed-bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	@touch $@

demo: $(VENV)/installed-core ## adapt printed digits to handwritten ones and show the accuracies
	$(BIN)/transferable demo
	@echo "To use it in this shell: . $(BIN)/activate"

test: $(VENV)/installed-test ## run the test suite and the documentation's examples
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

lint: $(VENV)/installed-lint ## ruff, formatting, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed-lint ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Records are kept in build/paper: a run that was stopped goes on, and what no code changed is kept.
paper: $(VENV)/installed-core ## the paper's tables and figures from the real data, into docs/reproduction.md
	$(BIN)/transferable reproduce --out build/paper
	$(BIN)/transferable reproduce --protocol label-free --methods TFDF --out build/paper-label-free
	( echo "# The paper's experiments, reproduced"; echo; \
	  echo "Commit \`$$(git describe --always --dirty)\`, written by \`make paper\`."; echo; \
	  cat build/paper/report.md; echo; echo "## TFDF with settings picked without target labels"; echo; \
	  cat build/paper-label-free/report.md; echo; cat docs/reproduction-notes.md ) > build/reproduction.md
	mkdir -p docs/figures
	mv build/reproduction.md docs/reproduction.md
	cp build/paper/figures/*.png docs/figures/

bench-literal: $(VENV)/installed-core ## time the library against the paper's equations as printed
	$(BIN)/python benchmarks/bench_literal.py

bench-peers: $(VENV)/installed-bench ## time the transformers against skada's and against dense formulas
	$(BIN)/python benchmarks/peers.py

bench-scale: $(VENV)/installed-bench ## time and memory as rows grow, and the peers on the same rows
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/scale_graph.py --faiss --rows 20000 80000 320000
	$(BIN)/python benchmarks/scale_transformers.py

bench-selection: $(VENV)/installed-core ## how well settings are chosen without target labels, into docs/selection.md
	$(ONE_THREAD) $(BIN)/python benchmarks/selection.py

$(VENV)/installed-deep: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[deep,data]"
	@touch $@

bench-deep: $(VENV)/installed-deep ## the deep methods on full digits, best on a GPU, into docs/deep.md
	$(BIN)/python benchmarks/deep.py --out build/deep
	$(BIN)/python benchmarks/deep.py --out build/deep --render

clean: ## remove the environment and what was generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
