# make demo      create .venv, install, and judge two examples: one identical, one not
# make test      ruff, mypy, the site of the documentation and all tests (what CI runs)
# make test-slow  the tests that take minutes: real libraries, spread, doctor, cost, fix, the planted corpus, resuming (PART=2/3: every third file, from the second on)
# make lint      ruff and mypy only
# make test-portable  every op of portable mode beside plain torch, layers at random sizes, the headers as CUDA C++, the kernels for GPUs under sanitizers and watched for races; golden digests under every instruction set, 1 to 4 threads, other pins
# make docs      build the documentation as a site in build/docs; a broken link or reference is an error
# make bench     the measurements of bench/ (minutes; run them on a quiet machine)
# make twins     twin runs of every example under `samebits run --seed` (about 20 minutes)
# make bench-planted  run verify on every script of the planted corpus (45 minutes on a quiet machine)
# make bench-resume  the matrix of resuming beside other tools, and 200 kills (about 40 minutes)
# make kernels  compile the kernels for GPUs, as a release has them; without them a GPU's user compiles them when they are first used (4 minutes)
# make test-gpu  the tests that need a CUDA device (GPU_PYTHON=python3 to use an interpreter that has torch already)
# make test-fake-gpu  the same tests, and more, on a device that is not there: torch's CUDA build, in an environment of its own (5 GB; FAKE_TORCH=2.11 for that release, 2.15 is the default)
# make test-release TORCH=2.9.1  the golden digests and the examples with another release of torch, in an environment of its own (5 GB)
# make clean     remove everything that the above made
#
# PYTHON is the interpreter that .venv is made from.

PYTHON ?= python3
PART ?= 1/1
VENV := .venv
BIN := $(VENV)/bin
GPU_PYTHON ?= $(BIN)/python
TORCH ?= 2.9.1
RELEASE := .venv-torch-$(TORCH)
RELEASE_INSTALL := $(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check
GPU_TESTS := $(filter-out tests/fake_gpu/%,$(shell grep -rl --include=test_*.py mark[.]gpu tests))
FAKE_TORCH ?= 2.15
FAKE := .venv-cuda-$(FAKE_TORCH)
FAKE_PINS := tests/fake_gpu/constraints-$(FAKE_TORCH).txt
FAKE_INSTALL := $(FAKE)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(FAKE_PINS)
# Two tests at a time, whose threads would spin while they wait for each other's processor; no bits depend on it.
PYTEST := OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest --numprocesses auto --dist worksteal
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
SLOW := $(patsubst %,tests/integration/test_%.py,spread doctor rng_libraries cost planted fix tried_remedies intervention_runs explanations verify_replay all_origins verify_stdin draw_causes \
	environment_pairs check_command rebuilt_folders resume_check resume_omissions ranks threads worker_draw_causes sharded_checkpoints portable_exact op_level_failures earlier_files long_chains children ending stopping console_scripts tapped_runs \
	example_twins two_at_once interrupted_at_any_moment portable_run portable_ranks wheel docs_sessions replay_ranks replay_programs lock report_pages page_layout pytest_calls pytest_faults pytest_fresh diff_here keyed_samples option_defaults pytest_locks pytest_plugin ci_integrations program_pairs trainer_callbacks cluster_runs torchrun_runs trainer_ranks session_image trackers hydra notebooks)
SLOW += $(patsubst %,tests/integration/test_%.py,fuzz_few verdicts worker_draws time_limits checkpoints write_places same_bits two_part_verdict replaced_functions false_alarms counted_steps descriptors live_row escapes lock_writes changed_code guilty_commits unread_data read_files secrets controlled_runs)
SLOW += tests/integration/determinism/test_import_orders.py tests/integration/determinism/test_real_libraries.py
SLOW += tests/integration/recording/test_known_contents.py tests/unit/recording/test_substitution.py tests/integration/test_attention_scripts.py
SLOW += tests/integration/test_higher_order_scripts.py tests/integration/test_scratch_memory.py tests/unit/digest/test_quality.py tests/unit/report/test_programs_report.py
SLOW += tests/integration/recording/test_late_records.py tests/integration/recording/test_gradients_of_threads.py \
	tests/integration/recording/test_undeclared_writes.py tests/integration/recording/test_workspaces.py
SLOW += tests/integration/test_compiled_scripts.py tests/integration/test_effects.py tests/integration/test_not_started.py tests/integration/test_fuzz.py tests/integration/test_address_order.py tests/unit/replay_guard/test_guard_faults.py
# Ops of portable mode against plain torch, over torch's own samples of inputs.
PORTABLE := $(patsubst %,tests/unit/portable/test_portable_%.py,accumulate activation_ops bessel complex complex_ops conv_ops elementary_ops fourier gpu_races gpu_sanitizers graph_gradients integers interpolation layers linalg lstm \
	loss_ops matrix_functions native_ops optimizers pooling reduction_ops sampled_gradients segments spectral steady_gradients ways)
# Many more scripts beside bare Python, and a few beside coverage.
SLOW += tests/integration/test_fidelity_more.py
SOURCES := $(wildcard native/*) $(wildcard native/portable/*) $(wildcard bindings/*) $(wildcard bindings/ops/*) $(wildcard setup.py)

.PHONY: demo docs test test-slow test-portable test-release lint bench twins bench-planted bench-resume kernels test-gpu test-fake-gpu clean

demo: $(VENV)/.installed
	$(BIN)/samebits verify examples/digits.py
	@echo
	$(BIN)/samebits verify examples/line_fit.py; status=$$?; \
	if [ $$status -ne 1 ]; then \
		echo "demo: the second example should be different (status 1), but the status was $$status" >&2; exit 1; \
	fi

test: lint docs
	$(PYTEST) $(SLOW:%=--ignore=%) $(PORTABLE:%=--ignore=%)

test-slow: $(VENV)/.dev
	$(PYTEST) $(shell echo $(SLOW) | tr ' ' '\n' | awk -v part=$(PART) '{split(part, at, "/")} (NR - at[1]) % at[2] == 0')

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin

docs: $(VENV)/.docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -b html docs build/docs
	@echo "the site is in build/docs/index.html"

bench: $(VENV)/.dev
	$(BIN)/python bench/import_time.py
	$(BIN)/python bench/inventory.py
	$(BIN)/python bench/control.py
	$(BIN)/python bench/digest.py
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/memory.py
	$(BIN)/python bench/stopping.py
	$(BIN)/python bench/draws.py
	$(BIN)/python bench/loader.py
	$(BIN)/python bench/replay_guard.py
	$(BIN)/python bench/checkpoint.py
	$(BIN)/python bench/portable.py
	$(BIN)/python bench/portable_conv.py
	$(BIN)/python bench/portable_reduce.py
	$(BIN)/python bench/portable_linalg.py
	$(BIN)/python bench/portable_training.py
	$(BIN)/python bench/portable_start.py

twins: $(VENV)/.dev
	$(BIN)/python bench/twins.py

bench-planted: $(VENV)/.dev
	$(BIN)/python bench/planted/run.py

bench-resume: $(VENV)/.dev
	$(PIP_INSTALL) --group grain
	$(BIN)/python bench/resume.py
	$(BIN)/python bench/kills.py

test-portable: $(VENV)/.dev
	SAMEBITS_TEST_SEEDS=20 $(PYTEST) $(PORTABLE) tests/unit/portable/test_portable_headers.py tests/unit/portable/test_portable_sizes.py
	$(BIN)/python tests/golden/check.py

kernels: $(VENV)/.dev
	$(BIN)/python native/cuda/compile.py

ifeq ($(GPU_PYTHON),$(BIN)/python)
test-gpu: $(VENV)/.dev
endif
test-gpu:
	PYTHONPATH=src:$$PYTHONPATH $(GPU_PYTHON) -m pytest -m gpu -rN $(GPU_TESTS)

test-fake-gpu: $(FAKE)/.installed
	$(FAKE)/bin/python tests/fake_gpu/run.py -m pytest -m gpu -rs $(GPU_TESTS) tests/fake_gpu

test-release:
	test -x $(RELEASE)/bin/samebits || { $(PYTHON) -m venv $(RELEASE) && $(RELEASE_INSTALL) --upgrade pip \
		&& $(RELEASE_INSTALL) torch==$(TORCH) "setuptools>=77,<82" pytest --group examples \
		&& $(RELEASE_INSTALL) --no-build-isolation --editable .; }
	$(RELEASE)/bin/python tests/golden/check.py --quick
	$(RELEASE)/bin/python -m pytest tests/integration/test_higher_order_scripts.py
	$(RELEASE)/bin/samebits verify examples/digits.py

clean:
	rm -rf $(VENV) .venv-cuda-* .venv-torch-* build dist .samebits .pytest_cache .mypy_cache .ruff_cache src/*.egg-info
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f src/samebits/*.so src/samebits/_cuda/kernels.zip

# Each stamp is made when its step has succeeded, so that a repeat does nothing.
$(VENV)/.created: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --upgrade pip
	$(PIP_INSTALL) setuptools
	touch $@

# Without build isolation the build uses the pinned setuptools.
$(VENV)/.installed: $(VENV)/.created pyproject.toml $(SOURCES)
	$(PIP_INSTALL) torch --group examples
	$(PIP_INSTALL) --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP_INSTALL) --group dev
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(PIP_INSTALL) --group docs
	touch $@

$(FAKE)/.installed: $(FAKE_PINS) pyproject.toml $(SOURCES)
	$(PYTHON) -m venv $(FAKE)
	$(FAKE_INSTALL) --upgrade pip
	$(FAKE_INSTALL) torch setuptools --group fake-gpu
	$(FAKE_INSTALL) --no-build-isolation --editable .
	touch $@
