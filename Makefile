# Two commands matter: `make run` and `make test`. Both say what they do and install what they need.

SHELL := /bin/bash
.DEFAULT_GOAL := help
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
export SWITCHBOARD_BIN ?= $(TARGET)/quick/switchboard

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: run
run: build ## Build everything and serve the quick-start board on 127.0.0.1:8420
	@scripts/what-to-try
	@exec "$(SWITCHBOARD_BIN)" --config examples/quickstart.yaml --data-dir .tools/quickstart-data serve

.PHONY: build
build: ## Build the program (target/quick/switchboard); `make dist` makes a faster and smaller one
	@scripts/need-build-tools
	@scripts/build

.PHONY: test
test: ## Everything: format, lints, documentation, unit, integration, end-to-end and browser tests
	@scripts/test

.PHONY: faults
faults: ## Ten minutes of crashes, full disks, locks, reloads and floods under load (SECONDS_LONG=600, FAULT_DISK=a small file system)
	@FAULT_SECONDS="$(or $(SECONDS_LONG),600)" cargo test --quiet --package switchboard-cli --test faults -- --nocapture

.PHONY: fuzz
fuzz: ## Try many more names, schemas, streams, histories and edits than `make test` does, and others each time (CASES=20000)
	@PROPTEST_CASES="$(or $(CASES),20000)" cargo test --quiet --workspace --lib
	@PROPTEST_CASES="$(or $(CASES),20000)" cargo test --quiet --release --package switchboard-wire --test fuzz
	@PROPTEST_CASES="$(or $(CASES),20000)" cargo test --quiet --release --package switchboard-react --test it chunking

.PHONY: e2e-peers
e2e-peers: ## Install the real MCP servers, clients and agents of the end-to-end tests, and what checks the API
	@e2e/install-peers.sh
	@e2e/install-agents.sh
	@e2e/install-api-checkers.sh
	@e2e/install-trustgraph.sh
	@e2e/install-agent365.sh
	@e2e/install-apps.sh

.PHONY: fmt
fmt: ## Format the code
	@cargo fmt --all

.PHONY: generate
generate: ## Write the files that are made from the code
	@cargo xtask generate
	@cd ui && npm run --silent api

.PHONY: dist
dist: ## Build the binary that is handed out (target/dist/switchboard); takes half an hour
	@scripts/need-build-tools
	@scripts/dist

.PHONY: package
package: ## Make the archive and the Debian package below target/package (PACKAGE_PROFILE=dist, or quick)
	@scripts/package

.PHONY: test-package
test-package: ## Install, start, upgrade and remove the Debian package in a clean Debian root (needs root, debootstrap, a mirror)
	@scripts/test-package

.PHONY: bench
bench: dist ## Print what starting, idling and calling cost
	@cargo run --quiet --release --package switchboard-bench -- "$(TARGET)/dist/switchboard"

.PHONY: bench-gateway
bench-gateway: dist ## Print what the gateway adds to a call, beside a bare proxy
	@cargo run --quiet --release --package switchboard-bench -- gateway "$(TARGET)/dist/switchboard"

.PHONY: bench-api
bench-api: dist ## Print what lists and renderings over the API cost, beside a fixed answer of the same bytes
	@cargo run --quiet --release --package switchboard-bench -- gateway-api "$(TARGET)/dist/switchboard"

.PHONY: bench-render
bench-render: ## Print what rendering a thousand tools costs
	@cargo run --quiet --release --package switchboard-bench -- render

.PHONY: bench-turns
bench-turns: dist ## Print what turns cost: reading streams, a thousand at a time, each delta
	@cargo run --quiet --release --package switchboard-bench -- turns "$(TARGET)/dist/switchboard"

.PHONY: bench-injected
bench-injected: dist ## Print what apps of providers pay: the first token, each delta, a thousand streams at a time
	@cargo run --quiet --release --package switchboard-bench -- injected "$(TARGET)/dist/switchboard"

.PHONY: coverage
coverage: ## Line coverage of each pure crate; fails below 90 %
	@scripts/coverage
