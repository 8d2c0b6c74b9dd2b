# Two commands matter: `make run` and `make test`. Both do every set-up step themselves and are safe to repeat.
PRESET ?= release
BUILD := build/$(PRESET)

.PHONY: help run build test bench bench-peers bench-snapshots fuzz setup configure format tidy clean

help:
	@echo "make run          set up, build, fetch the default model, chat with it through a Wasm actor, print the proof"
	@echo "make test         set up, build and run every test"
	@echo "make build        build/release/driftwood"
	@echo "make bench        reproduce the figures of the README"
	@echo "make bench-peers  the same machine, the same files, against llama.cpp (MODELS=... narrows it down)"
	@echo "make bench-snapshots  saving, restoring and forking a whole actor, against llama.cpp's slot files"
	@echo "make fuzz         every fuzzer for FUZZ_SECONDS (600) seconds"
	@echo "make format       clang-format over the tree"

setup:
	@tools/setup.sh

configure: setup
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET)

build: configure
	@cmake --build $(BUILD)

run: build
	@tools/fetch_model.sh >/dev/null
	@tools/run_demo.sh $(BUILD)

test: build
	@tools/run_tests.sh $(BUILD)

bench: configure
	@cmake -B $(BUILD) -DDW_BENCH=ON >/dev/null
	@cmake --build $(BUILD)
	@tools/fetch_model.sh >/dev/null
	@tools/bench.sh $(BUILD)

bench-peers: configure
	@cmake -B $(BUILD) -DDW_BENCH=ON >/dev/null
	@cmake --build $(BUILD)
	@tools/fetch_model.sh >/dev/null
	@tools/bench_peers.sh $(BUILD)

bench-snapshots: configure
	@cmake -B $(BUILD) -DDW_BENCH=ON >/dev/null
	@cmake --build $(BUILD)
	@tools/fetch_model.sh >/dev/null
	@tools/bench_snapshots.sh $(BUILD)

FUZZ_SECONDS ?= 600
fuzz: setup
	@tools/run_fuzzers.sh $(FUZZ_SECONDS)

tidy: configure
	@python3 tools/tidy.py --build $(BUILD)

format:
	@tools/format.sh

clean:
	rm -rf build
