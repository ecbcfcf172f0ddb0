# On a clean machine `make demo` and `make test` are the only commands needed.
# Everything is read from and built inside this repository; `make` alone lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# Arguments of the demonstration: `make demo DEMO="replay --help"`.
DEMO ?= replay
# The models have a build of their own: `--cfg loom` reaches every crate.
LOOM_DIR := target/loom
# Seconds after which `make loom` gives up: bounds that do not fit are to be split, not waited for.
LOOM_SECONDS ?= 480

# Each model names its own bounds; LOOM_DEEP=1 chooses the deeper one.
loom_run = RUSTFLAGS="--cfg loom" $(CARGO) test --profile loom --target-dir $(LOOM_DIR) -p bandgate-loom-tests

.PHONY: help tools demo test fmt clippy tidy bench loom loom-deep loom-planted loom-planted-models doc clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

tools: ## check that the tools are there
	@command -v $(CARGO) >/dev/null || { \
		echo "cargo is missing. Install rustup (your distribution's package, or the installer of the Rust" >&2; \
		echo "project); it then fetches the toolchain that rust-toolchain.toml names." >&2; exit 1; }
	@command -v cc >/dev/null || { \
		echo "a C linker is missing. On Debian and Ubuntu: apt-get install gcc libc6-dev" >&2; exit 1; }
	@for part in fmt clippy; do $(CARGO) $$part --version >/dev/null 2>&1 || { \
		echo "cargo $$part is missing. With rustup: rustup component add rustfmt clippy" >&2; exit 1; }; done

demo: tools ## replay a trace in virtual time and print the report
	$(CARGO) run --profile demo -p bandgate-core --features cli --bin bandgate -- $(DEMO)

# Unit, property, vector, driver, stress, tidy, command and documentation tests, each once.
test: tools fmt clippy ## format, lints, all tests (the command line's too)
	$(CARGO) test --workspace --features bandgate-core/cli

fmt: tools
	$(CARGO) fmt --all -- --check

clippy: tools
	$(CARGO) clippy --workspace --all-targets --features bandgate-core/cli -- -D warnings

tidy: tools ## only the rules of the tree
	$(CARGO) test -p bandgate-core --test tidy

bench: tools ## criterion benchmarks, then the table of the README, peers in the same run
	$(CARGO) bench -p bandgate-benches
	$(CARGO) run --release -p bandgate-benches --bin table

loom: tools ## model-check the protocols, CI bounds
	timeout $(LOOM_SECONDS) bash -c '$(loom_run)' || { \
		[ $$? -ne 124 ] || echo "loom did not finish within $(LOOM_SECONDS) s: split the slow model" >&2; exit 1; }

loom-deep: tools ## the same with the deeper bounds (up to hours)
	LOOM_DEEP=1 $(loom_run)

loom-planted: tools ## every model must find the bug planted for it
	CARGO_TARGET_DIR="$(CURDIR)/$(LOOM_DIR)" loom-tests/planted.sh

loom-planted-models: tools ## the same without the plain tests: CI
	PLAIN=0 CARGO_TARGET_DIR="$(CURDIR)/$(LOOM_DIR)" loom-tests/planted.sh

doc: tools ## the documentation, warnings are errors
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps

clean: ## remove everything that was built
	rm -rf target
