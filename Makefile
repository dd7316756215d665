# make app     set up .venv, get the bundled model, serve the page on http://127.0.0.1:7860 (PORT= changes it)
# make test    set up .venv, lint, check types, run all tests
# make check   lint and types only
# PYTHON= chooses the Python that .venv is made from (3.11 or newer).

PYTHON ?= python3
PORT ?= 7860
BIN := .venv/bin

.PHONY: app test check clean

# The page serves without the bundled model too, and tells what is missing: hence the "-".
app: .venv/.installed
	@echo "Getting the bundled model, unless it is here (93 MB, then half a minute to convert) ..."
	-@$(BIN)/python -m spt.bundled
	@echo "Starting the page; its address follows ..."
	@PORT=$(PORT) $(BIN)/python app.py

test: check
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

check: .venv/.installed-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

clean:
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache

# The stamps are written last, so a set-up that was cut off is done again.
.venv/.installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "spt needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making .venv and installing spt's packages into it (2 GB with torch): some minutes, once ..."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/.installed-dev: .venv/.installed requirements-dev.txt
	@echo "Installing what the tests need: a minute or two, once ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@
