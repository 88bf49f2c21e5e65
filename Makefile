# SPDX-License-Identifier: MIT
#: make                       build every program
#: make chapter04             build one chapter
#: make chapter04/julia_gpu   build one program
#: make setup                 install what is missing (Debian, Ubuntu, Fedora, Arch, openSUSE; with sudo when not root): what building
#:                            and running need; before test, bench, docs, gallery or format, as in make setup test, what these need too
#: make run                   build and run every program without a window, in a table; CHAPTER=04 runs one chapter
#: make bench                 time every ladder, from the book's kernel to the fastest: records in bench/results, plots, bench/report.html;
#:                            CHAPTER=05, TOPIC='dot add' choose; SIZES='1M 4M' instead of their own; COMPARE=1 only compares with the records
#: make test                  build and run the test suite, on every core where pytest-xdist is there;
#:                            PYTEST='-k julia' or PYTEST=tests/test_display.py runs a part of it
#: make tests                 build the unit tests of common/ and, on the CPU back end, of cpu/
#: make doctor                say what this machine has and what it lacks
#: make gallery               draw the pictures of docs/gallery again, on the CPU back end
#: make docs                  refresh what README.md and docs/performance.md show of the sources, the gallery and the records
#: make format                format the sources; CHECK=1 only says what is not formatted
#: make clean                 remove what was built
#: make help                  print this
#:
#: BACKEND=auto|gpu|cpu       auto takes gpu when there are nvcc and a GPU
#: SMS="80 90"                architectures for nvcc: those of the GPUs here, or else a portable set
#: CUDA_PATH=DIR              the toolkit, else the one of the nvcc on PATH, else /usr/local/cuda
#: HOSTCC=COMMAND             the C compiler of this machine, when CC and CXX compile for another; else cc
#: CC, CXX, NVCC=COMMAND      the compilers; CFLAGS, CXXFLAGS, NVCCFLAGS, CPPFLAGS, LDFLAGS, LDLIBS add to ours
#: DEBUG=1                    no optimising, -DDEBUG, device code for cuda-gdb
#: SANITIZE=address,undefined or SANITIZE=thread, on the CPU back end
#: V=1                        print the commands
#: BIN=DIR, BUILD=DIR         where programs and objects go
#: HAVE_PNG=0                 build as if a library were not there
#
# There are two stages. The first one, at the end of this file, serves the targets that people type: it
# chooses the back end, sees which libraries this machine has and calls make again for the second stage,
# the build proper. So `make setup run` builds with the libraries that `setup` has just installed.

BACKEND ?= auto
BUILD   ?= build
BIN     ?= bin
V       ?= 0
DEBUG   ?= 0
MAKEFLAGS += --no-builtin-rules --no-builtin-variables
.DEFAULT_GOAL := all
CC      := $(if $(filter default undefined,$(origin CC)),cc,$(CC))
CXX     := $(if $(filter default undefined,$(origin CXX)),g++,$(CXX))
HOSTCC  ?= cc
AR      := $(if $(filter default undefined,$(origin AR)),ar,$(AR))

comma := ,
space := $(subst ,, )
DEBUGGING := $(filter-out 0,$(DEBUG))
SANITIZERS := $(subst $(comma), ,$(SANITIZE))

CHAPTERS := $(patsubst %/,%,$(sort $(wildcard chapter[0-9][0-9]/)) $(wildcard appendix_a/))
SOURCES := $(foreach c,$(CHAPTERS),$(sort $(wildcard $(c)/*.cu)))
BENCHES := $(patsubst %.cu,%,$(wildcard cpu/bench/*.cu))

.DELETE_ON_ERROR:
.SUFFIXES:

ifeq ($(STAGE),build)
#======================================================================================================
# Second stage. B is the folder of this variant, BACKEND is gpu or cpu, NVCC and GENCODE are set for gpu.

include $(B)/config.mk

# say(what, of what): the line of a step. Make itself numbers the steps as it starts them, so the numbers rise with any
# number of jobs. STEPS is how many there will be; where it is not set, this make only counts them. The lines go to
# descriptor 9, the first stage's output, since with -O what a recipe prints waits until it has ended.
STEP :=
number = $(eval STEP += x)$(words $(STEP))
say = $(if $(STEPS),$(shell m=$(STEPS); printf "[%$${#m}d/%d] %-5s%s\n" $(number) $$m $(1) '$(2)' >&9),$(info a step))
Q := $(if $(filter-out 0,$(V)),,@)

# config.mk names the programs that need a library which this build lacks.
PROGRAMS := $(filter-out $(SKIPPED),$(SOURCES:.cu=))
# tests/cpu is about the CPU back end and needs it, and what begins with gl needs OpenGL
TESTS := $(filter-out $(if $(filter 1,$(HAVE_GL)),,tests/cpu/gl%),$(basename $(sort $(wildcard tests/common/*.cu tests/common/*.c $(if $(filter cpu,$(BACKEND)),tests/cpu/*.cu)))))

# Flags. `-g` always: it costs nothing at run time, and a debugger or sanitizer names the source line.
OPTIMISE := $(if $(DEBUGGING),-O0 -DDEBUG,-O2)
WARNINGS := -Wall -Wextra
SANITIZE_FLAGS := $(if $(SANITIZERS),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Clang warns of preprocessor flags where nothing is preprocessed, so they are apart from the rest.
COMMON_FLAGS := $(OPTIMISE) -g $(WARNINGS) -pthread $(SANITIZE_FLAGS)
PREPROCESS := $(HAVE_FLAGS) $(CPPFLAGS)

# Out-of-bounds accesses of __device__ and __constant__ variables are caught as those of any global.
SYMBOL_SECTIONS := $(if $(filter address,$(SANITIZERS)),-fsanitize-sections=cuda_device$(comma)cuda_device_ro$(comma)cuda_managed$(comma)cuda_constant$(comma)cuda_constant_ro)
# A kernel rounds as written, on every machine: no contraction into fused multiply-adds, no -march.
CPU_FLAGS := -ffp-contract=off $(SYMBOL_SECTIONS)

C_FLAGS := -std=gnu11 $(COMMON_FLAGS) $(PREPROCESS) $(CFLAGS)
# nvcc knows pragmas that g++ does not (unroll); the header comes first as it does with nvcc.
CU_FLAGS := -std=gnu++17 $(COMMON_FLAGS) $(CPU_FLAGS) -Wno-unknown-pragmas $(CXXFLAGS)
CU_PREPROCESS := $(PREPROCESS) -Icpu/include -D__CU2CPP__ -include cuda_runtime.h
CXX_FLAGS := -std=gnu++17 $(COMMON_FLAGS) $(CPU_FLAGS) $(PREPROCESS) -Icpu/include $(CXXFLAGS)
NVCC_HOST := $(if $(filter file default,$(origin CXX)),,-ccbin $(CXX))
NVCC_FLAGS := $(NVCC_HOST) -std=c++17 $(if $(DEBUGGING),-O0 -G -DDEBUG,-O2 -lineinfo) -g $(GENCODE) \
    -Xcompiler=-Wall$(comma)-Wextra$(comma)-pthread $(HAVE_FLAGS) $(CPPFLAGS) $(NVCCFLAGS)
# A program asks for the libraries that it uses and no others.
LD_FLAGS := -Xlinker --as-needed $(LDFLAGS) $(if $(filter gpu,$(BACKEND)),$(NVCC_HOST) $(GENCODE),-pthread -rdynamic $(SANITIZE_FLAGS))
LD_LIBS := $(HAVE_LIBS) $(if $(filter gpu,$(BACKEND)),,-lm) $(LDLIBS)

COMMON_OBJECTS := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard common/lib/*.c)))
CPU_OBJECTS := $(patsubst %,$(B)/%.o,$(basename $(sort $(wildcard cpu/src/*.cpp cpu/src/*.c cpu/src/*.S))))
COMMON_LIB := $(B)/libcommon.a
LIBS := $(COMMON_LIB) $(if $(filter cpu,$(BACKEND)),$(B)/libcudacpu.a)

# What is built depends on the flags it is built with: a stamp holds them and changes when they do.
$(shell mkdir -p $(B) $(BIN))
# stamp(file, text)
define stamp
ifneq ($$(strip $$(file <$(1))),$$(strip $(2)))
$$(file >$(1),$(2))
endif
endef
$(eval $(call stamp,$(B)/flags-c,$$(CC) $$(C_FLAGS)))
$(eval $(call stamp,$(B)/flags-host,$$(HOSTCC)))
$(eval $(call stamp,$(B)/flags-cxx,$$(CXX) $$(CXX_FLAGS)))
$(eval $(call stamp,$(B)/flags-cu,$$(if $$(filter gpu,$$(BACKEND)),$$(NVCC) $$(NVCC_VERSION) $$(NVCC_FLAGS),$$(CXX) $$(CU_FLAGS) $$(CU_PREPROCESS))))
$(eval $(call stamp,$(B)/objects,$$(COMMON_OBJECTS) $$(CPU_OBJECTS)))
# Every variant links into the same folder, so this one stamp lies there.
$(eval $(call stamp,$(BIN)/.variant,$$(B) $$(LD_FLAGS) $$(LD_LIBS)))

.PHONY: all tests ladders $(CHAPTERS) $(SOURCES:.cu=) $(TESTS) $(BENCHES)
all: $(PROGRAMS:%=$(BIN)/%)
tests: $(TESTS:%=$(BIN)/%) ; @:
ladders: $(addprefix $(BIN)/,$(filter $(LADDERS),$(PROGRAMS))) ; @:
define chapter
$(1): $(patsubst %,$(BIN)/%,$(filter $(1)/%,$(PROGRAMS))) ; @:
endef
$(foreach c,$(CHAPTERS),$(eval $(call chapter,$(c))))
$(PROGRAMS) $(TESTS) $(BENCHES): %: $(BIN)/% ; @:
$(sort $(SKIPPED)): ; @echo 'make: $@ needs $(LACKS_$@)' >&2; exit 1

# Linking. -rdynamic lets the CPU back end find the name of a kernel, and by it its shared memory.
ifeq ($(BACKEND),gpu)
LINK = $(NVCC)
else
LINK = $(CXX)
endif
$(addprefix $(BIN)/,$(PROGRAMS) $(TESTS) $(BENCHES)): $(BIN)/%: $(B)/%.o $(LIBS) $(BIN)/.variant
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(LD_FLAGS) -o $@ $< $(LIBS) $(LIBS_$*) $(LD_LIBS)

# Compiling. The three steps of the CPU back end keep what they make: x.ii is the preprocessed .cu,
# x.cpp.ii its translation to C++.
ifeq ($(BACKEND),gpu)
$(B)/%.o: %.cu $(B)/flags-cu
	$(call say,NVCC,$*)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(B)/$*.d -MT $@ -c -o $@ $<
else
$(B)/%.o: %.cu $(B)/flags-cu $(B)/cu2cpp
	$(call say,CXX,$*)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(CU_FLAGS) $(CU_PREPROCESS) -MMD -MP -MF $(B)/$*.d -MT $@ -x c++ -E -o $(B)/$*.ii $<
	$(Q)$(B)/cu2cpp $(B)/$*.ii -o $(B)/$*.cpp.ii
	$(Q)$(CXX) $(CU_FLAGS) -c -o $@ $(B)/$*.cpp.ii
endif

$(B)/%.o: %.c $(B)/flags-c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(C_FLAGS) -MMD -MP -c -o $@ $<

$(B)/%.o: %.cpp $(B)/flags-cxx
	$(call say,CXX,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) -MMD -MP -c -o $@ $<

$(B)/%.o: %.S $(B)/flags-c
	$(call say,AS,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(COMMON_FLAGS) $(PREPROCESS) -MMD -MP -c -o $@ $<

$(COMMON_LIB): $(COMMON_OBJECTS) $(B)/objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(COMMON_OBJECTS)

$(B)/libcudacpu.a: $(CPU_OBJECTS) $(B)/objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(CPU_OBJECTS)

# The translator runs while building, so it is built for this machine, without the sanitizers.
$(B)/cu2cpp: cpu/cu2cpp.c $(B)/flags-host
	$(call say,CC,$<)
	$(Q)$(HOSTCC) -std=gnu11 -O2 -g $(WARNINGS) -MMD -MP -MF $@.d -o $@ $<

.SECONDARY:
# A source that is gone, or has another ending now, leaves dependencies behind that name it, and nothing
# can make it. They are not read, and what they are about is made again where it is still wanted.
DEPENDENCIES := $(wildcard $(B)/*.d $(B)/*/*.d $(B)/*/*/*.d)
source_of = $(firstword $(filter %.cu %.c %.cpp %.S,$(file <$(1))))
STALE := $(foreach d,$(DEPENDENCIES),$(if $(wildcard $(call source_of,$(d))),,$(d)))
.PHONY: again
$(STALE:.d=.o) $(STALE:.d=): again
-include $(filter-out $(STALE),$(DEPENDENCIES))

else
#======================================================================================================
# First stage.

GOALS := $(or $(MAKECMDGOALS),all)

# CHAPTER=4, 04, chapter04 or a
ifneq ($(CHAPTER),)
FOLDER := $(firstword $(wildcard $(addsuffix /,chapter$(CHAPTER) chapter0$(CHAPTER) appendix_$(CHAPTER) $(CHAPTER))))
FOLDER := $(filter $(CHAPTERS),$(FOLDER:/=))
$(if $(FOLDER),,$(error CHAPTER=$(CHAPTER): must be one of $(patsubst chapter%,%,$(CHAPTERS))))
endif

# A goal that is none: a chapter or a program written in another way is named as it should be.
TARGETS := all tests setup run bench test gallery doctor docs format clean help
UNKNOWN := $(filter-out $(TARGETS) $(CHAPTERS) $(SOURCES:.cu=) tests/% cpu/bench/% $(BIN)/%,$(GOALS))
$(if $(filter install uninstall,$(UNKNOWN)),$(error there is no make $(firstword $(UNKNOWN)): the programs run where they are built, in $(BIN)))
# like(goal): the programs of that name, or else the chapter of that number
like = $(or $(filter %/$(notdir $(1:.cu=)),$(SOURCES:.cu=)),$(firstword $(filter $(1:chapter%=chapter0%) appendix_$(1) appendix_$(1:appendix%=%) $(1:chapter_%=chapter%) chapter$(1) chapter0$(1),$(CHAPTERS))))
$(foreach g,$(firstword $(UNKNOWN)),$(error there is no target $(g)$(if $(call like,$(g)),: did you mean $(subst $(space), or ,$(strip $(call like,$(g))))?,: make help lists them)))

# The ladders to measure: the programs with a Bench: in their header
ifneq ($(filter bench,$(GOALS)),)
LADDERS := $(shell scripts/programs.sh $(FOLDER) | awk -F '\t' '$$10 != "" { print $$1 }')
TOPICS := $(sort $(patsubst %_ladder,%,$(notdir $(LADDERS))))
$(if $(LADDERS)$(if $(FOLDER),,none),,$(error CHAPTER=$(CHAPTER): has no ladder))
$(foreach t,$(TOPIC),$(if $(filter $(t),$(TOPICS)),,$(error TOPIC=$(t): must be of $(TOPICS))))
$(if $(SANITIZE)$(filter-out 0,$(DEBUG)),$(error the bench measures what is optimised$(comma) without SANITIZE and DEBUG))
LADDERS := $(if $(TOPIC),$(filter $(foreach t,$(TOPIC),%/$(t) %/$(t)_ladder),$(LADDERS)),$(LADDERS))
endif

# What the second stage has to make for these goals
ASKED := $(filter all tests tests/% cpu/bench/% chapter% appendix_% $(BIN)/%,$(GOALS))
BUILD_GOALS := $(sort $(ASKED) $(if $(filter run,$(GOALS)),$(or $(FOLDER),all)) $(if $(filter test,$(GOALS)),all tests) \
    $(if $(filter gallery,$(GOALS)),all) $(if $(filter bench,$(GOALS)),ladders))

# The back end and, for gpu, the architectures. Only asked when something will be built.
ifneq ($(BUILD_GOALS)$(filter doctor,$(GOALS)),)

$(if $(filter auto gpu cpu,$(BACKEND)),,$(error BACKEND=$(BACKEND): must be auto, gpu or cpu))
$(if $(filter-out 0 1,$(DEBUG)),$(error DEBUG=$(DEBUG): must be 0 or 1))
$(if $(filter-out address undefined leak thread,$(SANITIZERS)),$(error SANITIZE=$(SANITIZE): must be of address, undefined, leak or thread, with commas))
$(if $(and $(filter thread,$(SANITIZERS)),$(filter address leak,$(SANITIZERS))),$(error SANITIZE=$(SANITIZE): thread goes with neither address nor leak))
$(if $(SANITIZE),$(if $(filter gpu,$(BACKEND)),$(error SANITIZE is for BACKEND=cpu$(comma) on a GPU use compute-sanitizer)))
$(if $(filter gpu,$(BACKEND)),$(if $(filter gallery,$(GOALS)),$(error the gallery is for BACKEND=cpu$(comma) which draws the same on every machine)))
$(if $(SMS),$(if $(filter cpu,$(BACKEND)),$(error SMS is for BACKEND=gpu)))
$(if $(and $(SMS),$(SANITIZE)),$(error SMS is for BACKEND=gpu and SANITIZE for BACKEND=cpu))

ifeq ($(origin NVCC),undefined)
NVCC := $(shell if [ -n "$(CUDA_PATH)" ]; then command -v "$(CUDA_PATH)/bin/nvcc"; \
    else command -v nvcc || command -v /usr/local/cuda/bin/nvcc; fi)
else
NVCC := $(shell command -v $(NVCC))
endif
NVCC_VERSION := $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
NO_NVCC := no nvcc $(if $(CUDA_PATH),in CUDA_PATH=$(CUDA_PATH),on PATH and none in /usr/local/cuda)

# A word a GPU, "90:NVIDIA_H200"; or just "GPU" where there is one that nvidia-smi does not describe
GPUS := $(shell smi=$$(command -v nvidia-smi || command -v /usr/lib/wsl/lib/nvidia-smi || echo false); \
    $$smi --query-gpu=compute_cap,name --format=csv,noheader 2>/dev/null | sed -n 's/^\([0-9]*\)\.\([0-9]*\), */\1\2:/; s/ /_/g; /^[0-9]*:/p' | grep . \
    || { $$smi -L 2>/dev/null | grep -q '^GPU ' || ls /dev/nvidia[0-9]* >/dev/null 2>&1; } && echo GPU)
CAPABILITIES := $(sort $(foreach g,$(filter-out GPU,$(GPUS)),$(firstword $(subst :, ,$(g)))))
GPU_NAME := $(if $(CAPABILITIES),$(subst _, ,$(lastword $(subst :, ,$(firstword $(GPUS))))),a GPU)

ifneq ($(BACKEND),auto)
CHOSEN := $(BACKEND)
WHY := asked for
else ifneq ($(SANITIZE),)
CHOSEN := cpu
WHY := SANITIZE is for the CPU back end
else ifneq ($(filter gallery,$(GOALS)),)
CHOSEN := cpu
WHY := the gallery has to come out the same on every machine
else ifeq ($(NVCC),)
CHOSEN := cpu
WHY := $(NO_NVCC)
else ifneq ($(SMS),)
CHOSEN := gpu
WHY := SMS asks for GPU code
else ifeq ($(GPUS),)
CHOSEN := cpu
WHY := nvcc $(NVCC_VERSION) is here, but no GPU
else
CHOSEN := gpu
WHY := nvcc $(NVCC_VERSION) and $(GPU_NAME)
endif
$(if $(or $(SMS),$(filter gpu,$(CHOSEN))),$(if $(NVCC),,$(error $(if $(SMS),SMS=$(SMS),BACKEND=gpu): $(NO_NVCC); set CUDA_PATH)))

ifneq ($(NVCC),)
KNOWN_SMS := $(patsubst sm_%,%,$(filter sm_%,$(shell $(NVCC) --list-gpu-code)))
# "90a" is "90" with features that no other architecture has
UNKNOWN_SMS := $(strip $(foreach s,$(SMS),$(if $(filter $(KNOWN_SMS),$(s) $(s:a=) $(s:f=)),,$(s))))
$(if $(UNKNOWN_SMS),$(error SMS=$(SMS): nvcc $(NVCC_VERSION) has no $(UNKNOWN_SMS)$(comma) only $(KNOWN_SMS)))
ifneq ($(SMS),)
ARCHITECTURES := $(SMS)
else ifneq ($(and $(CAPABILITIES),$(if $(filter-out $(KNOWN_SMS),$(CAPABILITIES)),,yes)),)
ARCHITECTURES := $(CAPABILITIES)
else
# One of each generation. The PTX of the newest lets later GPUs compile it for themselves.
ARCHITECTURES := $(filter $(KNOWN_SMS),75 80 90 100 120)
PTX := $(lastword $(ARCHITECTURES))
endif
GENCODE := $(foreach s,$(ARCHITECTURES),-gencode=arch=compute_$(s)$(comma)code=sm_$(s)) \
    $(if $(PTX),-gencode=arch=compute_$(PTX)$(comma)code=compute_$(PTX))
endif

VARIANT := $(CHOSEN)$(if $(DEBUGGING),-debug)$(if $(SANITIZERS),-$(subst $(space),-,$(sort $(SANITIZERS))))
FOR_GPU := $(if $(filter gpu,$(CHOSEN)),$(comma) sm $(ARCHITECTURES)$(if $(PTX), and PTX))
endif

# alone(folder, who): for the rest of a recipe's shell. Where another make does the same in this tree, waits for it (without
# flock, does not). What the shell starts gets 8>&-, or a process that it leaves behind would hold the lock.
alone = mkdir -p '$(1)' && exec 8>>'$(1)/.lock' && { ! command -v flock >/dev/null || flock -n 8 || \
    { echo 'another make $(2) here: waiting until it is done'; flock 8; }; }

# One make builds everything that was asked for: two at once in the same folder would collide. Without -j
# it uses every core. The first call of the second stage, with -n, only counts the steps.
CORES := $(or $(JOBS),$(shell nproc 2>/dev/null || echo 2))
SECOND_STAGE = $(MAKE) --no-print-directory STAGE=build BACKEND=$(CHOSEN) B='$(BUILD)/$(VARIANT)' NVCC='$(NVCC)' \
    NVCC_VERSION='$(NVCC_VERSION)' GENCODE='$(strip $(GENCODE))' LADDERS='$(LADDERS)' $(BUILD_GOALS)
.PHONY: build
build: | $(filter setup clean,$(GOALS))
	@echo 'back end: $(CHOSEN) ($(WHY)$(FOR_GPU))'
	+@$(call alone,$(BUILD),builds) && \
	    CC='$(CC)' CXX='$(CXX)' HOSTCC='$(HOSTCC)' NVCC='$(NVCC)' scripts/libs.sh probe $(CHOSEN) $(BUILD)/$(VARIANT)/config.mk 8>&- && \
	    steps=$$($(SECOND_STAGE) -n 2>/dev/null 8>&- | grep -c '^a step$$'); \
	    [ -n "$$steps" ] && $(SECOND_STAGE) $(if $(filter -j%,$(MAKEFLAGS)),,-j$(CORES) -Otarget) STEPS=$$steps 9>&1 8>&-
	@scripts/libs.sh report $(CHOSEN) $(BUILD)/$(VARIANT)/config.mk

.PHONY: $(TARGETS) $(ASKED)
$(if $(ASKED),$(ASKED),all): build ; @:

setup:
	@scripts/setup.sh $(filter-out setup,$(GOALS))

# What scripts and tests have to know of this build
export_build = BACKEND=$(CHOSEN) BIN='$(BIN)' BUILD='$(BUILD)' SANITIZE='$(SANITIZE)' DEBUG='$(DEBUG)' NVCC='$(NVCC)' MAKEFLAGS= MAKELEVEL=

run: build
	@$(call alone,$(BUILD)/run,runs the programs) && $(export_build) scripts/run.sh $(FOLDER) 8>&-

bench: build
	@$(export_build) $(or $(PYTHON),python3) bench/run.py $(LADDERS)

# Another python3 may stand in front of the distribution's, without its packages.
test: build | $(filter run,$(GOALS))
	@for python in $(PYTHON) python3 /usr/bin/python3; do \
	    $$python -c 'import pytest, numpy, PIL' 2>/dev/null && \
	        exec env $(export_build) $$python -m pytest -q -rs -p no:cacheprovider -o testpaths=tests \
	            $$($$python -c 'import xdist' 2>/dev/null && echo '-n$(CORES) --dist=loadgroup') $(PYTEST); \
	done; \
	echo 'make test: no python3 here has pytest, numpy and PIL: make setup test installs them' >&2; exit 1

gallery: build
	@$(export_build) scripts/gallery.sh

# What the next build knows of the libraries is looked up anew.
doctor: | $(filter setup,$(GOALS))
	@rm -f $(BUILD)/*/config.mk
	@CC='$(CC)' CXX='$(CXX)' NVCC='$(NVCC)' NVCC_VERSION='$(NVCC_VERSION)' CHOSEN='$(CHOSEN)' WHY='$(WHY)' \
	    ARCHITECTURES='$(ARCHITECTURES)$(if $(PTX), and PTX)' scripts/doctor.sh

docs:
	@scripts/docs.sh

# CHECK=1 only says what is not formatted.
format:
	@clang-format $(if $(CHECK),--dry-run -Werror,-i) $$(find . \( -path './.*' -o -path './$(BUILD)' -o -path './$(BIN)' \) -prune \
	    -o -type f -name '*.[ch]' -print -o -name '*.cu' -print -o -name '*.cpp' -print)

clean:
	@rm -rf '$(BUILD)' $(addprefix '$(BIN)'/,$(CHAPTERS) cpu tests .variant) bench/report.html
	@rmdir '$(BIN)' 2>/dev/null || :

help:
	@sed -n 's/^#: \{0,1\}//p' $(firstword $(MAKEFILE_LIST))
endif
