# `make up` and `make test` do everything that is needed first; see scripts/setup for what that is.

VENV := .venv
BIN := $(VENV)/bin
# What a setup depends on: change one of these and the next call sets up again.
INPUTS := pyproject.toml hatch_build.py scripts/setup scripts/web-build \
	$(wildcard src/holdfast/native/*.c) $(shell find web -name node_modules -prune -o -type f -print)

# GNU make tells its recipes how it was called by these; a session must not inherit them.
FORGET := unset MAKEFLAGS MFLAGS MAKELEVEL MAKEFILES MAKE_TERMOUT MAKE_TERMERR

.DEFAULT_GOAL := help
.PHONY: help up phone test check bench acceptance cluster setup durations diagrams reference schema screenshots clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; \
		do printf '  make %-10s %s\n' "$$name" "$$text"; done

up: $(VENV)/.ready-runtime ## start holdfast with a first session called main, and attach to it
	@$(FORGET); hold=$(CURDIR)/$(BIN)/hold; \
	said=$$($$hold up -d 2>&1) || [ $$? -eq 75 ] || { echo "$$said" >&2; exit 1; }; \
	said=$$(cd && $$hold run -d --name main 2>&1) || [ $$? -eq 73 ] || { echo "$$said" >&2; exit 1; }; \
	if [ -t 0 ] && [ -t 1 ]; then $$hold attach main || true; exit 0; fi; \
	echo "holdfast is up, with a session called main."; \
	echo "  attach to it    $$hold attach main"; \
	echo "  run in it       $$hold exec main -- uname -a"; \
	echo "  list sessions   $$hold ls"; \
	echo "  stop            $$hold down --end-sessions"

phone: $(VENV)/.ready-runtime ## the same for every device in this network: prints a code to scan
	@$(FORGET); hold=$(CURDIR)/$(BIN)/hold; \
	said=$$($$hold up -d --listen 0.0.0.0 2>&1) || { [ $$? -eq 75 ] && $$hold host | grep -q https://; } \
		|| { echo "$$said" >&2; exit 1; }; \
	said=$$(cd && $$hold run -d --name main 2>&1) || [ $$? -eq 73 ] || { echo "$$said" >&2; exit 1; }; \
	$$hold invite --all --role admin

test: $(VENV)/.ready-test ## run the whole test suite
	@cat $(VENV)/.missing-test 2>/dev/null || true
	$(BIN)/python -m pytest

check: $(VENV)/.ready-test ## format, lint, types, layering
	$(BIN)/ruff format --check . scripts/diagrams scripts/cluster scripts/api-reference scripts/protocol-schema scripts/protocol-reference scripts/action-schema scripts/web-build scripts/web-lock scripts/web-protocol scripts/screenshots
	$(BIN)/ruff check . scripts/diagrams scripts/cluster scripts/api-reference scripts/protocol-schema scripts/protocol-reference scripts/action-schema scripts/web-build scripts/web-lock scripts/web-protocol scripts/screenshots
	$(BIN)/mypy
	$(BIN)/python scripts/web-build --check
	$(BIN)/python -m pytest -q tests/unit/test_layering.py

bench: $(VENV)/.ready-bench ## measure against tmux, screen and dtach; JSON and plot in build/bench
	@cat $(VENV)/.missing-bench 2>/dev/null || true
	$(BIN)/python -m bench --into build/bench

acceptance: $(VENV)/.ready-test ## one build in every modality, with a report and pictures of it
	@rm -rf build/acceptance
	HOLDFAST_REQUIRE_ALL=1 HOLDFAST_ACCEPTANCE=$(CURDIR)/build/acceptance \
		$(BIN)/python -m pytest -q tests/e2e/test_acceptance.py
	@cp build/acceptance/timeline.svg docs/acceptance.svg
	@echo "the report: build/acceptance/report.md"

cluster: $(VENV)/.ready-test ## try several relays: three NATS servers and two relays, until ^C
	@$(FORGET); exec $(BIN)/python scripts/cluster

setup: ## set up again, whatever was done before
	@rm -f $(VENV)/.ready-*
	@$(MAKE) --no-print-directory $(VENV)/.ready-test

durations: ## keep what the last test run measured: the longest files start first
	cp build/durations.json tests/durations.json

reference: $(VENV)/.ready-test ## rewrite the reference in docs/sdk.md
	$(BIN)/python scripts/api-reference

schema: $(VENV)/.ready-test ## rewrite what is generated from the protocol's declarations: schemas, web app's messages, reference
	$(BIN)/python scripts/protocol-schema
	$(BIN)/python scripts/web-protocol
	$(BIN)/python scripts/protocol-reference
	$(BIN)/python scripts/action-schema

diagrams: $(VENV)/.ready-test ## redraw the generated diagrams and tables of the documents
	$(BIN)/python scripts/diagrams

screenshots: $(VENV)/.ready-test ## make the pictures of the web app in docs/pictures again, from a staged example
	$(BIN)/python scripts/screenshots

clean: ## remove what was made here, but for running sessions and their state
	rm -rf $(VENV) build dist web/node_modules src/holdfast/relay/web .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# A setup for tests has all that running needs, and so on.
$(VENV)/.ready-runtime: $(INPUTS)
	@scripts/setup runtime
	@touch $@

$(VENV)/.ready-test: $(INPUTS)
	@scripts/setup test
	@touch $(VENV)/.ready-runtime $@

$(VENV)/.ready-bench: $(INPUTS)
	@scripts/setup bench
	@touch $(VENV)/.ready-runtime $(VENV)/.ready-test $@
