# One command each, from a fresh clone: `make book`, `make test`.
# `|| true`: where the last one is missing, the shell ends with 127, and make then drops all that it printed.
PYTHON ?= $(firstword $(shell for v in 3.11 3.12 3.13 3.14; do command -v python$$v || true; done))
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp
NB     := $(wildcard book/*.ipynb)
BACKEND = $(shell sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml)

# Hermetic: no user site, no user kernels, one thread a process so that results do not depend on the machine.
export PYTHONNOUSERSITE := 1
export JUPYTER_PREFER_ENV_PATH := 1
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: help setup book test every unit notebooks portable properties wheels oldest soon networks lonely install-check installed release-check site lab lab-check lite lite-check student slides sphinx check style types derived rules sync from-notebook run new pdf bench course-zip \
  reproduce lock dist serve clean distclean

help:
	@awk -F ':.*## ' '/^[a-z-]+( every)?:.*## / { sub(" every", "", $$1); printf "make %-14s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP)  ## makes .venv
# What failed half-way is made again: without its python the environment counts as missing. Nothing else is removed.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "need Python 3.11, 3.12, 3.13 or 3.14: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo "cannot create $(VENV)"; echo "on Debian: apt-get install python3-venv"; rm -f $@; exit 1; }
$(STAMP): requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

# --- readers -----------------------------------------------------------------------------------------------
book: export LLPBOOK_LITE = $(if $(PYODIDE),$(CURDIR)/_build/lite)
book: $(STAMP) $(if $(PYODIDE),lite)  ## builds the site (PYODIDE=folder: with chapters that run in the browser)
	rm -rf _build/html _build/.doctrees   # a warm build hides the warnings of unchanged pages from -W
	$(BIN)/jupyter-book build -q -n -W --keep-going .
	$(BIN)/python tools/slides.py
	$(BIN)/python tools/check_site.py
	LLPBOOK_SITE=_build/html $(BIN)/python -m pytest -q tests/test_search.py
	@echo "the book is in _build/html/index.html"

# `unit` is the contributor's loop, under three minutes on two cores; `test` adds what is marked slow, and the chapters.
PYTEST := -m pytest -q -n 2 --dist loadscope
test: every notebooks  ## all tests, and the chapters as they are stored
unit: SOME := -m "not slow"
unit: $(STAMP)  ## unit tests but for the slow ones
every: $(STAMP)
unit every:
	MPLBACKEND=agg $(BIN)/python $(PYTEST) $(SOME) tests
NBVAL := $(PYTEST) --nbval --nbval-current-env --nbval-cell-timeout 300 --nbval-sanitize-with tests/nbval_sanitize.cfg
notebooks: $(STAMP)  ## the chapters: outputs as stored
	$(BIN)/python $(NBVAL) $(NB)

# The chapters under a second arithmetic: kernels that every x86-64 processor has and that OpenBLAS does not choose by
# itself on any of today. On other processors OpenBLAS ignores the name, and this repeats `notebooks`.
CORETYPE ?= Nehalem
portable: $(STAMP)  ## the chapters under a second arithmetic
	OPENBLAS_CORETYPE=$(CORETYPE) $(BIN)/python $(NBVAL) $(NB)

# Thousands of examples of every form of input, by hand; `make test` runs a seeded slice.
EXAMPLES ?= 350
properties: $(STAMP)  ## thousands of forms of input (EXAMPLES=350)
	LLPBOOK_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -n 2 tests/test_properties.py

# JupyterLab with the book's kernel and MyST; what Binder installs too.
$(VENV)/.lab: binder/lab.txt | $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check -r binder/lab.txt
	@touch $@
lab: $(VENV)/.lab  ## JupyterLab with the book
	$(BIN)/jupyter lab book/intro.ipynb

# Every chapter in a real JupyterLab, with MyST and without, by hand or by night.
CHROMIUM ?= chromium
lab-check: $(VENV)/.lab  ## chapters in a real JupyterLab (CHROMIUM=chromium)
	$(BIN)/python -m pip install -q --disable-pip-version-check playwright
	$(BIN)/python tools/check_jupyter.py $(CHROMIUM) $(CH)
	$(BIN)/python tools/check_jupyter.py --plain $(CHROMIUM) $(CH)

# JupyterLab and Python in the reader's browser, as files: _build/lite. PYODIDE is the folder of an unpacked release of
# Pyodide, and the kernel is one for that release; 0.27 takes LITE="jupyterlite-core==0.6.4 jupyterlite-pyodide-kernel==0.6.1".
LITE ?= jupyterlite-core==0.8.6 jupyterlite-pyodide-kernel==0.8.6
LITE_ENV := _build/lite-env
lite:  ## chapters that run in the browser (PYODIDE=folder)
	@test -f "$(PYODIDE)/pyodide-lock.json" || { echo "which Pyodide? make lite PYODIDE=folder, of an unpacked release"; exit 1; }
	$(PYTHON) -m venv $(LITE_ENV)
	$(LITE_ENV)/bin/python -m pip install -q --disable-pip-version-check $(LITE) jupyter-server \
	  $$(grep jupyterlab-myst binder/lab.txt)
	rm -rf build _build/wheels   # a wheel takes along what an older one left in build/
	$(LITE_ENV)/bin/python -m pip wheel -q --disable-pip-version-check --no-deps -w _build/wheels . \
	  $$(grep -oE '^(seaborn|comm)==[0-9.]+' requirements.txt)
	$(LITE_ENV)/bin/python tools/lite.py $(PYODIDE) _build/wheels
lite-check: $(STAMP)  ## all chapters of `make lite`, and one in a real browser (CHROMIUM=chromium CH=NAME)
	node tools/check_lite.mjs $(CH)
	$(BIN)/python -m pip install -q --disable-pip-version-check playwright
	$(BIN)/python tools/check_lite.py $(CHROMIUM) $(or $(CH),intro)

# For a course: _build/student holds the chapters without solutions, _build/solutions those with them.
student: $(STAMP)  ## chapters without solutions (ARGS=--run runs them)
	$(BIN)/python tools/student.py $(ARGS) $(CH)

# Slides of the syllabus of two weeks, which `book` makes, too: pages of the site that open from a file.
slides: $(STAMP)  ## slides of a course (NAME=session_1)
	$(BIN)/python tools/slides.py $(NAME)

# All that `make setup lab` installs; on the machine without a network: PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/wheels make setup lab.
wheels:  ## packages for a machine without network
	$(PYTHON) -m pip download -q --disable-pip-version-check -d wheels --require-hashes -r requirements.txt
	$(PYTHON) -m pip download -q --disable-pip-version-check -d wheels -r binder/lab.txt "$(BACKEND)"

# The unit tests at the oldest versions that pyproject.toml allows, in an environment of their own.
OLD := .venv-oldest
WITHOUT_BOOK := tests --ignore tests/test_tools.py --ignore tests/test_site.py   # of what needs the book's packages
WAS_SOON := DeprecationWarning PendingDeprecationWarning FutureWarning   # what old versions announced has happened since
AS_OLD := grep -oE '"[a-z-]+>=[0-9.]+"' | tr -d '"' | sed 's/>=\(.*\)/==\1.*/'
oldest:  ## unit tests at the oldest versions
	$(PYTHON) -m venv $(OLD)
	$(OLD)/bin/python -m pip install -q --disable-pip-version-check -e ".[test]" \
	  $$(grep -vE '^(learners|torch) ' pyproject.toml | $(AS_OLD))
	MPLBACKEND=agg $(OLD)/bin/python -m pytest -q -n 2 --dist loadscope $(WAS_SOON:%=-W default::%) $(WITHOUT_BOOK)

# What a release publishes, in empty environments: on every Python with the newest libraries, then with the oldest.
PYTHONS ?= $(shell for v in 3.11 3.12 3.13 3.14; do python$$v -V > /dev/null 2>&1 && echo $$v || true; done)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
install-check: dist installed  ## wheel and sdist, installed and tried (PYTHONS="3.11 3.12")
installed:
	test -n "$(PYTHONS)"
	set -e; for file in dist/llpbook-*; do for v in $(PYTHONS) $(if $(filter 3.11,$(PYTHONS)),oldest); do \
	  pins=; test $$v != oldest || { v=3.11; pins=$$(sed -n '/^dependencies/,/^]/p' pyproject.toml | $(AS_OLD)); }; \
	  rm -rf _build/installed; python$$v -m venv _build/installed; echo "$$file $$pins"; \
	  _build/installed/bin/python -m pip install -q --disable-pip-version-check $$file $$pins; \
	  (cd _build/installed && bin/python -I ../../tools/install_check.py ../../README.md $(VERSION)); \
	done; done

# What needs PyTorch, in an environment of its own: TORCH="--index-url URL torch" takes a build for CPUs.
TORCH ?= torch
OF_NETWORKS := tests/test_networks.py tests/test_contract.py tests/test_consistency.py tests/test_running.py tests/test_saved.py \
  tests/test_studies_networks.py
networks:  ## tests of networks on bags, with PyTorch
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install -q --disable-pip-version-check $(TORCH)
	.venv-torch/bin/python -m pip install -q --disable-pip-version-check -e ".[test,torch]"
	MPLBACKEND=agg .venv-torch/bin/python -m pytest -q -n 2 --dist loadscope $(OF_NETWORKS) -k "networks or BagNetwork"

# The unit tests at the pre-releases of what the package stands on, in an environment of their own.
SOON := .venv-soon
soon:  ## unit tests at pre-releases
	$(PYTHON) -m venv $(SOON)
	$(SOON)/bin/python -m pip install -q --disable-pip-version-check -e ".[test]"
	$(SOON)/bin/python -m pip install -q --disable-pip-version-check --upgrade --pre numpy scipy scikit-learn pandas
	MPLBACKEND=agg $(SOON)/bin/python -m pytest -q -n 2 --dist loadscope $(WITHOUT_BOOK)

# The way out of Jupyter Book 1: the same sources by plain Sphinx of today, in an environment of its own, which takes
# from the book's what it has not, and the pages compared.
PLAIN := .venv-sphinx
SITE_PACKAGES := -c "import sysconfig; print(sysconfig.get_path('purelib'))"
sphinx: book  ## the book by plain Sphinx, compared with _build/html
	$(BIN)/python -m venv --clear $(PLAIN)
	$(PLAIN)/bin/python -m pip install -q --disable-pip-version-check "sphinx>=8.2" "sphinx-book-theme>=1.4" myst-nb \
	  sphinx-external-toc sphinx-multitoc-numbering sphinx-design sphinx-proof sphinx-exercise sphinx-copybutton \
	  sphinx-togglebutton sphinxcontrib-bibtex sphinxext-opengraph numpydoc
	$(abspath $(BIN))/python $(SITE_PACKAGES) > $$($(PLAIN)/bin/python $(SITE_PACKAGES))/book.pth
	rm -rf _build/sphinx && mkdir -p _build/sphinx/source
	git ls-files -z | xargs -0 cp --parents -t _build/sphinx/source
	cd _build/sphinx/source && $(abspath $(BIN))/jupyter-book config sphinx . && \
	  echo 'extensions = [e for e in extensions if not e.startswith(("jupyter_book", "sphinx_comments", "sphinx_jupyter", "sphinx_thebe"))]' >> conf.py && \
	  PYTHONPATH=$$PWD:$$PWD/book/_ext $(abspath $(PLAIN))/bin/sphinx-build -q -n -W --keep-going . ../html
	$(BIN)/python tools/compare_sites.py _build/html _build/sphinx/html

# Every chapter where nothing is installed but a kernel: the first cell that runs installs the package of the last commit,
# from a file that stands for the address in its copy, and each brings its studies anew.
lonely:  ## chapters with what their first cell installs (CH=NAME)
	rm -rf _build/lonely && $(PYTHON) -m venv _build/lonely
	_build/lonely/bin/python -m pip install -q --disable-pip-version-check ipykernel nbclient
	git archive --format=zip --prefix=llpbook/ -o _build/lonely/book.zip HEAD
	failed=; for path in $(if $(CH),$(CH:%=book/%.ipynb),$(NB)); do \
	  rm -rf _build/lonely/x && mkdir _build/lonely/x && echo $$path; \
	  sed 's|https://[^"]*/archive/[^"]*.zip|file://$(CURDIR)/_build/lonely/book.zip|' $$path > _build/lonely/x/chapter.ipynb; \
	  (cd _build/lonely/x && env -u PYTHONPATH ../bin/jupyter-execute --timeout=600 chapter.ipynb) || failed="$$failed $$path"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

# --- authors -----------------------------------------------------------------------------------------------
# All of it, side by side, and also after a failure.
check: $(STAMP)  ## style, types, derived files, rules
	@$(MAKE) -s -k -j4 --output-sync=target style types derived rules
style:
	$(BIN)/ruff check -q . && $(BIN)/ruff format -q --check .
types:
	$(BIN)/mypy
derived:
	$(BIN)/python tools/sync_cells.py --check
rules:
	$(BIN)/python tools/check_book.py

sync: $(STAMP)  ## derived files
	$(BIN)/python tools/sync_cells.py $(CH)

from-notebook: $(STAMP)  ## text from an edited notebook (CH=NAME)
	@test -n "$(CH)" || { echo "which chapter? make from-notebook CH=mean_map"; exit 1; }
	$(BIN)/python tools/sync_cells.py --from-notebook $(CH)

run: $(STAMP)  ## runs a chapter, stores its outputs (CH=NAME)
	@test -n "$(CH)" || { echo "which chapter? make run CH=mean_map"; exit 1; }
	$(BIN)/python tools/sync_cells.py $(CH)
	$(BIN)/ruff check -q --select F821 book/$(CH).ipynb
	$(BIN)/python tools/execute.py $(CH)

new: $(STAMP)  ## writes a room for a method (CH=my_method CLASS=MyMethod)
	@test -n "$(CH)" || { echo "which room? make new CH=my_method"; exit 1; }
	$(BIN)/python tools/new_room.py $(CH) $(CLASS)

bench: $(STAMP)  ## times beside supervised learning
	$(BIN)/python -m pytest -q tests/benchmarks --benchmark-columns=median,min,rounds

reproduce: $(STAMP)  ## rows of a study (TABLE=NAME ARGS=...); without TABLE lists them
	@test -n "$(TABLE)" || { PYTHONPATH=book $(BIN)/python -m studies --list; exit 1; }
	PYTHONPATH=book $(BIN)/python -m studies $(TABLE) $(ARGS)

# `uv` writes the lock; it is a tool of the author's, not of the book.
lock:  ## requirements.txt, by uv
	uv pip compile pyproject.toml --extra plot --extra book --extra test --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url -o requirements.txt -q

# No EPUB: its readers run no MathJax, so that each formula would stand there as TeX.
pdf: $(STAMP)  ## the book as PDF
	rm -rf _build/singlehtml
	$(BIN)/jupyter-book build -q . --builder singlehtml
	$(BIN)/python -m pip install -q --disable-pip-version-check pypdf
	$(BIN)/python tools/print_pdf.py $(CHROMIUM)

picture: $(STAMP)  ## the picture of README and of the first page
	$(BIN)/python tools/picture.py

# What a release publishes. `build` is a tool of the author's, not of the book.
dist:  ## what a release publishes
	$(PYTHON) -m venv _build/dist-env
	_build/dist-env/bin/python -m pip install -q --disable-pip-version-check build==1.6.1
	rm -rf dist && _build/dist-env/bin/python -m build

course-zip: book dist  ## site, notebooks, data and package for a course without a network
	$(BIN)/python tools/course.py

# A tag is the version of every file, on main, and dated in the changelog and the citation.
DATE = $(shell sed -n 's/^\#\# $(VERSION) (\([0-9-]*\))$$/\1/p' CHANGELOG.md)
release-check:  ## whether a tag can be released (TAG=v0.1.0)
	@test "$(TAG)" = "v$(VERSION)" || { echo "the tag is $(TAG), the version of pyproject.toml $(VERSION)"; exit 1; }
	@test -n "$(DATE)" || { echo "CHANGELOG.md: no heading '## $(VERSION) (YEAR-MONTH-DAY)'"; exit 1; }
	@for line in "version: $(VERSION)" "date-released: $(DATE)"; do \
	  grep -qx "$$line" CITATION.cff || { echo "CITATION.cff: no $$line"; exit 1; }; done
	@grep -qx '__version__ = "$(VERSION)"' llpbook/__init__.py || { echo "llpbook/__init__.py: another version"; exit 1; }
	@git merge-base --is-ancestor $(TAG) origin/main || { echo "$(TAG) is not on main: merge, then tag what was merged"; exit 1; }

# /dev/ is this checkout; /stable/ the newest release, built by its own Makefile, and before there is one this checkout, too.
DOOR := <!DOCTYPE html><title>llpbook</title><meta http-equiv="refresh" content="0; url=stable/"><a href="stable/">The book</a>
RELEASE = $(shell git tag --list 'v*' --sort=-version:refname | grep -E '^v[0-9]+\.[0-9]+\.[0-9]+$$' | head -1)
site: book  ## the released and the coming version, as published
	rm -rf _build/site _build/released && mkdir _build/site && cp -r _build/html _build/site/dev
	test -z "$(RELEASE)" || { git clone -q --branch $(RELEASE) . _build/released && LLPBOOK_TAG=$(RELEASE) $(MAKE) -C _build/released book $(if $(PYODIDE),PYODIDE=$(abspath $(PYODIDE))); }
	cp -r $(if $(RELEASE),_build/released/)_build/html _build/site/stable
	cd _build/site && cp stable/404.html stable/llms.txt . && echo '$(DOOR)' > index.html

serve: book  ## the built site at port 8000
	$(BIN)/python -m http.server -d _build/html --bind 127.0.0.1 8000
clean:
	rm -rf _build .pytest_cache .ruff_cache
distclean: clean
	rm -rf $(VENV) $(OLD) $(SOON) $(PLAIN) .venv-torch *.egg-info
