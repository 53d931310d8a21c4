.PHONY: demo test lint clean
PYTHON ?= python3
BIN := .venv/bin

demo: .venv/installed  ## map the world's ocean temperature from Argo floats
	$(BIN)/npax demo

test: .venv/installed  ## the whole test suite
	$(BIN)/python -m pytest tests

lint: .venv/installed  ## formatting, lint and types of the public surface
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/pyright

.venv/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

clean:
	rm -rf .venv .jax_cache
