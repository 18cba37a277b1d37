# The everyday commands by name. Each is one line that can as well be typed; `.ci/run` is what a change has to pass.

CARGO ?= cargo

.PHONY: help build quick test lint fmt doc example reference models bench guard ci full

help: ## list these commands
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

build: ## build the greenroom program, optimised
	$(CARGO) build --release --locked

quick: ## format, lints and tests of the crates that differ from main; `make quick SINCE=HEAD~3`
	.ci/quick $(SINCE)

test: ## run the tests of all crates; `make test CRATE=greenroom-bus` runs those of one
	$(CARGO) test --locked $(if $(CRATE),--package $(CRATE),--workspace)

lint: ## check formatting, lints, licences, links and paths
	.ci/run format licences tree clippy

fmt: ## format the code, benchmarks, fuzz targets and models included
	$(CARGO) fmt --all
	cd bench && $(CARGO) fmt --all
	cd models && $(CARGO) fmt --all
	cd fuzz && $(CARGO) fmt --all

doc: ## build the API documentation; a broken link is an error
	.ci/run doc

example: ## run examples/orders and check its report, its files and the library's examples
	.ci/run example

reference: ## write docs/configuration.md anew from the declared options
	$(CARGO) run --quiet --release --locked -- schema --reference > docs/configuration.md.new
	mv docs/configuration.md.new docs/configuration.md

models: ## model-check the waiting protocols of a pool (loom, shuttle)
	.ci/run models

bench: ## measure the engine and a pool, the short way; bench/README.md has the rest
	.ci/run benchmark

guard: ## count instructions per message with valgrind, beside the recorded ones
	$(CARGO) run --quiet --profile measure --locked --manifest-path bench/Cargo.toml --package pools -- guard

ci: ## the gate: what every change has to pass
	.ci/run

full: ## everything there is: before a release
	.ci/run full
