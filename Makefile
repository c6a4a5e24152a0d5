# The front door: what a person types. Each target installs what is missing, then calls CMake's presets
# (CMakePresets.json) or a script of tools/. `make` alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
PRESET ?= release
DESTDIR ?=
PREFIX ?= /usr/local

.NOTPARALLEL:  # make nic install
.PHONY: help demo test test-all install-packages build nic planner programs lint format asan tsan fuzz interop vm bench coverage install uninstall nic-package packages source wheel site clean

help: ## list these targets
	@echo "Weir: RDMA under the programs people already run"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "JOBS=$(JOBS) jobs at once; PRESET=$(PRESET) is what make build builds (dev, release, asan, tsan, fuzz, coverage)"

interop vm bench: PRESET = release

# The software NIC, and `weir`, which puts programs on it.
NIC = weir weir-fabric weir_ibverbs weir_rdmacm weir_view weir_look weir_heap weir_check_verbs weir_rspreload weir_preload

demo: ## install and build what it needs, then show the key-value server over TCP, unix, TLS, RDMA and TLS over RDMA
	@tools/install-packages.sh --groups "build libraries demo"
	@tools/build-quietly.sh release $(JOBS) $(NIC) weir-server weir-cli weir-benchmark
	@tools/demo.sh build/release

test: install-packages ## install, build, test what a change can break; ends with 'N passed, N failed, N skipped'
	@JOBS=$(JOBS) tools/run-tests.py

test-all: install-packages ## all there is, for a release: also unit tests optimised, TSan, slow tests, the whole matrix, VM; hours
	@JOBS=$(JOBS) tools/run-tests.py all

install-packages: ## install the Debian packages of tools/packages.txt that are missing
	@tools/install-packages.sh

build: install-packages ## build the preset PRESET into build/PRESET
	@cmake --preset $(PRESET) --log-level=WARNING
	@cmake --build --preset $(PRESET) -j $(JOBS)

nic: ## build the software NIC and weir alone, with the few packages that takes: to run a verbs program somewhere
	@tools/install-packages.sh --groups "build libraries"
	@tools/build-quietly.sh release $(JOBS) $(NIC)

planner: ## build weir plan, weir sim and weir collector alone: to plan and simulate lossless networks
	@tools/install-packages.sh --groups "build libraries"
	@tools/build-quietly.sh release $(JOBS) weir weir-plan weir-sim weir-collector

programs: ## build everything that can be installed, and no test
	@tools/install-packages.sh --groups "build libraries modules"
	@tools/build-quietly.sh release $(JOBS) installable

lint: install-packages ## check format, layers, tree, and run clang-tidy on every file
	@JOBS=$(JOBS) tools/run-tests.py format tree tidy-all

format: install-packages ## rewrite the sources as .clang-format says
	@tools/check-format.sh --fix

asan: install-packages ## unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@JOBS=$(JOBS) tools/run-tests.py asan

tsan: install-packages ## unit tests under ThreadSanitizer
	@JOBS=$(JOBS) tools/run-tests.py tsan

FUZZ_SECONDS ?= 60
fuzz: install-packages ## run each libFuzzer target for FUZZ_SECONDS
	@JOBS=$(JOBS) tools/run-fuzzers.sh $(FUZZ_SECONDS)

ROWS ?= build/release/interop/rows.md
interop: build ## run other people's RDMA programs on the software NIC, the whole matrix; a row for each into ROWS
	@tests/interop/matrix.py --build build/release --rows $(ROWS)

vm: build ## run Weir's programs on, and its packets against, the kernel's Soft-RoCE, in a virtual machine (KVM where it opens)
	@tools/install-packages.sh tools/packages-vm.txt
	@ctest --preset release -L vm --output-on-failure

# Programs of bench/ that compare by themselves; the others want words, see bench/README.md.
BENCHES = copy_tiers registration memory_pool_bench rdma_stream_bench rdma_channel_bench channel_connections_bench \
  rpc_echo_bench

bench: build ## run the benchmarks of bench/, a few minutes, and print what they print
	@for program in $(BENCHES); do echo "== $$program"; build/release/bin/$$program || exit; done

coverage: install-packages ## unit tests with gcov; line coverage for each folder
	@cmake --preset coverage --log-level=WARNING
	@cmake --build --preset coverage -j $(JOBS)
	@ctest --preset coverage -LE 'bench|interop|slow' -j $(JOBS) || true
	@tools/coverage.py build/coverage

install: ## install what is built (make nic, make programs) below PREFIX (default /usr/local)
	@[ -x build/release/bin/weir ] || { echo "make install: nothing is built yet; first: make nic (or make programs)" >&2; exit 1; }
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX) >build/release/install.log
	@[ -n "$(DESTDIR)" ] || ldconfig 2>/dev/null || true
	@echo "installed below $(DESTDIR)$(PREFIX); build/release/install.log has the names"

uninstall: ## remove what make install has installed
	@tools/uninstall.sh build/release/install_manifest.txt "$(DESTDIR)"

nic-package: nic ## build the Debian package weir-nic alone into build/release/packages
	@tools/install-packages.sh --groups packages
	@cpack --config build/release/CPackConfig.cmake -G DEB -D CPACK_COMPONENTS_ALL=nic -B build/release/packages \
	  >build/release/packages.log || { tail -n 20 build/release/packages.log >&2; exit 1; }
	@ls build/release/packages/weir-nic_*.deb

packages: programs ## build Debian packages and a tarball into build/release/packages
	@tools/install-packages.sh --groups packages
	@cpack --config build/release/CPackConfig.cmake -B build/release/packages >build/release/packages.log || \
	  { tail -n 20 build/release/packages.log >&2; exit 1; }
	@ls build/release/packages/*.deb build/release/packages/*.tar.gz

source: ## pack the committed sources into build/release/packages/weir-VERSION.tar.gz
	@mkdir -p build/release/packages
	@version=$$(sed -n 's/^project(weir VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt) && \
	  git archive --prefix=weir-$$version/ -o build/release/packages/weir-$$version.tar.gz HEAD && \
	  ls build/release/packages/weir-$$version.tar.gz

wheel: ## build the Python wheel with its libraries (weir_rpc, weir_tensor, weir run) into build/release/packages
	@tools/install-packages.sh --groups "build libraries wheel"
	@tools/build-quietly.sh release $(JOBS) $(NIC) weir_rpc_c weir_tensor_c
	@/usr/bin/python3 tools/make-wheel.py build/release build/release/packages

site: ## make a website with a search from README and docs/, in build/site
	@tools/install-packages.sh --groups site
	@tools/make-site.py
	@echo "build/site/index.html; to read and search it: python3 -m http.server -d build/site"

.DEFAULT:
	@echo "make: there is no target '$@'; make alone lists them" >&2; exit 2

clean: ## remove build/
	@rm -rf build
