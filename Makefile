# SPDX-License-Identifier: MIT
#: make                        build every program; make chapter05 builds a chapter, make chapter05/dot a program
#: make setup                  install what is missing; also make setup run, make setup test and so on
#: make run                    run every program without a window, in a table; CHAPTER=05 runs one chapter
#: make test                   run the tests, in 4 to 10 minutes; PYTEST='-k julia' or PYTEST=tests/test_run.py: a part
#: make test-all               run those that a release needs as well
#: make bench                  time the ladders; TOPIC='dot add', SIZES='1M 4M', COMPARE=1 (docs/performance.md)
#: make check                  look for data races and missing waits; PROGRAM=chapter05/dot or CHAPTER=05 checks a part
#: make sanitize               run the programs with sanitizers, on a GPU with compute-sanitizer (docs/tools.md)
#: make exercise chapter05/dot write my/chapter05/dot.cu, the program without its kernel (docs/exercises.md)
#: make old FILE=x.cu          build a CUDA program of 2010 into bin/old/x (docs/running.md)
#: make docs site gallery      write the tables of the documents, the web pages, the pictures again
#: make serve                  send the web pages to a browser on this machine, as the playground needs; PORT=8000
#: make dist                   write build/cuda-by-example-VERSION.tar.gz: the last commit, which builds without git
#: make doctor                 list the compilers, devices and libraries that are here, and what is missing
#: make clean                  remove what was built
#:
#: BACKEND=auto|gpu|cpu        gpu compiles with nvcc, cpu with cucc/cucc; auto is gpu if nvcc and a GPU are here
#: SMS="80 90"                 architectures for nvcc; default: those of this machine's GPUs, or a portable set
#: CUDA_PATH=DIR               the toolkit; CC, CXX, NVCC are the compilers; CFLAGS, CXXFLAGS, NVCCFLAGS, CPPFLAGS,
#:                             LDFLAGS, LDLIBS are added to the flags
#: DEBUG=1                     no optimising, -DDEBUG, device code for cuda-gdb
#: SANITIZE=address,undefined  sanitizers of the compiler, on the CPU; SANITIZE=thread is possible too
#: BIN=DIR BUILD=DIR JOBS=4    folders; steps at a time; HAVE_PNG=0 builds without a library, here libpng
#: make -n chapter05/dot       print the command that builds a program (docs/building.md explains it)

BACKEND ?= auto
BUILD   ?= build
BIN     ?= bin
DEBUG   ?= 0
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
CC      := $(if $(filter default undefined,$(origin CC)),cc,$(CC))
CXX_SET := $(filter-out default undefined,$(origin CXX))
CXX     := $(if $(CXX_SET),$(CXX),g++)
AR      := $(if $(filter default undefined,$(origin AR)),ar,$(AR))
# The first python3 on PATH may lack the packages that the distribution's has.
PYTHON  ?= $(or $(shell for p in python3 /usr/bin/python3; do \
    $$p -c 'import pytest, numpy, PIL' 2>&- && echo $$p && break; done),python3)
# With make -n every command is printed, also that of a program which is up to date.
DRY := $(findstring n,$(filter-out -%,$(firstword $(MAKEFLAGS))))
MAKEFLAGS += --no-builtin-rules --no-builtin-variables
MAKEFLAGS := $(MAKEFLAGS) $(if $(filter -j%,$(MAKEFLAGS))$(filter-out 0,$(MAKELEVEL)),,-j$(JOBS) -Otarget)
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
comma := ,

# ---- the programs: the .cu files of the chapters. Their headers say what they need ----

CHAPTERS := $(patsubst %/,%,$(sort $(wildcard chapter[0-9][0-9]/)) $(wildcard appendix_a/))
NAMES := $(patsubst %.cu,%,$(foreach c,$(CHAPTERS),$(sort $(wildcard $(c)/*.cu))))
MINE := $(patsubst %.cu,%,$(wildcard my/*/*.cu my/.grade/*/*/*.cu))
# Words such as chapter12/fft_2d|cufft and chapter05/matmul_ladder|arch=90a
NEEDS := $(shell grep -sH '^ \* Needs:' $(NAMES:=.cu) /dev/null | \
    sed 's/\.cu: \* Needs:/|/; s/libs=//g; s/[ ,|][ ,|]*/|/g')
program = $(if $(filter my/%,$(1)),$(lastword $(subst /, ,$(dir $(1))))/$(notdir $(1)),$(1))
needs = $(subst |, ,$(patsubst $(program)|%,%,$(filter $(program)|%,$(NEEDS))))

GOALS := $(or $(MAKECMDGOALS),all)
ifneq ($(filter setup,$(GOALS)),)
# setup comes first; another make finds what it has installed.
.NOTPARALLEL:
.PHONY: $(GOALS)
setup:
	@scripts/setup.sh $(filter-out setup,$(GOALS))
$(filter-out setup,$(GOALS)): setup
	+@$(MAKE) --no-print-directory $@
else ifneq ($(filter exercise,$(GOALS)),)
# make exercise chapter05/dot writes the exercise, and builds nothing.
.PHONY: $(GOALS)
exercise:
	@BUILD='$(BUILD)' scripts/exercise.py write $(or $(PROGRAM),$(filter-out exercise,$(GOALS)))
$(filter-out exercise,$(GOALS)): exercise ; @:
else

# ---- settings: scripts/configure.sh chooses the back end and looks for libraries; CONFIG is what it writes ----

FOLDER := $(firstword $(filter $(CHAPTER) $(foreach c,chapter chapter0 appendix_,$(CHAPTER:%=$(c)%)),$(CHAPTERS)))
$(if $(FOLDER),,$(if $(CHAPTER),$(error CHAPTER=$(CHAPTER): must be one of $(CHAPTERS))))
$(if $(filter-out $(NAMES) $(MINE),$(PROGRAM)),$(error PROGRAM=$(PROGRAM): there is no such program))
# make -n has its own, so that what it prints with other settings builds nothing again.
CONFIG := $(BIN)/.config$(if $(DRY),-n).mk
ifneq ($(filter-out exercises format docs site serve dist clean help doctor check trace-%,$(GOALS)),)
WRONG := $(shell $(if $(DRY),cp -p '$(BIN)/.config.mk' '$(CONFIG)' 2>&-;) \
    BACKEND='$(BACKEND)' NVCC='$(NVCC)' CUDA_PATH='$(CUDA_PATH)' SMS='$(SMS)' SANITIZE='$(SANITIZE)' \
    DEBUG='$(DEBUG)' CC='$(CC)' CXX='$(CXX)' $(foreach v,MPICC $(filter HAVE_%,$(.VARIABLES)),$(v)='$($(v))') \
    scripts/configure.sh $(CONFIG) \
    '$(CFLAGS) $(CXXFLAGS) $(NVCCFLAGS) $(CPPFLAGS) $(LDFLAGS) $(LDLIBS)')
$(if $(WRONG),$(error $(WRONG)))
include $(CONFIG)
$(info back end: $(CHOSEN) ($(WHY)))
endif
DEBUGGING := $(filter-out 0,$(DEBUG))
SANITIZERS := $(if $(SANITIZE),-fsanitize=$(SANITIZE))
B := $(BUILD)/$(VARIANT)
D := $(BIN)/.d
LIBRARY := $(B)/libcommon.a
Q := $(if $(V),,@)
say = $(if $(DRY),,@printf '%-5s %s\n' $(1) '$(2)')

C_FLAGS := -std=gnu11 $(if $(DEBUGGING),-O0 -DDEBUG,-O2) -g -Wall -Wextra -pthread $(SANITIZERS) \
    $(if $(SANITIZE),-fno-sanitize-recover=all -fno-omit-frame-pointer) $(HAVE) $(CPPFLAGS) $(CFLAGS)
# The host compiler is named only if the user has chosen one. -g does not slow a program down.
FLAGS := $(if $(CXX_SET),-ccbin '$(CXX)') -std=c++17 $(if $(DEBUGGING),-O0 -G -DDEBUG,-O2 -lineinfo) -g $(GENCODE) \
    -Xptxas --suppress-stack-size-warning -Xcompiler=-Wall$(comma)-Wextra$(comma)-pthread $(SANITIZERS:%=-Xcompiler=%) \
    $(HAVE) $(CPPFLAGS) $(if $(CXXFLAGS),-Xcompiler='$(CXXFLAGS)') $(NVCCFLAGS)
# Exercises lack what the reader has not written yet. verdict.o, which is linked to them, says right or wrong.
EXERCISE_FLAGS := -Xcompiler=-Wno-unused-parameter$(comma)-Wno-unused$(comma)-Wno-sign-compare -diag-suppress 177
VERDICT := $(B)/common/exercise/verdict.o
# Thrust's headers bind references to null pointers, and copy no bytes from them.
FLAGS_thrust := $(if $(findstring undefined,$(SANITIZE)),$(addprefix -Xcompiler=-fno-sanitize=,null nonnull-attribute))
# wgmma and other features of sm_90a are in no later architecture: `Needs: arch=90a` compiles for 90a in place of 90.
CODE := compute_90$(comma)code=sm_90
for_90a = $(if $(filter arch=90a,$(call needs,$(2))),$(patsubst %=$(CODE),%=$(subst 90,90a,$(CODE)),$(1)),$(1))
own_flags = $(call for_90a,$(FLAGS),$(1)) $(foreach n,$(call needs,$(1)),$(FLAGS_$(n))) \
    $(if $(filter my/%,$(1)),$(EXERCISE_FLAGS))
# Programs that call GLUT themselves get common/old/glut.c in front of it.
glut = $(if $(filter glut,$(call needs,$(1))),$(B)/common/old/glut.o)
own_libs = $(foreach n,$(call needs,$(1)),$(LIBS_$(n))) \
    $(if $(filter my/%,$(1)),$(VERDICT) -Xlinker --wrap=main)

# ---- building ----

lacks = $(filter-out $(FOUND) gpus=% sm=% arch=%,$(call needs,$(1)))
PROGRAMS := $(foreach p,$(NAMES) $(MINE),$(if $(call lacks,$(p)),,$(p)))
SKIPPED := $(filter-out $(PROGRAMS),$(NAMES) $(MINE))
TESTS := $(basename $(wildcard tests/common/*.cu tests/common/*.c))
BUILT := $(PROGRAMS) $(TESTS)
$(shell mkdir -p $(addprefix $(B)/common/,lib old exercise) $(sort $(dir $(BUILT:%=$(BIN)/%) $(BUILT:%=$(D)/%))))

.PHONY: all tests common $(CHAPTERS) $(NAMES) $(MINE) $(TESTS)
off = $(foreach l,$(OFF),$(info off: $(OFF_$(l))))\
    $(foreach p,$(filter $(1),$(SKIPPED)),$(info off: $(p): needs $(call lacks,$(p))))
all: $(addprefix $(BIN)/,$(filter-out my/%,$(PROGRAMS)))
	@$(call off,$(foreach p,$(NAMES),$(if $(filter $(OFF),$(call lacks,$(p))),$(p)))):
$(foreach c,$(CHAPTERS),$(eval $(c): $(addprefix $(BIN)/,$(filter $(c)/%,$(PROGRAMS)))))
$(CHAPTERS):
	@$(call off,$@/%):
tests: $(TESTS:%=$(BIN)/%)
common: $(LIBRARY)
$(BUILT): %: $(BIN)/% ;
$(SKIPPED):
	@$(foreach l,$(call lacks,$@),$(info make: $@ needs $(l), $(or $(OFF_$(l)),which this back end lacks)))exit 1

# Two makes may run at once, and one may be killed. So what is built has the number of a process as its ending,
# and is renamed at the end. What a killed one has left is removed.
$(shell find '$(BIN)' '$(B)' -type f -regex '.*\.[0-9]+' 2>&- | while read -r f; do \
    kill -0 "$${f##*.}" 2>&- || [ -e "/proc/$${f##*.}" ] || rm -f "$$f"; done)
NEW = $@$(if $(DRY),,.$$$$)
RENAME = $(if $(DRY),,&& mv $@.$$$$ $@)

# The rule for every program, with both compilers
$(BIN)/%: %.cu $(LIBRARY) $(CONFIG) $(RUNTIME) $(if $(DRY),again)
	$(call say,$(if $(filter cpu,$(CHOSEN)),CUCC,NVCC),$@)
	$(Q)$(COMPILER) $(call own_flags,$*) -MMD -MP -MF $(D)/$*.d -MT $@ -o $(NEW) $< $(call glut,$*) $(LIBRARY) \
	    -Xlinker --as-needed $(LDFLAGS) $(call own_libs,$*) $(LIBS) $(LDLIBS) $(RENAME)
$(MINE:%=$(BIN)/%): $(VERDICT)
$(foreach p,$(PROGRAMS),$(if $(call glut,$(p)),$(eval $(BIN)/$(p): $(call glut,$(p)))))

$(BIN)/%: %.c $(LIBRARY) $(CONFIG)
	$(call say,CC,$@)
	$(Q)$(CC) $(C_FLAGS) -MMD -MP -MF $(D)/$*.d -MT $@ -o $(NEW) $< $(LIBRARY) \
	    -Wl,--as-needed $(LDFLAGS) $(LIBS) -lm $(LDLIBS) $(RENAME)

# for --version of the programs
$(B)/common/lib/options.o: C_FLAGS += -DSUITE_VERSION=$(file <VERSION)
$(B)/common/lib/options.o: VERSION
$(B)/%.o: %.c $(CONFIG)
	$(call say,CC,$<)
	$(Q)$(CC) $(C_FLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $(NEW) $< $(RENAME)

OBJECTS := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard common/lib/*.c)))
# An object whose source has gone must leave the library.
$(LIBRARY): $(OBJECTS) $(if $(filter-out $(notdir $(OBJECTS)),$(shell $(AR) t $(LIBRARY) 2>/dev/null)),again)
	$(call say,AR,$@)
	$(Q)$(AR) rcs $(NEW) $(OBJECTS) $(RENAME)
.PHONY: again
-include $(wildcard $(D)/*/*.d $(D)/*/*/*.d $(D)/*/*/*/*.d $(B)/common/*/*.d)

# ---- everything else: scripts get the settings of this build ----

SETTINGS = BACKEND=$(CHOSEN) BIN='$(BIN)' BUILD='$(BUILD)' SANITIZE='$(SANITIZE)' DEBUG='$(DEBUG)' NVCC='$(COMPILER)' \
    MAKEFLAGS= MAKELEVEL=
AGAIN = $(MAKE) --no-print-directory CHAPTER= PROGRAM= FILE=
PART = $(or $(PROGRAM),$(FOLDER),all)
LADDERS = $(patsubst %.cu,%,$(shell grep -ls '^ \* Bench:' $(wildcard $(addsuffix /*.cu,$(or $(FOLDER),$(CHAPTERS))))))
TOPICS = $(foreach t,$(TOPIC),$(or $(filter %/$(t) %/$(t)_ladder,$(LADDERS)),$(error TOPIC=$(t): no such ladder)))
.PHONY: old run check sanitize bench then-and-now test test-all gallery exercises progress grade doctor docs site serve dist \
    format clean help

old: $(LIBRARY) $(B)/common/old/settings.o $(B)/common/old/glut.o
	@FILE='$(FILE)' COMPILE="$(COMPILER) $(filter-out -Xcompiler=-Wall%,$(FLAGS))" B='$(B)' LIBS='$(LIBS)' $(SETTINGS) \
	    scripts/old.sh

run: $(or $(FOLDER),all)
	@$(SETTINGS) scripts/run.py $(FOLDER)

# The programs are built once more, with a function call at every access to memory.
check:
	+@$(AGAIN) BACKEND=cpu NVCCFLAGS='$(NVCCFLAGS) --check' BIN='$(BUILD)/check' $(PART)
	@BIN='$(BUILD)/check' BUILD='$(BUILD)' scripts/check.py $(filter-out all,$(PART))
$(addprefix trace-,$(NAMES) $(MINE)): trace-%:
	+@$(AGAIN) BACKEND=cpu NVCCFLAGS='$(NVCCFLAGS) --check' BIN='$(BUILD)/check' $*
	@mkdir -p '$(BUILD)/trace/$(*D)' && cd '$(BUILD)/trace/$(*D)' && env -u DISPLAY -u WAYLAND_DISPLAY $(PYTHON) \
	    '$(CURDIR)/cucc/trace.py' '$(abspath $(or $(FILE),$(BUILD)/trace/$*.svg))' '$(abspath $(BUILD)/check)/$*' $(ARGS)

# On the CPU the programs are built once more, with the sanitizers of the compiler.
sanitize: $(if $(filter gpu,$(CHOSEN)),$(PART))
	+$(if $^,,@$(AGAIN) BACKEND=cpu SANITIZE='$(or $(SANITIZE),address$(comma)undefined)' BIN='$(BUILD)/sanitize' $(PART))
	@BIN='$(if $^,$(BIN),$(BUILD)/sanitize)' BUILD='$(BUILD)' TOOLS=$(if $^,compute-sanitizer,compiler) \
	    scripts/check.py $(filter-out all,$(PART))

bench: $(if $(TOPIC)$(FOLDER),$(addprefix $(BIN)/,$(or $(TOPICS),$(LADDERS))),all)
	@$(SETTINGS) $(PYTHON) bench/measure.py $(or $(TOPICS),$(LADDERS))
then-and-now: all
	@$(SETTINGS) $(PYTHON) bench/then.py

# One process more than cores, because some tests wait for a window. On a GPU at most six: with 20 on an H200 the tests of OpenGL
# failed, though each of them ran alone. A part of the tests builds what it needs.
PYTEST_FLAGS = -q -rs -p no:cacheprovider -o testpaths='tests$(if $(filter cpu,$(CHOSEN)), cucc/tests)' \
    $(shell $(PYTHON) -c 'import xdist' 2>/dev/null && \
        echo -n$$(($(JOBS) < 6 || $(if $(filter cpu,$(CHOSEN)),1,0) ? $(JOBS) + 1 : 6)) --dist=loadgroup)
test: $(if $(PYTEST),,all tests)
	@$(SETTINGS) $(if $(PYTEST),,EVERYTHING_IS_BUILT=1) $(PYTHON) -m pytest $(PYTEST_FLAGS) \
	    -o norecursedirs=release $(PYTEST)
test-all: all tests
	@$(SETTINGS) EVERYTHING_IS_BUILT=1 $(PYTHON) -m pytest $(PYTEST_FLAGS) $(PYTEST)

gallery: all
	@$(SETTINGS) scripts/docs.py gallery
exercises progress:
	@$(SETTINGS) scripts/exercise.py $@
grade:
	@$(SETTINGS) CHECK='$(CHECK)' JOBS='$(JOBS)' TABLE='$(TABLE)' scripts/grade.py '$(DIR)'
doctor:
	@CC='$(CC)' CXX='$(CXX)' NVCC='$(NVCC)' CUDA_PATH='$(CUDA_PATH)' scripts/setup.sh --doctor
docs: | $(filter bench gallery,$(GOALS)) # which write what the documents show
	@scripts/docs.py
site: | $(filter docs gallery,$(GOALS))
	@BUILD='$(BUILD)' SITE='$(SITE)' RUN='$(RUN)' $(PYTHON) web/pages.py
serve: SITE_FOLDER = $(or $(SITE),$(BUILD)/site)
serve: | $(filter site,$(GOALS))
	@[ -e '$(SITE_FOLDER)/index.html' ] || { echo 'make serve: there are no pages: make site serve' >&2; exit 2; }
	@echo 'http://localhost:$(or $(PORT),8000) until Ctrl-C'
	@exec $(PYTHON) -m http.server --bind 127.0.0.1 --directory '$(SITE_FOLDER)' $(or $(PORT),8000)
dist: DIST = $(BUILD)/cuda-by-example-$(file <VERSION)
dist:
	@mkdir -p '$(BUILD)' && git -c tar.umask=022 archive --prefix='$(notdir $(DIST))/' -o '$(DIST).tar.gz' HEAD
	@echo '$(DIST).tar.gz$(if $(shell git status --porcelain),$(comma) without what is not committed)'
format: | $(filter docs,$(GOALS)) # which writes into the sources
	@scripts/format.sh $(if $(CHECK),--check)
clean:
	@rm -rf '$(BUILD)' $(addprefix '$(BIN)'/,$(CHAPTERS) my old tests .d .config.mk .config-n.mk)
	@rmdir '$(BIN)' 2>/dev/null || :
	@$(MAKE) --no-print-directory -C cucc clean
help:
	@sed -n 's/^#: \{0,1\}//p' Makefile

MEANT = $(filter %/$(basename $(notdir $@)),$(NAMES))
.DEFAULT:
	@[ -e '$@' ] || { echo 'make: there is no target $@:$(MEANT:%= did you mean %?) make help lists them' >&2; exit 2; }
endif
