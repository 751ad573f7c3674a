# Everything that a developer or CI does here is a target of this file; `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO    ?= go
CACHE ?= $(or $(AGENTBOX_CACHE),$(HOME)/.cache/agentbox)
BIN   := bin
LINT  := $(BIN)/golangci-lint
GUEST := internal/spaceinit/embedded/program/agentbox-init

# Trees that hold files made by `make generate`.
GENERATED := api docs sdk/typescript/src sdk/python/src

# The guest is one static program that is PID 1 of every space; the daemon embeds it.
GUEST_FLAGS := -trimpath -buildvcs=false -ldflags "-s -w"
# Without -trimpath, as go test compiles: a clone compiles each package once. scripts/sdk-packages builds what is given away, with it.
BUILD_FLAGS := -buildvcs=auto -ldflags "-s -w"

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-11s %s\n", $$1, $$2}'

.PHONY: hello
hello: build ## a TypeScript program in a nano space: from a fresh clone to its output, without root
	@scripts/hello $(BIN)/agentbox examples/hello/hello.ts

.PHONY: demo
demo: build rootfs dataset ## the main job from beginning to end, with a real data set (ASK=1 asks you; MODEL=glm-4.6 with ZAI_API_KEY asks a live model)
	@$(BIN)/agentbox demo --out dist/demo $(if $(ASK),--ask) $(if $(MODEL),--model $(MODEL))

.PHONY: test
test: guest quickjs rootfs nano dataset ## every test (four packages at a time: most of them wait for disks, clocks and programs)
	cd bench && ../scripts/in-memory $(GO) test ./...
	scripts/in-memory $(GO) test -p 4 -timeout 40m ./...
	$(MAKE) --no-print-directory bench-smoke
	$(MAKE) --no-print-directory --jobs 3 --output-sync=target sdk-test e2b-test mcp-test agents-test injection-test

.PHONY: sdk-test
sdk-test: build ## the TypeScript and Python SDKs, against bin/agentbox
	@scripts/sdk test

.PHONY: e2b-test
e2b-test: build ## the unmodified packages of E2B, against bin/agentbox
	@scripts/e2b test

.PHONY: mcp-test
mcp-test: build ## the conformance kit of the Model Context Protocol, against bin/agentbox and against the client that agents use
	@scripts/mcp test

.PHONY: agents-test
agents-test: guest quickjs rootfs nano ## coding agents of npm in a space, and the vendors' clients, against the daemon's side of their wires
	@scripts/agents test

.PHONY: injection-test
injection-test: guest quickjs rootfs ## agents whose model obeys every text of an attacker: nothing happens that nobody approved
	@scripts/injection test

.PHONY: sdk-packages
sdk-packages: guest quickjs nano ## the SDKs as packages that bring the program: wheels and packages of npm in dist/sdk, tried in empty folders (OLDSTABLE=1: also in roots of Debian's oldstable and of musl)
	@scripts/sdk-packages --try $(if $(OLDSTABLE),--oldstable)

PORTS := linux/arm64 darwin/arm64 darwin/amd64 windows/amd64 windows/arm64

.PHONY: ports
ports: guest quickjs ## the program for every other system (nothing is kept), and the disk driver as it is there, tested on this one
	@for port in $(PORTS); do \
		echo "$$port"; export CGO_ENABLED=0 GOOS=$${port%/*} GOARCH=$${port#*/}; \
		$(GO) vet ./internal/host ./internal/driver/disk/internal/...; $(GO) build -o /dev/null ./cmd/agentbox; \
	done
# Without the cache of results: go test would log each path that a test opens, and read 10 GB of such a log into its memory (trees of any depth).
	$(GO) test -count=1 -tags portable -timeout 10m ./internal/driver/disk/...

.PHONY: build
build: guest quickjs ## bin/agentbox
	$(GO) build $(BUILD_FLAGS) -o $(BIN)/agentbox ./cmd/agentbox

.PHONY: guest
guest:
	CGO_ENABLED=0 $(GO) build $(GUEST_FLAGS) -o $(GUEST) ./cmd/agentbox-init

.PHONY: quickjs
quickjs: ## the JavaScript interpreter of nano spaces, which the daemon embeds (640 KB from npm)
	@scripts/quickjs

.PHONY: rootfs
rootfs: ## the read-only root of the spaces: shell, python with numpy and pandas, node, bun, gcc (make rootfs SMALL=1: less, 460 MiB)
	@scripts/rootfs $(if $(SMALL),--small)

.PHONY: nano
nano: ## the Python and the sqlite3 of nano spaces, built from source, about 4 minutes; the next build of bin/agentbox embeds them
	@scripts/nano
	@scripts/sqlite

.PHONY: dataset
dataset: ## the data set of the demo
	@scripts/fetch-dataset >/dev/null

.PHONY: check
check: fmt-check lint generated test ## everything that CI runs

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w $$(git ls-files '*.go')

.PHONY: fmt-check
fmt-check:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then printf 'not formatted, run make fmt:\n%s\n' "$$unformatted"; exit 1; fi

.PHONY: lint
lint: guest $(LINT) ## golangci-lint, whose govet makes the checks of go vet
	cd bench && $(GO) vet ./...
	$(LINT) run ./...

$(LINT): tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: generate
generate: guest ## the committed files that are made from code: the API's documents and the picture of the imports
	$(GO) generate ./...
	@scripts/sdk generate

.PHONY: generated
generated: guest
	@before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; \
	for tree in $(GENERATED); do if [ -e $$tree ]; then mkdir -p "$$before/$$tree"; cp -r $$tree/. "$$before/$$tree"; fi; done; \
	$(MAKE) --no-print-directory generate; \
	for tree in $(GENERATED); do \
		if [ -e $$tree ] && ! diff -r "$$before/$$tree" $$tree; then echo "$$tree was stale; it is made anew: commit it"; exit 1; fi; \
	done

.PHONY: race
race: guest quickjs rootfs nano dataset ## every test under the race detector, also in the daemons that they start
	cd bench && $(GO) test -race -run '^$$' ./...
	$(GO) test -race -timeout 3h ./...

.PHONY: soak
soak: guest quickjs rootfs nano dataset ## hours of kills, simulated histories, mutants and races; says first how long (KILLS=1000 AGENT_KILLS=500 SEEDS=10000 MUTANTS=1 RACE=1)
	@GO=$(GO) MAKE=$(MAKE) scripts/soak

.PHONY: mutants
mutants: ## which small changes of a package its tests do not notice (PACKAGES="./internal/domain/token ./internal/service/audit:prover.go")
	$(GO) run ./internal/testkit/mutate $(or $(PACKAGES),$(error say which packages: make mutants PACKAGES=./internal/domain/token))

.PHONY: trust
trust: build ## a stranger's check of the promises, against the daemon on the default data directory (TRUST="--data DIR --json")
	$(GO) run ./conformance/trust --agentbox $(BIN)/agentbox $(TRUST)

BENCH ?= .
COUNT ?= 1

.PHONY: bench
bench: guest quickjs nano ## measure, each figure beside its yardstick; writes bench.json, no figure fails it (BENCH=nano COUNT=3: those with such a name, medians of 3)
	@cd bench && { $(GO) test -run '^$$' -bench '(?i)$(BENCH)' -count $(COUNT) -benchmem -timeout 30m ./... || true; } | $(GO) run ./report -bench '(?i)$(BENCH)' -goals goals.json -out ../bench.json

BENCHED = $$(grep -rl --include='*_test.go' '^func Benchmark' internal cmd | xargs -n 1 dirname | sort -u | sed 's|^|./|')

.PHONY: bench-smoke
bench-smoke: guest quickjs nano ## every benchmark once, with little to do: fails where one fails or a figure of goals.json is missing
	@cd bench && AGENTBOX_BENCH_SMALL=1 $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 10m . | $(GO) run ./report -smoke -goals goals.json
	@$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 10m $(BENCHED)

.PHONY: hammer
hammer: build ## drive the API with load on both stores, check every promise, and compare (HAMMER="-kill -duration 1m -json")
	@cd bench && $(GO) run ./hammer -agentbox $(CURDIR)/$(BIN)/agentbox $(HAMMER)

CURVE       ?= 5000000
CURVE_STORE ?= sqlite

.PHONY: bench-curve
bench-curve: ## append, tail and page from an empty log to five million events (CURVE=5000000, CURVE_STORE=postgres); writes bench-curve.json and .svg
	@cd bench && $(GO) test -count=1 -timeout 4h -run '^TestTheCurve$$' -v . -curve $(CURVE) -curve-store $(CURVE_STORE) -curve-out $(CURDIR)/bench-curve || true

.PHONY: clean
clean: ## remove what was built; the cache in $(CACHE) stays
	rm -rf $(BIN) bench.json bench-curve.json bench-curve.svg $(GUEST)
