PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
INSTALLED_DOCS := .venv/installed-docs

# each process of the tests would compile a thousand modules, for three seconds
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install quickstart test test-more test-rest test-all test-processes lint types coverage docs package newest benchmark lock test-dbt-spark test-faults test-onelake test-connect test-livy test-thrift test-onelake-driver test-fabric test-recipes test-packages test-oldest test-versions test-windows

help: ## Show this help
	@grep -hE '^[a-z -]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z -]+):.*## /\1\t/' | expand -t 28

quickstart: $(INSTALLED) ## Set up everything, mirror two days of flights, show what was published
	$(BIN)/python integration_tests/quickstart.py

test: $(INSTALLED) ## Set up everything and test what matters most, in five minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal --interpreted -m "core and not slow"

test-more: $(INSTALLED) ## Test every behaviour once that make test leaves out
	$(BIN)/python -m pytest -n 2 --dist loadscope --interpreted -m "not slow and not core" --ignore tests/functional/dbt_suite

test-processes: $(INSTALLED) ## Run dbt in processes of its own: kills, two at once, the wheel; unit tests that take long
	$(BIN)/python -m pytest -n 2 --dist worksteal --interpreted -m slow tests/unit tests/functional/processes

test-rest: $(INSTALLED) ## Run test-more and test-processes in one go, which starts and waits less
	$(BIN)/python -m pytest -n 2 --dist worksteal --interpreted -m "once and (slow or not core)" --ignore tests/functional/dbt_suite

test-all: $(INSTALLED) ## Test everything that this machine can, also other sizes, environments, and dbt's own suite
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow"
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow tests/unit tests/functional --ignore tests/functional/faults --ignore tests/functional/elsewhere

test-faults: $(INSTALLED) ## Let everything go wrong at every point of a run, and try many histories; not part of test-all
	$(BIN)/python -m pytest -n 2 --dist worksteal --interpreted --many tests/functional/faults tests/functional/test_histories.py tests/unit/landing_zone/test_power_loss.py tests/unit/landing_zone/test_records.py

test-onelake: $(INSTALLED) ## Run the functional tests with everything published to OneLake; not part of test-all
	$(BIN)/python -m pytest -n 2 --dist loadscope --interpreted -m "not slow" --onelake tests/functional

test-onelake-driver: $(INSTALLED) ## Let Spark write to OneLake itself, by its driver from Maven Central; not part of test-all
	$(BIN)/python -m pytest tests/functional/elsewhere/test_onelake_driver.py

test-connect test-livy test-thrift: test-%: $(INSTALLED) ## Run the functional tests on a Spark server; not part of test-all
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow" --method $* tests/functional

test-dbt-spark: $(INSTALLED) ## Download dbt-spark's own tests, and run them with everything mirrored; not part of test-all
	$(BIN)/python -m tests.dbt_spark

test-oldest: $(INSTALLED) ## Run the mapping of changes on the oldest Spark and dbt that are supported; not part of test-all
	$(BIN)/python -m tests.matrix --only 1

test-versions: $(INSTALLED) ## Run tests on other versions of Python, Spark and dbt, and other tables (ONLY=2: the second); not part of test-all
	$(BIN)/python -m tests.matrix $(if $(ONLY),--only $(ONLY))

test-windows: $(INSTALLED) ## Run unit tests and dbt with a Python for Windows, under Wine (Debian, as root); not part of test-all
	$(BIN)/python -m tests.wine
	$(BIN)/python -m pytest tests/functional/elsewhere/test_windows.py

test-fabric: $(INSTALLED) ## Ask a real Fabric workspace (WORKSPACE=name or id; ARGS=--help: options) what only it can answer; not part of test-all
	@test -n "$(WORKSPACE)" || { echo 'WORKSPACE is missing: make test-fabric WORKSPACE=<name or id>'; exit 2; }
	$(BIN)/python -m tests.workspace "$(WORKSPACE)" $(ARGS)

test-recipes: $(INSTALLED) ## Run the recipes for cron, Airflow, Dagster, containers, CI and tools; not part of test-all
	$(BIN)/python -m pytest tests/recipes

test-packages: $(INSTALLED) ## Run dbt packages with their own projects, beside dbt-spark (PACKAGES=folder: they lie there; ONLY=name: one of them); not part of test-all
	$(BIN)/python -m tests.packages $(if $(PACKAGES),--folder $(PACKAGES)) $(ONLY)

lint: $(INSTALLED) ## Check style, format and the workflows of GitHub
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/zizmor --offline --quiet --min-severity medium .github

types: $(INSTALLED) ## Check types
	$(BIN)/mypy

coverage: $(INSTALLED) ## Show which branches the tests without Spark cover
	$(BIN)/coverage run -m pytest -q -m "not slow" tests/unit -p no:xdist
	$(BIN)/coverage report

docs: $(INSTALLED_DOCS) ## Build the site from docs into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

package: $(INSTALLED) ## Build the distributions for PyPI into dist, and check that PyPI takes them
	$(BIN)/uv build --quiet --no-build-isolation --clear
	$(BIN)/twine check --strict dist/*

benchmark: $(INSTALLED) ## Compare with dbt-spark, and with what else would do the same
	$(BIN)/python -m tests.benchmarks

install: $(INSTALLED) ## Set up .venv from the locked dependencies

# the tests that install packages take them from the cache of uv
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation

$(INSTALLED): build.lock requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --only-binary :all: --requirement build.lock
	$(INSTALL) --require-hashes --requirement requirements.lock
	$(INSTALL) --editable .
	touch $@

$(INSTALLED_DOCS): docs.lock $(INSTALLED)
	$(INSTALL) --require-hashes --requirement docs.lock
	touch $@

# above the bounds of pyproject.toml. dbt-core 2 is another program, which loads no adapters in Python
NEWEST = dbt-core<2 dbt-spark[PyHive] pyspark[connect]

newest: $(INSTALLED) ## Update .venv to the newest packages, also above the bounds of dbt and Spark (PRE=1: pre-releases of these); to undo it, remove .venv
	printf '%s\n' $(foreach package,$(NEWEST),'$(package)') | $(BIN)/uv pip install --python $(BIN)/python --upgrade \
		$(if $(PRE),$(foreach package,dbt-core dbt-spark pyspark,--prerelease-package $(package)=allow)) \
		--override - --editable '.[connect,java,replicator]' --group dev

LOCK = $(BIN)/uv pip compile --universal --python-version 3.10 --generate-hashes --no-header --no-annotate

lock: $(INSTALLED) ## Update requirements.lock, build.lock and docs.lock
	$(LOCK) pyproject.toml --extra connect --extra java --extra replicator --group dev -o requirements.lock
	$(LOCK) --group build -o build.lock
	$(LOCK) --group docs --constraint requirements.lock -o docs.lock
