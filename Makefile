# SPDX-License-Identifier: MIT
#: make                       build every program
#: make chapter04             build one chapter
#: make chapter04/julia_gpu   build one program
#: make setup                 install the packages that building and running need and that are missing (Debian, Ubuntu, Fedora, Arch,
#:                            openSUSE; with sudo when not root); make setup test installs those of the tests too, and so for bench,
#:                            docs, site, gallery and format
#: make run                   build and run every program without a window, in a table; CHAPTER=04 runs one chapter
#: make bench                 time every ladder, from the book's kernel to the fastest: records in bench/results, plots, bench/report.html;
#:                            CHAPTER=05 or TOPIC='dot add' times a part; SIZES='1M 4M' sets the sizes; COMPARE=1 records nothing and
#:                            compares with the records
#: make then-and-now          measure again what the book and the courses measured, for docs/then-and-now.md; a whole make bench does
#:                            so too
#: make test                  build and run the test suite, on every core if pytest-xdist is installed;
#:                            PYTEST='-k julia' or PYTEST=tests/test_display.py runs a part of it
#: make tests                 build the unit tests of common/ and, on the CPU back end, of cpu/
#: make check                 look for data races, missing waits and accesses out of bounds in every program, on the CPU back end; CHAPTER=05 or
#:                            PROGRAM=chapter05/dot checks a part
#: make sanitize              run every program with the sanitizers: on a GPU compute-sanitizer's four tools, otherwise those of the
#:                            compiler; CHAPTER=05 or PROGRAM=chapter05/dot runs a part (docs/tools.md)
#: make faults                make each CUDA call, allocation and file operation of every program fail in turn, and check how the program
#:                            ends; PROGRAM=chapter05/dot takes one program, ARGS='--sample 9' are other options (docs/trust.md)
#: make mutate                put small mistakes into every program, whose check must notice them; PROGRAM=chapter05/dot and ARGS as above
#: make locks                 run the programs with locks and atomics many times under each schedule; ARGS='--runs 10' (docs/trust.md)
#: make fuzz                  give damaged sources to the translator of the CPU back end; ARGS='--minutes 5 --seed 7' are options
#: make signals               send signals at random moments to programs that write files; PROGRAM=…, ARGS='--signals 100'
#: make command-lines         run all programs with random and hostile command lines, built with the sanitizers of the compiler
#: make profile-chapter05/dot  profile a program with nsys and ncu, on a GPU; ARGS='--size 1M' are its options
#: make trace-chapter05/dot    draw a launch of a program on the CPU back end: blocks, barriers, lanes of a warp, memory accesses of a line.
#:                            FILE=x.svg,line=41 sets the file and the line, ARGS='--size 1M' are the program's options (docs/tools.md)
#: make old FILE=/path/x.cu    build a CUDA program of 2010 with what CUDA has removed since, into bin/old/x (docs/old-listings.md)
#: make doctor                list which tools, libraries and devices this machine has, and which are missing
#: make gallery               draw the pictures of docs/gallery again, on the CPU back end
#: make docs                  write the tables in README.md and docs/ again, from the sources, the gallery and the records
#: make site                  write the programs and the documents as web pages into build/site; open build/site/index.html in a browser;
#:                            SITE=DIR writes them into another folder
#: make exercise chapter05/dot write my/chapter05/dot.cu, which is the program without its kernel: the reader writes it, make
#:                            my/chapter05/dot builds it, and ./bin/my/chapter05/dot says right or wrong (docs/exercises.md)
#: make exercises             write all exercises that are not there yet, and list them
#: make progress              build and run the exercises that have changed, and list which are done, wrong or open
#: make grade DIR=/path/x     grade the solutions in a folder, with limits on time and memory (docs/teaching.md)
#: make install               install cucc, which compiles any CUDA program for the CPU: PREFIX=/usr/local, DESTDIR=
#: make uninstall             remove what make install has installed
#: make format                format the sources; CHECK=1 only lists the files that are not formatted
#: make compile_commands.json write how each file is compiled, for clangd and other editors
#: make clean                 remove what was built
#: make help                  print this
#:
#: BACKEND=auto|gpu|cpu       auto is gpu if this machine has nvcc and a GPU, otherwise cpu
#: SMS="80 90"                architectures for nvcc; default: those of this machine's GPUs, without a GPU a portable set
#: CUDA_PATH=DIR              the toolkit; default: that of the nvcc on PATH, otherwise /usr/local/cuda
#: HOSTCC=COMMAND             the C compiler for this machine, if CC and CXX compile for another one; default: cc
#: CC, CXX, NVCC=COMMAND      the compilers; CFLAGS, CXXFLAGS, NVCCFLAGS, CPPFLAGS, LDFLAGS, LDLIBS are added to the flags
#: DEBUG=1                    no optimising, -DDEBUG, device code for cuda-gdb
#: SANITIZE=address,undefined build with these sanitizers of the compiler, on the CPU back end; SANITIZE=thread is possible too
#: V=1                        print the commands
#: JOBS=4                     number of build steps and of tests that run at the same time; default: as many build steps as cores, and
#:                            one test more than cores
#: BIN=DIR, BUILD=DIR         the folders for programs and for objects
#: HAVE_PNG=0                 build without a library, here libpng

# The settings and the targets are in this file. scripts/configure.sh checks the settings and chooses the back end,
# scripts/libs.sh looks for the optional libraries, and scripts/build.mk builds. make calls itself for the build, so
# `make setup run` builds with the libraries that `setup` has just installed.

BACKEND ?= auto
BUILD   ?= build
BIN     ?= bin
V       ?= 0
DEBUG   ?= 0
HOSTCC  ?= cc
CC      := $(if $(filter default undefined,$(origin CC)),cc,$(CC))
CXX     := $(if $(filter default undefined,$(origin CXX)),g++,$(CXX))
AR      := $(if $(filter default undefined,$(origin AR)),ar,$(AR))

MAKEFLAGS += --no-builtin-rules --no-builtin-variables
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

comma := ,
space := $(subst ,, )
DEBUGGING := $(filter-out 0,$(DEBUG))
SANITIZERS := $(subst $(comma), ,$(SANITIZE))

# The programs are the .cu files of the chapters. There is no list of them.
CHAPTERS := $(patsubst %/,%,$(sort $(wildcard chapter[0-9][0-9]/)) $(wildcard appendix_a/))
SOURCES := $(foreach c,$(CHAPTERS),$(sort $(wildcard $(c)/*.cu)))
BENCHES := $(patsubst %.cu,%,$(wildcard cpu/bench/*.cu))

ifeq ($(STAGE),build)
include scripts/build.mk
else

TARGETS := all tests old setup run check sanitize faults mutate signals command-lines locks fuzz bench then-and-now test gallery doctor docs site exercise exercises progress grade install uninstall format compile_commands.json clean help
GOALS := $(or $(MAKECMDGOALS),all)

# configure.sh prints lines such as "CHOSEN := cpu". $(shell) replaces newlines by blanks, so sed marks the ends of lines.
define newline


endef
CONFIGURE = TARGETS='$(TARGETS)' FILE='$(FILE)' BIN='$(BIN)' BACKEND='$(BACKEND)' SMS='$(SMS)' CUDA_PATH='$(CUDA_PATH)' NVCC='$(NVCC)' \
    DEBUG='$(DEBUG)' SANITIZE='$(SANITIZE)' CHAPTER='$(CHAPTER)' PROGRAM='$(PROGRAM)' DIR='$(DIR)' TOPIC='$(TOPIC)' \
    SIZES='$(SIZES)' COMPARE='$(COMPARE)' scripts/configure.sh $(GOALS:%='%') | sed 's/$$/@@/'
$(eval $(subst @@,$(newline),$(shell $(CONFIGURE))))
$(if $(ERROR),$(error $(ERROR)))

# ---- building ----

# alone(folder, what it does): locks the folder until the shell of the recipe ends. If another make holds the lock, waits for it
# (without flock, does not wait). Commands are started with 8>&-, so that a process which outlives the shell does not keep the lock.
alone = mkdir -p '$(1)' && exec 8>>'$(1)/.lock' && { ! command -v flock >/dev/null || flock -n 8 || \
    { echo 'another make $(2) here: waiting until it is done'; flock 8; }; }

# One make builds all goals, because two makes at the same time would write the same files. Without -j it uses every core. The
# first call of the second stage, with -n, only counts the steps.
CORES := $(or $(JOBS),$(shell nproc 2>/dev/null || echo 2))
VARIANT := $(CHOSEN)$(if $(RACES),-check)$(if $(DEBUGGING),-debug)$(if $(SANITIZERS),-$(subst $(space),-,$(sort $(SANITIZERS))))
CONFIG := $(BUILD)/$(VARIANT)/config.mk
SECOND_STAGE = $(MAKE) --no-print-directory STAGE=build BACKEND=$(CHOSEN) B='$(BUILD)/$(VARIANT)' NVCC='$(NVCC)' \
    NVCC_VERSION='$(NVCC_VERSION)' GENCODE='$(GENCODE)' LADDERS='$(LADDERS)' FIGURES='$(FIGURES)' $(BUILD_GOALS)

.PHONY: build
build: | $(filter setup clean,$(GOALS))
	@echo 'back end: $(CHOSEN) ($(WHY)$(if $(filter gpu,$(CHOSEN)),$(comma) sm $(ARCHITECTURES)))'
	+@$(call alone,$(BUILD),builds) && \
	    CC='$(CC)' CXX='$(CXX)' HOSTCC='$(HOSTCC)' NVCC='$(NVCC)' scripts/libs.sh probe $(CHOSEN) $(CONFIG) 8>&- && \
	    steps=$$($(SECOND_STAGE) -n 2>/dev/null 8>&- | grep -c '^a step$$'); \
	    [ -n "$$steps" ] && $(SECOND_STAGE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(CORES) -Otarget) STEPS=$$steps 9>&1 8>&-
	@scripts/libs.sh report $(CHOSEN) $(CONFIG) $(BUILD_GOALS)

# make exercise chapterNN/name writes the exercise of the program, and does not build the program.
WRITES := $(if $(filter exercise,$(GOALS)),$(filter chapter% appendix_%,$(GOALS)))
ASKED := $(filter-out $(WRITES),$(filter all tests old tests/% cpu/bench/% compile_commands.json chapter% appendix_% my/% $(BIN)/%,$(GOALS)))
.PHONY: $(TARGETS) $(ASKED) $(WRITES)
$(if $(ASKED),$(ASKED),all): build ; @:

# ---- everything else ----

setup:
	@scripts/setup.sh $(filter-out setup,$(GOALS))

# The settings of this build, for scripts and tests
export_build = BACKEND=$(CHOSEN) BIN='$(BIN)' BUILD='$(BUILD)' SANITIZE='$(SANITIZE)' DEBUG='$(DEBUG)' NVCC='$(NVCC)' MAKEFLAGS= MAKELEVEL=

run: build
	@$(call alone,$(BUILD)/run,runs the programs) && $(export_build) scripts/run.sh $(FOLDER) 8>&-

# The programs are built once more, with a function call at every access to memory.
check:
	+@$(MAKE) --no-print-directory BACKEND=cpu RACES=1 BIN='$(BUILD)/check' CHAPTER= PROGRAM= $(or $(PROGRAM),$(FOLDER),all)
	@BIN='$(BUILD)/check' BUILD='$(BUILD)' scripts/check.sh $(or $(PROGRAM),$(FOLDER))

# On the CPU back end the programs are built once more, with the sanitizers of the compiler.
TOOL_SANITIZERS = $(or $(SANITIZE),address$(comma)undefined)
sanitize:
	+@$(MAKE) --no-print-directory BACKEND=$(CHOSEN) $(if $(filter cpu,$(CHOSEN)),SANITIZE='$(TOOL_SANITIZERS)' BIN='$(BUILD)/sanitize') \
	    CHAPTER= PROGRAM= $(or $(PROGRAM),$(FOLDER),all)
	@BIN='$(if $(filter cpu,$(CHOSEN)),$(BUILD)/sanitize,$(BIN))' BUILD='$(BUILD)' \
	    TOOLS=$(if $(filter cpu,$(CHOSEN)),compiler,compute-sanitizer) scripts/check.sh $(or $(PROGRAM),$(FOLDER))

.PHONY: $(filter profile-%,$(GOALS))
$(filter profile-%,$(GOALS)): profile-%: build
	@BIN='$(BIN)' BUILD='$(BUILD)' scripts/profile.sh $* $(ARGS)

bench: build
	@$(export_build) $(or $(PYTHON),python3) bench/run.py $(LADDERS)
	$(if $(FIGURES),@$(export_build) $(or $(PYTHON),python3) bench/then.py)

# The program is built as for make check.
.PHONY: $(filter trace-%,$(GOALS))
$(filter trace-%,$(GOALS)): trace-%:
	+@$(MAKE) --no-print-directory BACKEND=cpu RACES=1 BIN='$(BUILD)/check' CHAPTER= PROGRAM= FILE= $*
	@BIN='$(BUILD)/check' BUILD='$(BUILD)' FILE='$(FILE)' scripts/trace.sh $* $(ARGS)

then-and-now: build $(filter bench,$(GOALS))
	$(if $(filter bench,$(GOALS)),@:,@$(export_build) $(or $(PYTHON),python3) bench/then.py)

# One process more than cores, because some tests wait for a window or a browser.
WORKERS = $(or $(JOBS),$(shell expr $(CORES) + 1))
# python(arguments): runs them with a python3 that has the packages of the tests. The first python3 on PATH may be another one
# than the distribution's, without these.
python = for python in $(PYTHON) python3 /usr/bin/python3; do \
        $$python -c 'import pytest, numpy, PIL' 2>/dev/null && exec env $(export_build) $$python $(1); \
    done; \
    echo 'make $@: no python3 here has pytest, numpy and PIL: make setup test installs them' >&2; exit 1
test: build | $(filter run,$(GOALS))
	@$(call python,-m pytest -q -rs -p no:cacheprovider -o testpaths=tests \
	    $$($$python -c 'import xdist' 2>/dev/null && echo '-n$(WORKERS) --dist=loadgroup') $(PYTEST))

# The attacks of docs/trust.md
faults: build
	@$(call python,tests/attacks/faults.py $(ARGS) $(PROGRAM))
signals: build
	@$(call python,tests/attacks/signals.py $(ARGS) $(PROGRAM))
# The programs of make sanitize
command-lines: private override BIN := $(BUILD)/sanitize
command-lines:
	+@$(MAKE) --no-print-directory BACKEND=cpu SANITIZE='$(TOOL_SANITIZERS)' BIN='$(BIN)' CHAPTER= PROGRAM= $(or $(PROGRAM),all)
	@$(call python,tests/attacks/command_lines.py $(ARGS) $(PROGRAM))
# Builds what it needs, on the CPU back end.
mutate:
	@$(call python,tests/attacks/mutate.py $(ARGS) $(PROGRAM))
locks: build
	@$(call python,tests/attacks/locks.py $(ARGS))

fuzz:
	@CC='$(CC)' CXX='$(CXX)'; export CC CXX; $(call python,tests/attacks/translator_fuzz.py $(ARGS))

exercise:
	@BUILD='$(BUILD)' scripts/exercise.sh write $(or $(PROGRAM),$(WRITES))
$(WRITES): exercise ; @:

exercises:
	@$(export_build) scripts/exercise.sh all

progress:
	@$(call alone,$(BUILD)/progress,runs the exercises) && $(export_build) scripts/exercise.sh progress 8>&-

grade:
	@$(call alone,$(BUILD)/grade,grades) && $(export_build) CHECK='$(CHECK)' scripts/grade.sh '$(DIR)' 8>&-

gallery: build
	@$(export_build) scripts/gallery.sh

# Also removes the list of libraries that earlier builds found, so that the next build looks for all of them.
doctor: | $(filter setup,$(GOALS))
	@rm -f $(BUILD)/*/config.mk
	@CC='$(CC)' CXX='$(CXX)' NVCC='$(NVCC)' NVCC_VERSION='$(NVCC_VERSION)' CHOSEN='$(CHOSEN)' WHY='$(WHY)' \
	    ARCHITECTURES='$(ARCHITECTURES)' scripts/doctor.sh

docs:
	@scripts/docs.sh

site:
	@BUILD='$(BUILD)' $(or $(PYTHON),python3) scripts/site.py $(if $(SITE),'$(SITE)')

install uninstall:
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' scripts/install.sh $@

format:
	@BIN='$(BIN)' BUILD='$(BUILD)' scripts/format.sh $(if $(CHECK),--check)

clean:
	@rm -rf '$(BUILD)' $(addprefix '$(BIN)'/,$(CHAPTERS) cpu old tests .variant) bench/report.html compile_commands.json
	@rmdir '$(BIN)' 2>/dev/null || :

help:
	@sed -n 's/^#: \{0,1\}//p' $(firstword $(MAKEFILE_LIST))
endif
