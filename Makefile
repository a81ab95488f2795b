# `make` without a target prints the list of targets. All targets need Go, git and make; lint and deadcode also fetch and
# build the tools that tools/go.mod pins, and race needs a C compiler.

GO       ?= go
MODULE   := $(shell $(GO) list -m)
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
DATA     ?= ./lessor-data
FUZZTIME ?= 10s
SEEDS    ?= 1000000
TIME     ?= 8h
BENCH    ?= .
KILLS    ?= 10000
KILLTIME ?= 2h

# The tools have their own go.mod, so that their dependencies are not ours.
TOOL = $(GO) tool -modfile=$(CURDIR)/tools/go.mod

# Separate modules, so that their dependencies are not ours.
MODULES = bench mailbox/redis mailbox/sqs tools

# Tests wait much, so one package more than there are processors is tested at once, beside the simulator, which takes
# what the others leave. The packages that take longest begin first. go vet has looked at all of them before.
ATONCE = $$(($$(getconf _NPROCESSORS_ONLN) + 2))
LONG   = ./sim ./chaos ./internal/scheduler ./internal/store/postgres ./internal/dashboard ./examples \
	./internal/executor

# SQLite is C translated to Go. The race detector would make it more than ten times slower, and a race inside it would
# not be ours to fix. The driver above it is still checked.
NORACE = -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false

.DEFAULT_GOAL := help
.PHONY: chaos soak planted help run build test test-packages test-modules race fuzz cover bench bench-peers lint deadcode fmt module clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## start a server with demo tenants and workers; its data stays in ./lessor-data
	bin/lessor serve --demo --data $(DATA)

build: ## build bin/lessor: one static file, stamped with the version
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X $(MODULE)/node.Version=$(VERSION)' -o bin/lessor ./cmd/lessor

test: ## vet and test everything on both stores, including the separate modules; install what is missing
	$(GO) vet ./...
	$(GO) run ./internal/pgtest/install
	$(GO) run ./internal/need python3 curl chromium-headless-shell prometheus faketime haproxy nginx=nginx-light pgbouncer strace
	[ -n "$$LESSOR_TEST_REDIS" ] || command -v valkey-server >/dev/null || $(GO) run ./internal/need redis-server
	@$(MAKE) --no-print-directory -j 2 test-packages test-modules

test-packages:
	$(GO) test -vet=off -p $(ATONCE) -timeout 40m $(LONG) ./...

test-modules:
	@set -ex; for mod in $(MODULES); do (cd $$mod && $(GO) vet ./... && $(GO) test -vet=off ./...); done

chaos: ## check histories of real servers under every fault: KILLS (10000) kills in at most KILLTIME (2h) a store
	LESSOR_CHAOS=full $(GO) test -count=1 -v -timeout 6h ./chaos -kills $(KILLS) -kill-limit $(KILLTIME) -flips 200
	LESSOR_CHAOS=full $(GO) test -count=1 -v -timeout 30m -run HourOf ./worker

# SEEDS=2000 takes about four minutes of two processors.
soak: ## simulate SEEDS (1000000) hours of clusters, at most for TIME (8h); then the share of rules that they reached
	@mkdir -p bin/soak && rm -f bin/soak/*
	$(GO) build -cover -coverpkg=./internal/rules,./sim -o bin/sim ./sim
	GOCOVERDIR=bin/soak bin/sim -for 1h -seeds $(SEEDS) -time $(TIME); code=$$?; $(GO) tool covdata percent -i=bin/soak; exit $$code

planted: ## plant known faults in a copy of the tree, one at a time, and print which test catches each
	$(GO) run ./internal/pgtest/install
	$(GO) run ./planted

race: ## test under the race detector (needs cgo and a C compiler)
	@set -- $$($(GO) env CC); \
	if [ "$$($(GO) env CGO_ENABLED)" != 1 ] || ! command -v "$$1" >/dev/null; then \
		echo "make race: the race detector needs cgo and a C compiler, which were not found." >&2; \
		echo "Install gcc (Debian: apt-get install gcc libc6-dev), unset CGO_ENABLED, and try again." >&2; \
		exit 1; \
	fi
	$(GO) test -race $(NORACE) ./...

# Only our own packages count for coverage: SQLite with counters would take minutes to build. A target that ends with
# nothing but "context deadline exceeded" found nothing: go.dev/issue/75804, mended in Go 1.27.
fuzz: ## run every fuzz test for FUZZTIME each (10s), two at a time
	@mkdir -p bin/fuzz && rm -f bin/fuzz/*
	@$(GO) test -c -gcflags='$(MODULE)/...=-d=libfuzzer' -o bin/fuzz/ \
		$$(grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u)
	@grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z]+' . | sed -E 's|/[^/]*:.*func | |' | sort | \
		CACHE=$$($(GO) env GOCACHE)/fuzz xargs -P 2 -L 1 sh -c 'cd "$$0" && name=$$(basename "$$(pwd)") && \
		[ "$$0" != . ] || name=$(MODULE); \
		if out=$$("$(CURDIR)/bin/fuzz/$$(basename "$$name").test" -test.run="^$$" -test.fuzz="^$$1\$$" \
			-test.fuzztime=$(FUZZTIME) -test.parallel=1 -test.fuzzcachedir="$$CACHE/$(MODULE)/$$0" 2>&1) || \
			echo "$$out" | grep -qx "    context deadline exceeded"; then \
			echo "ok  $$0 $$1 $$(echo "$$out" | grep -o "execs: [0-9]*" | tail -n 1)"; \
		else printf "FAIL %s %s\n%s\n" "$$0" "$$1" "$$out"; exit 1; fi'

cover: ## test with coverage: the total here, line by line in bin/cover.html
	@mkdir -p bin
	$(GO) test -coverpkg=./... -coverprofile=bin/cover.out ./...
	$(GO) tool cover -html=bin/cover.out -o bin/cover.html
	@$(GO) tool cover -func=bin/cover.out | tail -n 1

bench: ## print the tables of bench/ and run the Go benchmarks that match BENCH (all)
	@if [ -f bench/go.mod ]; then set -x; cd bench && $(GO) run .; else echo "no bench/ module here"; fi
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

bench-peers: ## compare with River, Asynq, beanstalkd, NATS and etcd; write docs/benchmarks/peers.md and its chart
	$(GO) run ./internal/need redis-server beanstalkd
	cd bench && $(GO) run -tags peers . -only peers -write ../docs/benchmarks

lint: ## run golangci-lint (including vet and staticcheck) and gofumpt, as .golangci.yml configures them
	$(TOOL) golangci-lint run ./...
	@set -ex; for mod in $(MODULES); do (cd $$mod && $(TOOL) golangci-lint run ./...); done
	@bad=$$($(TOOL) gofumpt -modpath $(MODULE) -l .) || exit 1; \
	[ -z "$$bad" ] || { echo "not formatted (make fmt fixes it):"; echo "$$bad"; exit 1; }

deadcode: ## list functions that neither a program nor a test can reach
	$(TOOL) deadcode -test ./...

fmt: ## format all Go files with gofumpt, imports in three groups
	$(TOOL) golangci-lint fmt ./...
	@set -ex; for mod in $(MODULES); do (cd $$mod && $(TOOL) golangci-lint fmt ./...); done

module: ## rename the module: make module path=example.org/you/lessor; path=lessor undoes it
	@$(GO) run -C tools ./module '$(path)'

clean: ## remove bin/; the data of `make run` stays
	rm -rf bin
