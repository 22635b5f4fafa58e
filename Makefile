# The book and its tests, each from a fresh clone: make book, make test.
# Needs Python 3.11 or newer with its venv module. Another Python: make book PYTHON=python3.12

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
PORT ?= 8000

.PHONY: help book test refresh serve lab lint bench noise clean

help:
	@echo "make book     build the book into _build/html"
	@echo "make test     run all tests, chapters included"
	@echo "make refresh  rewrite the chapters' reference outputs and say which changed"
	@echo "make serve    build if needed, then serve the book on http://localhost:$(PORT)"
	@echo "make lab      open JupyterLab; a chapter's .md opens as a notebook"
	@echo "make bench    print the speed of the exact solution against other methods (minutes)"
	@echo "make noise    run the experiments on SGD and balance at full size (a minute)"
	@echo "make lint     check the style of the code"
	@echo "make clean    remove the built book and the environment"

$(READY): requirements.txt constraints.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "There is no $(PYTHON) here: install Python 3.11 or newer, or name yours: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "The book needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) -V 2>&1): make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "This Python has no venv module: install it (Debian, Ubuntu: apt install python3-venv) and run make again"; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

# --all: Sphinx would not run a chapter again when only the package has changed.
book: $(READY)
	@rm -f _build/html/index.html
	$(BIN)/jupyter-book build . --all -W --keep-going -n
	@test -f _build/html/index.html || { echo "The build left no _build/html/index.html"; exit 1; }
	@echo "Open $(CURDIR)/_build/html/index.html"

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

refresh: $(READY)
	$(BIN)/python -m pytest chapters -n 2 --dist loadfile --refresh

serve: $(READY)
	@test -f _build/html/index.html || $(MAKE) book
	@echo "http://localhost:$(PORT), until you press Ctrl-C"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

lab: $(READY)
	JUPYTER_CONFIG_PATH="$(CURDIR)/.jupyter" $(BIN)/jupyter lab --notebook-dir="$(CURDIR)/chapters"

lint: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

bench: $(READY)
	$(BIN)/python benchmarks/riccati_speed.py

noise: $(READY)
	$(BIN)/python benchmarks/label_noise.py

clean:
	rm -rf _build .venv
