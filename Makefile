# make help prints the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
GO      := go

# One way to compile for all targets, as releases are, so that each package is compiled once.
export CGO_ENABLED = 0
export GOFLAGS += -trimpath

FUZZTIME ?= 20s
AGENTS   ?= .cache/agents
TOOLS    := git tmux
test race: TOOLS += less vi top zsh fish gh git-lfs
ifeq ($(shell uname -s),Linux)
test race escape: TOOLS += bwrap
ifeq ($(shell id -u),0)
test escape: TOOLS += dockerd busybox
endif
endif

.PHONY: help
help: ## print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/agency
	$(GO) build -buildvcs=auto -ldflags '$(LDFLAGS)' -o bin/agency ./cmd/agency

.PHONY: install
install: build ## copy program, manual pages and completions to $(PREFIX)/bin and share (default: /usr/local)
	@sh scripts/install.sh bin/agency '$(DESTDIR)$(or $(PREFIX),/usr/local)'

.PHONY: demo
demo: deps ## start three scripted agents on a clone of this repository and watch them
	@echo 'compiling agency, which takes a minute the first time'
	@$(MAKE) -s build
	@sh scripts/demo.sh bin/agency

# Two packages at a time: their tests mostly wait for terminals and processes. More would want a larger machine.
.PHONY: test
test: deps ## run all tests
	$(GO) test -p 2 -parallel 4 -count=1 -timeout 20m ./...

# SQLite is C, translated: the detector has nothing to find in it or in its allocator, and would spend
# most of its time there.
# The longest package comes first, so that the others run beside it.
.PHONY: race
race: export GOFLAGS += -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false -gcflags=modernc.org/memory=-race=false
race: deps ## run all tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -p 2 -parallel 4 -race -count=1 -timeout 40m ./test/script ./...

.PHONY: conformance
conformance: deps ## run the real coding agents under agency (installs them with npm)
	@sh scripts/agents.sh '$(AGENTS)'
	AGENCY_AGENTS='$(abspath $(AGENTS))' $(GO) test -count=1 -parallel 3 -timeout 30m ./test/conformance/...

.PHONY: escape
escape: deps ## let an agent try every known way out of its sandbox, and print the table
	$(GO) test -count=1 -v -run 'TestScripts/(sandbox|container)|TestSandbox' ./test/script

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (default 20s)
	@sh scripts/fuzz.sh $(FUZZTIME)

.PHONY: crash
crash: deps ## kill every process at every step, check what is left, and print a table
	cd test/crash && AGENCY_CRASH=all $(GO) test -count=1 -parallel 6 -timeout 30m

.PHONY: crash-soak
crash-soak: deps ## let many clients do anything while anything is killed N times (default 1000); SEED=... repeats one
	cd test/crash && AGENCY_CRASH_SOAK=$(or $(N),1000) AGENCY_CRASH_SEED=$(SEED) $(GO) test -count=1 -v -run TestSoak -timeout 12h

.PHONY: crash-queue
crash-queue: deps ## let a landing queue live through N random histories with kills (default 300); SEED=... repeats one
	cd test/crash && AGENCY_CRASH_HISTORIES=$(or $(N),300) AGENCY_CRASH_SEED=$(SEED) $(GO) test -count=1 -v -parallel 6 -run TestHistories -timeout 12h

.PHONY: dist
dist: ## make archives, Debian packages, lists of modules and checksums in dist/ (needs GNU tar)
	@sh scripts/dist.sh '$(VERSION)'

.PHONY: reproducible
reproducible: ## make dist twice, in two clones, and compare; then install, use and purge the package, as root
	@sh scripts/reproducible.sh

.PHONY: upgrade
upgrade: deps ## start runs with BASE=COMMIT (default: the commit before), upgrade, and downgrade again
	@sh scripts/upgrade.sh '$(or $(BASE),HEAD~1)'

.PHONY: lint
lint: ## check style and the import rules
	$(GO) tool -modfile=tools/go.mod golangci-lint run ./...

.PHONY: bench
bench: deps build ## measure the bars of docs/benchmarks.md; BASE=COMMIT measures that in turns with this one
	$(GO) run ./test/bench -agency bin/agency $(if $(BASE),-compare $(BASE))

.PHONY: bench-peers
bench-peers: deps build ## build claude-squad and agent-deck where they can be had, and measure them beside agency
	$(GO) run ./test/bench -agency bin/agency -only peers

.PHONY: picture
picture: deps build ## draw docs/ls.svg, the picture of the README
	@sh scripts/picture.sh bin/agency > docs/ls.svg

.PHONY: verify
verify: ## check that modules are tidy and unchanged
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: deps
deps: ## install what is missing: git and tmux, for the tests also less, vi, top, zsh, fish, gh, git-lfs, bwrap, dockerd and busybox
	@sh scripts/deps.sh $(TOOLS)
