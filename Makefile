# SPDX-License-Identifier: Apache-2.0
# All that one types in this repository. Every step leaves a stamp, so a second run takes seconds.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

JOBS ?= $(shell nproc)
BIN := .venv/bin
STAMP := build/stamp
REPORT := $(CURDIR)/build/report
SOURCES := $(shell find src include python cmake web/src -type f -not -name '*.pyc') \
           web/build.mjs web/package.json web/package-lock.json tools/build_backend.py \
           CMakeLists.txt CMakePresets.json pyproject.toml
CXX_FILES = $(shell find src include tests/unit tests/fuzz -name '*.cpp' -o -name '*.h')
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --prefer-binary

# Tests verify what every stage and pass makes; measurements do not.
test-% fuzz% metamorphic: export JAXPORT_CHECK ?= 1
test-instructions: export JAXPORT_CHECK := 0

# JAX must not look for accelerators; CMake and pip use as many jobs as make was told.
export JAX_PLATFORMS := cpu
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# A clone in another folder finds what this one compiled.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

# --- for users

.PHONY: demo test bench
demo: build ## export three models, run them in ONNX Runtime, compare with JAX, show one as a page
	$(BIN)/python examples/demo.py

test: ## set up, build and run every test and check; prints how long each part took
	@"$$(tools/setup.sh python)" tools/run_tests.py

bench: build .venv/.bench ## measure against jax2onnx; rewrites docs/benchmarks.md
	$(BIN)/python bench/run.py

.PHONY: bench-ops
bench-ops: build .venv/.bench ## single operations beside jax.jit and jax2onnx; rewrites their table in docs/benchmarks.md: OPS='word …'
	$(BIN)/python bench/ops.py $(OPS)
	$(BIN)/python bench/ops_report.py

# --- preparation

.PHONY: setup environment build wheel build-asan
setup: .venv/.ready ## system packages and the virtual environment
environment: .venv/.bench .venv/.docs .venv/.examples build/web/.ready web/node_modules/.package-lock.json ## all that tests need beside it
	tools/setup.sh system count
build: .venv/.jaxport ## build everything once and install the package into .venv

$(STAMP)/system: tools/setup.sh
	tools/setup.sh system
	@mkdir -p $(@D) && touch $@

# What is installed stands in requirements/lock, in exact versions with hashes; `make lock` writes it.
.venv/.ready: requirements/lock/newest.txt $(STAMP)/system
	tools/setup.sh venv .venv $<
	@touch $@

.venv-oldest/.ready: requirements/lock/oldest.txt $(STAMP)/system
	tools/setup.sh venv .venv-oldest $<
	@touch $@

.venv-ecosystem/.ready: requirements/lock/ecosystem.txt requirements/lock/newest.txt $(STAMP)/system
	tools/setup.sh venv .venv-ecosystem requirements/lock/newest.txt
	.venv-ecosystem/bin/python $(PIP_INSTALL) --no-deps --require-hashes --requirement $<
	@touch $@

.venv/.bench: requirements/lock/bench.txt .venv/.ready
	$(BIN)/python $(PIP_INSTALL) --require-hashes --requirement $<
	@touch $@

.venv/.examples: requirements/lock/examples.txt .venv/.ready
	$(BIN)/python $(PIP_INSTALL) --require-hashes --requirement $<
	@touch $@

.venv/.release: requirements/lock/release.txt .venv/.ready
	$(BIN)/python $(PIP_INSTALL) --require-hashes --requirement $<
	@touch $@

.venv/.docs: requirements/lock/docs.txt .venv/.ready
	$(BIN)/python $(PIP_INSTALL) --require-hashes --requirement $<
	@touch $@

.venv/.fuzz: requirements/lock/fuzz.txt .venv/.ready
	$(BIN)/python $(PIP_INSTALL) --require-hashes --requirement $<
	@touch $@

# uv resolves for all Pythons at once; nothing else needs it.
.PHONY: lock
lock: setup ## requirements/lock and the lock of npm, after a change of requirements/
	test -x build/lock/bin/uv || $(BIN)/python -m venv build/lock
	build/lock/bin/python $(PIP_INSTALL) --require-hashes --requirement requirements/lock/uv.txt
	build/lock/bin/python tools/lock.py build/lock/bin/uv
	for folder in requirements/web requirements/web/releases/*; do \
	  (cd $$folder && npm install --package-lock-only --omit-lockfile-registry-resolved --silent --no-fund --no-audit); done

# One build folder gives the Python module, the tools and, when they run, the unit tests. The wheel
# does not depend on JAX, so all environments install the same one.
$(STAMP)/wheel: $(SOURCES) .venv/.ready
	rm -rf build/wheel
	command -v npm >/dev/null || $(BIN)/python $(PIP_INSTALL) --require-hashes --requirement requirements/lock/node.txt
	PATH="$$PATH:$(CURDIR)/$(BIN)" \
	$(BIN)/python -m pip wheel . --verbose --no-build-isolation --no-deps --wheel-dir build/wheel \
	  --disable-pip-version-check --config-settings build-dir=build/release \
	  --config-settings cmake.args=--preset=release </dev/null
	@mkdir -p $(@D) && touch $@

.venv/.jaxport .venv-oldest/.jaxport .venv-ecosystem/.jaxport: %/.jaxport: %/.ready $(STAMP)/wheel
	$*/bin/python $(PIP_INSTALL) --force-reinstall --no-deps build/wheel/jaxport-*.whl
	@touch $@

# The libraries of this machine that others may lack go into the wheel; auditwheel refuses a wheel
# that no profile of manylinux fits.
wheel: build ## a wheel for other Linux machines, in build/dist
	rm -rf build/dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir build/dist build/wheel/jaxport-*.whl

# The wheel of a release is built from the sdist, which shows that the sdist is whole; in CI both come
# from this folder.
.PHONY: package test-package test-package-newest release-dry-run
package: wheel .venv/.release web/dist/page.html ## sdist and wheel in build/dist
	$(BIN)/python -m build --sdist --no-isolation --outdir build/dist . >build/sdist.log
test-package: package ## the wheel in an empty environment
	tools/smoke.sh $(BIN)/python build/dist/jaxport-*.whl
test-package-newest: ## the same on Debian 13, where the wheel is one for the stable ABI
	tools/debian13.sh $(NEWEST) make test-package JOBS=$(JOBS)
release-dry-run: build .venv/.release ## all of a release but what leaves this machine
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tools/release.py

build-asan: $(STAMP)/system ## build tools and unit tests with sanitizers
	cmake --preset asan --log-level=WARNING
	cmake --build --preset asan

# --- tests; each leaves JUnit files in build/report

run_golden = mkdir -p $(REPORT) && $(BIN)/lit tests/golden --param tools=$(CURDIR)/build/$(1) \
             --workers $(JOBS) --timeout 60 --verbose --xunit-xml-output $(REPORT)/golden-$(1).xml
run_pytest = $(1)/bin/python -m pytest --numprocesses $(JOBS) --quiet --tb=short --junit-xml $(REPORT)/$(2).xml

.PHONY: test-quick test-unit test-golden test-golden-asan
test-quick: test-unit test-golden ## unit and text tests
test-unit: setup build-asan # the sanitizers are on: what users get is tested through Python
	rm -rf $(REPORT)/unit && GTEST_OUTPUT=xml:$(REPORT)/unit/ \
	  ctest --preset asan --parallel $(JOBS) --tests-regex "^unit"
test-golden: build
	$(call run_golden,release)
test-golden-asan: setup build-asan
	$(call run_golden,asan)

.PHONY: test-threads
test-threads: $(STAMP)/system ## programs compiled by four threads at once, under the thread sanitizer
	cmake --preset tsan --log-level=WARNING
	cmake --build --preset tsan --target threads_test
	TSAN_OPTIONS=halt_on_error=1 build/tsan/threads_test

.PHONY: test-python test-smoke test-oldest test-oldest-smoke test-newest test-newest-smoke
test-python: build ## parity with JAX on the newest supported versions that this Python can install
	$(call run_pytest,.venv,python)
# The importer is what depends on the version of JAX; the models use a bit of everything.
SMOKE := tests/python/test_importer.py tests/python/test_models.py tests/python/test_decompose.py
test-smoke: build
	$(call run_pytest,.venv,smoke) $(SMOKE)
test-oldest: .venv-oldest/.jaxport ## parity with JAX on the oldest supported versions
	$(call run_pytest,.venv-oldest,oldest)
test-oldest-smoke: .venv-oldest/.jaxport
	$(call run_pytest,.venv-oldest,oldest-smoke) $(SMOKE)

# JAX 0.11 needs Python 3.12: these build and run on Debian 13, in a root of its own.
NEWEST := build/debian13
test-newest: ## all Python tests and the sample of JAX's cases on Debian 13 with the newest JAX
	tools/debian13.sh $(NEWEST) make test-python test-conformance JOBS=$(JOBS)
	cp $(NEWEST)/jaxport/build/report/python.xml $(REPORT)/newest.xml
test-newest-smoke:
	tools/debian13.sh $(NEWEST) make test-smoke JOBS=$(JOBS)
	cp $(NEWEST)/jaxport/build/report/smoke.xml $(REPORT)/newest-smoke.xml

# Instructions of the compiler on five programs; `make count-update` after a change that is worth more of them.
.PHONY: test-instructions count-update
test-instructions: build
	tools/setup.sh system count
	$(BIN)/python bench/instructions.py
count-update: build
	tools/setup.sh system count
	$(BIN)/python bench/instructions.py --update

# A file of 6 GB and a model of as many; too large for CI, where a small one is exported.
.PHONY: test-dinov3-memory
test-dinov3-memory: build ## MB of the weights and of what exporting them holds: a part of DINOv3's 7B model
	$(BIN)/python -m examples.dinov3.memory --folder build

# A sample of the first is part of test-python.
.PHONY: test-optimize
test-optimize: build .venv/.bench ## ONNX's node tests before and after jaxport.optimize, and beside onnxslim
	PYTHONPATH=tests $(BIN)/python -m optimize
	PYTHONPATH=tests $(BIN)/python -m optimize --slim

# Skipped by test-python, which has no Node.js.
.PHONY: test-web test-site
build/web/.ready: requirements/web/package-lock.json
	tools/setup.sh system web
	@mkdir -p $(@D) && cp requirements/web/*.json $(@D)
	npm ci --silent --no-fund --no-audit --prefix $(@D)
	@touch $@
test-web: build build/web/.ready .venv/.examples docs ## models in ONNX Runtime Web, pages in Chromium
	NODE_PATH=$(CURDIR)/build/web/node_modules $(call run_pytest,.venv,web) \
	  tests/python/test_web.py tests/python/test_browser.py
test-site: build/web/.ready docs ## every page of the documentation site in Chromium
	JAXPORT_PAGES=all NODE_PATH=$(CURDIR)/build/web/node_modules \
	  $(BIN)/python -m pytest tests/python/test_browser.py -q -k site

# The newest ONNX Runtime with a header that Debian has; what it needs is made here.
.PHONY: test-cpp
test-cpp: build ## the C++ program of examples/cpp, on Debian 13 with its ONNX Runtime
	$(BIN)/python -m examples.cpp build/cpp
	tools/debian13.sh $(NEWEST) mkdir -p build
	cp -r build/cpp $(NEWEST)/jaxport/build/
	tools/debian13.sh $(NEWEST) bash -euc 'apt-get update -qq; \
	  apt-get install -y -qq --no-install-recommends g++ pkg-config libonnxruntime-dev >/dev/null; \
	  examples/cpp/run.sh build/cpp'

.PHONY: digits examples-environment
examples-environment: build .venv/.examples # what some examples need beside the package
digits: build build/web/.ready .venv/.examples ## a page that reads drawn digits: trains, exports, serves it
	$(BIN)/python -m examples.web --serve

# The report page in Chromium. Pages and screenshots stay in build/explorer.
.PHONY: test-page
web/dist/page.html: web/node_modules/.package-lock.json $(wildcard web/src/*) web/build.mjs
	npm run --silent --prefix web build
web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	tools/setup.sh system web
	npm ci --prefix web --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch $@
test-page: build web/node_modules/.package-lock.json ## the report page, driven in Chromium
	@mkdir -p $(REPORT)
	PYTHONPATH=tests $(BIN)/python -m explorer build/explorer
	PAGES=$(CURDIR)/build/explorer npm test --silent --prefix web -- $(REPORT)/page.xml

# A run that was interrupted goes on where it stopped, as long as the package stays as it is;
# ARGS=--fresh forgets what it has, ARGS=--failed runs again what did not pass.
.PHONY: conformance conformance-opsets test-conformance
run_conformance = PYTHONPATH=tests $(BIN)/python -m conformance --jobs $(JOBS)
conformance: build ## all of JAX's own cases for its primitives; rewrites docs/coverage.md
	$(run_conformance) $(ARGS)
# Every op has another lowering in opsets that are older than it, or the error says which one to ask for.
conformance-opsets: build ## a sample of these cases at every opset that changed something
	for opset in 17 18 20 21 24 26; do $(run_conformance) --every 11 --opset $$opset; done
# Every 13th case; 13 divides no period in which dtypes and modes follow each other.
test-conformance: build
	$(run_conformance) --every 13 --junit $(REPORT)/conformance.xml

# The sizes of jax2onnx's own models are a file, which is made anew for another version of it.
.PHONY: jax2onnx jax2onnx-sizes jax2onnx-nodes jax2onnx-witness test-jax2onnx
jax2onnx: build .venv/.bench ## all of jax2onnx's own cases, beside its models; rewrites docs/drop-in.md
	$(run_conformance) --source jax2onnx $(ARGS)
	$(run_conformance) --source jax2onnx --double $(ARGS)
jax2onnx-sizes: build .venv/.bench ## makes jax2onnx's models; rewrites tests/conformance/jax2onnx_sizes.txt
	$(run_conformance) --source jax2onnx --sizes $(ARGS)
jax2onnx-nodes: build .venv/.bench ## counts the nodes of our models of these cases; rewrites tests/conformance/jaxport_nodes.txt
	$(run_conformance) --source jax2onnx --count $(ARGS)
jax2onnx-witness: build .venv/.bench ## what speaks for our larger models: inputs and times; rewrites tests/conformance/larger_evidence.txt
	$(run_conformance) --source jax2onnx --witness $(ARGS)
test-jax2onnx: build .venv/.bench
	$(run_conformance) --source jax2onnx --every 31 'primitives.*' --junit $(REPORT)/jax2onnx.xml
	$(call run_pytest,.venv,jax2onnx-python) tests/python/test_arguments.py tests/python/test_expect.py

# Every 13th case; 13 divides no number of transformations, so that all of them are met.
.PHONY: transforms test-transforms
transforms: build ## functions under vmap, grad, jvp and others; rewrites docs/transforms.md
	$(run_conformance) --source transforms $(ARGS)
test-transforms: build
	$(run_conformance) --source transforms --every 13 --junit $(REPORT)/transforms.xml

# The number of programs is fixed in make test, so that a failure repeats; make fuzz takes another
# seed each day. A find becomes a file that runs by itself.
.PHONY: fuzz fuzz-raise fuzz-programs test-fuzz test-fuzz-programs
MINUTES ?= $(if $(PROGRAMS),,10)
SEED ?= $(shell date +%Y%m%d)
raise_fuzz = build/release/raise_fuzz --out $(REPORT)/fuzz
run_programs = PYTHONPATH=tests:tests/python $(BIN)/python -m fuzz.programs --jobs $(JOBS)
fuzz: fuzz-raise fuzz-programs ## search for programs that raising changes and for JAX programs that come out wrong: MINUTES=n each, SEED=s
fuzz-raise: build
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --target raise_fuzz
	$(raise_fuzz) --seed $(SEED) --minutes $(or $(MINUTES),10)
fuzz-programs: build ## random JAX programs only: MINUTES=n or PROGRAMS=n, SEED=s
	$(run_programs) --seed $(SEED) $(if $(PROGRAMS),--programs $(PROGRAMS)) $(if $(MINUTES),--minutes $(MINUTES))
test-fuzz: build
	cmake --preset release --log-level=WARNING
	cmake --build --preset release --target raise_fuzz
	$(raise_fuzz) --seed 1 --programs 6000
	$(raise_fuzz) --faults --seed 1 --programs 30000
test-fuzz-programs: build
	$(run_programs) --programs 500 --seed 1 --junit $(REPORT)/fuzz-programs.xml

.PHONY: metamorphic
metamorphic: build ## one function written and converted in many ways: PROGRAMS=n random ones, SEED=s
	JAXPORT_METAMORPHIC=1 $(BIN)/python -m pytest tests/python/test_metamorphic.py -q --numprocesses $(JOBS)
	PYTHONPATH=tests:tests/python $(BIN)/python -m fuzz.programs.metamorphic \
	  --programs $(or $(PROGRAMS),100) --seed $(SEED)

.PHONY: test-plants
test-plants: build ## 50 faults planted into models: jaxport.verify names their places; test-python has 12 of them; FIRST=seed
	JAXPORT_PLANTS=50 JAXPORT_PLANTS_SEED=$(or $(FIRST),10000) $(BIN)/python -m pytest tests/python/test_plants.py -s

# Bytes and files that nobody wrote. libFuzzer starts from the text tests, from models made of them, and
# from tests/fuzz/parsers/corpus, which keeps what was found.
.PHONY: fuzz-parsers fuzz-files test-kill test-leaks
FUZZERS := jir onnx compile
fuzz-parsers: build .venv/.fuzz ## libFuzzer on the readers of .jir, ONNX and checkpoint files and on the compiler: MINUTES=n each
	tools/setup.sh system fuzz
	cmake --preset fuzz --log-level=WARNING
	cmake --build --preset fuzz --target $(FUZZERS:%=fuzz_%)
	tests/fuzz/parsers/run.sh build/fuzz build/release/jaxport $(or $(MINUTES),10) $(FUZZERS)
	for kind in safetensors pth; do mkdir -p build/fuzz/corpus/$$kind build/fuzz/finds; seeds=tests/fuzz/parsers/corpus/$$kind; \
	  PYTHONPATH=tests:. $(BIN)/python -m fuzz.parsers.checkpoint $$kind -max_len=4096 -timeout=10 \
	    -max_total_time=$$(($(or $(MINUTES),10) * 60)) -artifact_prefix=build/fuzz/finds/$$kind- \
	    build/fuzz/corpus/$$kind $$([ -d $$seeds ] && echo $$seeds); done
fuzz-files: build ## every command on damaged .jir and .onnx files: MINUTES=n, SEED=s
	PYTHONPATH=tests $(BIN)/python -m fuzz.files --minutes $(or $(MINUTES),10) --seed $(SEED)
test-kill: build ## 200 conversions that are killed while they write
	PYTHONPATH=tests $(BIN)/python -m fuzz.files.kills --kills 200
test-leaks: build ## 1,000 conversions in one process; prints how much memory stays
	JAXPORT_CONVERSIONS=1000 $(BIN)/python -m pytest tests/python/test_concurrency.py --quiet --tb=short -s --junit-xml $(REPORT)/leaks.xml

# The corpus is traced once for each state of the tracing layer; see docs/development.md.
.PHONY: replay
EVERY ?= 13
replay: setup ## which models differ from those of another commit, in bytes: BASE=commit, EVERY=n
	PYTHONPATH=tools:tests/python $(BIN)/python -m replay --base "$(BASE)" --every $(EVERY) --jobs $(JOBS)

# Each version of a runtime is installed into a folder of its own, once.
.PHONY: runtimes runtimes-sample
run_runtimes = PYTHONPATH=tests:tests/python:tools $(BIN)/python -m runtimes
runtimes: build ## models on versions of ONNX Runtime, in browsers, OpenVINO and others; rewrites docs/runtimes.md
	tools/setup.sh system web
	$(run_runtimes)
runtimes-sample: build # a version that a later one does not stand for, and what the ONNX package brings
	$(run_runtimes) --models 20 --places onnxruntime-1.20 reference

.PHONY: ecosystem
ecosystem: .venv-ecosystem/.jaxport ## programs of packages from PyPI; rewrites docs/ecosystem.md
	PYTHONPATH=tests:tests/python .venv-ecosystem/bin/python -m ecosystem

.PHONY: raising-table
raising-table: build ## measure every spelling of the raising suite; rewrites docs/raising.md
	PYTHONPATH=tests:tests/python $(BIN)/python -m raising

# --- checks

.PHONY: docs
docs: $(STAMP)/site ## the documentation site in build/site; a broken link is an error
$(STAMP)/site: .venv/.docs mkdocs.yml $(shell find docs -type f)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@mkdir -p $(@D) && touch $@

.PHONY: pictures
pictures: build ## draw the pictures of the documentation anew, from conversions and from bench/results
	PYTHONPATH=tools $(BIN)/python -m pictures

.PHONY: screenshots
screenshots: test-page ## take the pictures of the report page anew, from what its test leaves
	PYTHONPATH=tools $(BIN)/python -m pictures.screenshots build/explorer

.PHONY: check-format check-python check-types check-repository check-licences check-web format lint
check-format: setup ## formats of C++ and Python
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/ruff format --check --quiet .
check-python: setup ## ruff
	$(BIN)/ruff check --quiet .
check-types: setup ## mypy
	$(BIN)/mypy
check-web: web/node_modules/.package-lock.json ## types of the report page; lint and format of all code for browsers
	npm run --silent --prefix web types
	npm run --silent --prefix web lint
check-repository: setup ## rules of this repository that no other tool knows
	$(BIN)/python tools/check_repository.py
check-licences: environment build ## licences of what the wheel holds and of what is installed here
	$(BIN)/python tools/check_licences.py
format: setup ## format C++ and Python in place
	@$(BIN)/clang-format -i $(CXX_FILES)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --quiet .
	if [ -d web/node_modules ]; then npm run --silent --prefix web format; fi
lint: setup ## clang-tidy over all C++ files
	tools/setup.sh system lint
	cmake --preset dev --log-level=WARNING -DJAXPORT_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	run-clang-tidy -quiet -p build/dev -j $(JOBS) -extra-arg=-Wno-unknown-warning-option '$(CURDIR)/(src|tests)/'

.PHONY: clean
clean: ## remove everything that was built or installed here
	rm -rf build .venv .venv-oldest .venv-ecosystem
