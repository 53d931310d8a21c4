.PHONY: demo test lint docs clean
PYTHON ?= python3
BIN := .venv/bin

demo: .venv/installed  ## map the world's ocean temperature from Argo floats: argo.nc, argo.png
	$(BIN)/npax demo

test: .venv/installed  ## the whole test suite
	$(BIN)/python -m pytest tests -n auto --maxprocesses 8

lint: .venv/installed  ## formatting, lint and types of the public surface
	$(BIN)/ruff format --check src tests benchmarks docs examples
	$(BIN)/ruff check src tests benchmarks docs examples
	$(BIN)/pyright

docs: .venv/installed  ## the reference: build/docs/index.html
	$(BIN)/sphinx-build -q -W --keep-going docs/reference build/docs

.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = "%d.%d" % sys.version_info[:2]; sys.exit(sys.version_info < (3, 11) and \
	  "npax needs Python 3.11 or later and $(PYTHON) is " + v + "; say which: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

clean:  ## everything that the commands above made
	rm -rf .venv .jax_cache .pytest_cache .ruff_cache build argo.nc argo.png
