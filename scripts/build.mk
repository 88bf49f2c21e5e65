# SPDX-License-Identifier: MIT
# The rules of the build. The Makefile calls make again with STAGE=build, and then includes this file after its settings.
# B is the folder of this variant, such as build/cpu; BACKEND is gpu or cpu; NVCC, NVCC_VERSION and GENCODE are set for gpu.

include $(B)/config.mk

# say(tool, file): prints the line of a step, "[12/140] CXX   chapterNN/name". Steps are numbered in the order in which make
# starts them. STEPS is their number; if it is not set, this make only counts them. The lines go to descriptor 9, the output of
# the first make, because with -O make prints the output of a recipe only when the recipe has ended.
STEP :=
number = $(eval STEP += x)$(words $(STEP))
say = $(if $(STEPS),$(shell m=$(STEPS); printf "[%$${#m}d/%d] %-5s%s\n" $(number) $$m $(1) '$(2)' >&9),$(info a step))
Q := $(if $(filter-out 0,$(V)),,@)

# config.mk names the programs that need a library which this build lacks.
PROGRAMS := $(filter-out $(SKIPPED),$(SOURCES:.cu=))
# Those in tests/constructs are lists of constructs that nvcc accepts. The tests in tests/cpu need the CPU back end;
# those whose name begins with gl need OpenGL, and those of a library's
# stand-in the library behind it.
TESTS := $(filter-out $(if $(filter 1,$(HAVE_GL)),,tests/cpu/gl%) $(MISSING_TESTS),$(basename $(sort $(wildcard tests/common/*.cu tests/common/*.c tests/constructs/*.cu $(if $(filter cpu,$(BACKEND)),tests/cpu/*.cu)))))

# Flags. `-g` is always set: it does not slow a program down, and debuggers and sanitizers need it to name source lines.
OPTIMISE := $(if $(DEBUGGING),-O0 -DDEBUG,-O2)
WARNINGS := -Wall -Wextra
SANITIZE_FLAGS := $(if $(SANITIZERS),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# The macros by which g++ tells sources of its sanitizers; older clang++ does not define them.
SANITIZE_MACROS := $(if $(filter address,$(SANITIZERS)),-D__SANITIZE_ADDRESS__=1) $(if $(filter thread,$(SANITIZERS)),-D__SANITIZE_THREAD__=1)
# Thrust's headers bind references to null pointers, and copy no bytes from them.
$(if $(filter undefined,$(SANITIZERS)),$(foreach s,$(shell grep -l '^ \* Needs: .*thrust' $(SOURCES)),$(eval $(B)/$(s:.cu=.o): CU_FLAGS += -fno-sanitize=null,nonnull-attribute)))
# The preprocessor flags are separate, because clang warns when they are given without preprocessing.
COMMON_FLAGS := $(OPTIMISE) -g $(WARNINGS) -pthread $(SANITIZE_FLAGS)
PREPROCESS := $(HAVE_FLAGS) $(SANITIZE_MACROS) $(CPPFLAGS)

# With these sections AddressSanitizer of g++ also detects out-of-bounds accesses of __device__ and __constant__ variables.
# clang++ does not have the option, and its AddressSanitizer does not check such variables.
SYMBOL_SECTIONS := $(if $(filter address,$(SANITIZERS)),-fsanitize-sections=cuda_device$(comma)cuda_device_ro$(comma)cuda_managed$(comma)cuda_constant$(comma)cuda_constant_ro)
SYMBOL_SECTIONS := $(if $(SYMBOL_SECTIONS),$(shell $(CXX) $(SYMBOL_SECTIONS) -x c++ -E /dev/null >/dev/null 2>&1 && echo '$(SYMBOL_SECTIONS)'))
# Kernels round in the same way on every machine: the compiler may not use fused multiply-adds, and there is no -march.
CPU_FLAGS := -ffp-contract=off $(SYMBOL_SECTIONS)

# CUDA permits arguments that are not initialised, such as the value of a lane that a shuffle does not read. clang++ concludes
# from one that it is not reached, unless an option says otherwise. Its name depends on the version; g++ does not know it.
CPU_FLAGS += $(shell for one in -disable-noundef-analysis -no-enable-noundef-analysis; do \
    if $(CXX) -Xclang $$one -fsyntax-only -x c++ /dev/null >/dev/null 2>&1; then echo -Xclang $$one; break; fi; done)

C_FLAGS := -std=gnu11 $(COMMON_FLAGS) $(PREPROCESS) $(CFLAGS)
# g++ does not know all pragmas of nvcc (unroll). cuda_runtime.h is included first, as nvcc does.
CU_FLAGS := -std=gnu++17 $(COMMON_FLAGS) $(CPU_FLAGS) -Wno-unknown-pragmas $(CXXFLAGS)
CU_PREPROCESS := $(PREPROCESS) -Icpu/include -D__CU2CPP__ -include cuda_runtime.h
# make check: the compiler announces every access to memory, as for ThreadSanitizer, but to cpu/src/race.cpp. That reads
# threadIdx, so the units share it. In DWARF 5 of clang++ the addr2line of binutils 2.40 does not see inlined calls.
ifneq ($(RACES),)
CU_FLAGS += -gdwarf-4 -fsanitize=thread -fsanitize-coverage=trace-pc $(shell $(CXX) --param=tsan-distinguish-volatile=1 -Werror -x c++ -E /dev/null >/dev/null 2>&1 \
    && echo --param=tsan-distinguish-volatile=1 || echo -mllvm -tsan-distinguish-volatile=1 -mllvm -tsan-instrument-read-before-write=1)
CU_PREPROCESS += -DCUDA_CPU_CHECK -DCUDA_CPU_SEVERAL
endif
# Every program contains the runtime library, so its debugging information is that of lines and functions only: the programs
# take a third of the space.
CXX_FLAGS := -std=gnu++17 $(COMMON_FLAGS) $(if $(DEBUGGING),,-g1) $(CPU_FLAGS) $(PREPROCESS) -Icpu/include $(CXXFLAGS)
# ptxas warns about kernels that call functions recursively, because it cannot compute the size of their stack.
NVCC_HOST := $(if $(filter file default,$(origin CXX)),,-ccbin $(CXX))
NVCC_FLAGS := $(NVCC_HOST) -std=c++17 $(if $(DEBUGGING),-O0 -G -DDEBUG,-O2 -lineinfo) -g $(GENCODE) -Xptxas --suppress-stack-size-warning \
    -Xcompiler=-Wall$(comma)-Wextra$(comma)-pthread $(HAVE_FLAGS) $(CPPFLAGS) $(NVCCFLAGS)
# A program with `Needs: arch=90a` has instructions that only this architecture has and no later one, such as wgmma. nvcc puts them
# into code for sm_90a, not for sm_90. So the program is compiled for 90a in place of 90, if 90 is among the architectures.
CODE_90 := -gencode=arch=compute_90$(comma)code=sm_90
$(foreach s,$(shell grep -l '^ \* Needs: .*arch=90a' $(SOURCES)),$(eval $(B)/$(s:.cu=.o): NVCC_FLAGS := \
    $(patsubst $(CODE_90),$(subst 90,90a,$(CODE_90)),$(NVCC_FLAGS))))
# --as-needed: a program is linked only with the libraries that it uses.
LD_FLAGS := -Xlinker --as-needed $(LDFLAGS) $(if $(filter gpu,$(BACKEND)),$(NVCC_HOST) $(GENCODE),-pthread -rdynamic $(SANITIZE_FLAGS))
LD_LIBS := $(HAVE_LIBS) $(if $(filter gpu,$(BACKEND)),,-lm) $(LDLIBS)

# Only programs of MPI are compiled with its flags, so that the others need not be compiled again when it is installed.
$(foreach p,$(MPI_PROGRAMS),$(eval FLAGS_$(p) := $(MPI_FLAGS)) $(eval $(B)/$(p).o: $(B)/flags-mpi))

# Odd constructs cause warnings. cxx20.cu has features of C++20.
$(B)/tests/constructs/%.o: CU_FLAGS += -w -O0
$(B)/tests/constructs/%.o: NVCC_FLAGS += -w --extended-lambda
$(B)/tests/constructs/cxx20.o: CU_FLAGS += -std=gnu++20
$(B)/tests/constructs/cxx20.o: NVCC_FLAGS := $(subst -std=c++17,-std=c++20,$(NVCC_FLAGS)) -w --extended-lambda

COMMON_OBJECTS := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard common/lib/*.c)))
# The race detector defines functions of ThreadSanitizer, so it is no part of a build with sanitizers.
CPU_OBJECTS := $(patsubst %,$(B)/%.o,$(filter-out $(if $(SANITIZERS),cpu/src/race),$(basename $(sort \
    $(wildcard cpu/src/*.cpp cpu/src/*.c cpu/src/*.S)))))
COMMON_LIB := $(B)/libcommon.a
LIBS := $(COMMON_LIB) $(if $(filter cpu,$(BACKEND)),$(B)/libcudacpu.a)

# Objects depend on the flags that they are compiled with: a file holds the flags, and is written again when they change.
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
$(eval $(call stamp,$(B)/flags-mpi,$$(MPI_FLAGS) $$(MPI_LIBS)))
$(eval $(call stamp,$(B)/objects,$$(COMMON_OBJECTS) $$(CPU_OBJECTS)))
# All variants link into the same folder, so this file is there.
$(eval $(call stamp,$(BIN)/.variant,$$(B) $$(LD_FLAGS) $$(LD_LIBS)))

# Exercises: the reader's own (make exercise), and those that make grade has put together. Each is built as the program that it was
# made from, and linked with verdict.o, whose __wrap_main says right or wrong. Only warnings about what the reader has not written
# yet, and about comparing an int with threadIdx.x, are off.
EXERCISES := $(basename $(wildcard my/*/*.cu my/.grade/*/*/*.cu))
program_of = $(lastword $(subst /, ,$(dir $(1))))/$(notdir $(1))
VERDICT := $(B)/common/exercise/verdict.o
LACKING := $(foreach e,$(EXERCISES),$(if $(filter $(call program_of,$(e)),$(SKIPPED)),$(e)))
$(foreach e,$(EXERCISES),$(eval LIBS_$(e) := $(VERDICT) -Xlinker --wrap=main $(LIBS_$(call program_of,$(e))))$(eval \
    FLAGS_$(e) := $(FLAGS_$(call program_of,$(e))))$(eval $(BIN)/$(e): $(VERDICT)))
UNUSED := $(if $(filter gpu,$(BACKEND)),-Xcompiler=-Wno-unused-parameter$(comma)-Wno-unused$(comma)-Wno-sign-compare -diag-suppress 177,-Wno-unused-parameter -Wno-unused -Wno-sign-compare)

.PHONY: all tests measured $(CHAPTERS) $(SOURCES:.cu=) $(TESTS) $(BENCHES) $(EXERCISES)
all: $(PROGRAMS:%=$(BIN)/%)
tests: $(TESTS:%=$(BIN)/%) ; @:
measured: $(addprefix $(BIN)/,$(filter $(LADDERS) $(FIGURES),$(PROGRAMS))) ; @:
define chapter
$(1): $(patsubst %,$(BIN)/%,$(filter $(1)/%,$(PROGRAMS))) ; @:
endef
$(foreach c,$(CHAPTERS),$(eval $(call chapter,$(c))))
$(PROGRAMS) $(TESTS) $(BENCHES) $(filter-out $(LACKING),$(EXERCISES)): %: $(BIN)/% ; @:
$(LACKING): ; @echo 'make: $@ needs $(LACKS_$(call program_of,$@))' >&2; exit 1
$(sort $(SKIPPED)): ; @echo 'make: $@ needs $(LACKS_$@)' >&2; exit 1

# An old listing (make old): its own source, FILE, may be anywhere; scripts/old.sh compiles it. Warnings that nobody asked for in
# 2010 are off, and g++ takes what compilers took then.
LEGACY_OBJECTS := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard common/legacy/*.c)))
.PHONY: old
# glut.o is in a library of its own, so that only programs that call GLUT get it.
old: export LIBS := $(B)/common/legacy/settings.o $(B)/liblegacy.a $(LIBS) $(LD_LIBS)
old: export B := $(B)
old: export BIN := $(BIN)
old: export BACKEND := $(BACKEND)
ifeq ($(BACKEND),gpu)
old: export COMPILE := $(NVCC) $(filter-out -Xcompiler=-Wall%,$(NVCC_FLAGS)) -Xcompiler=-pthread$(comma)-fpermissive$(comma)-Wno-deprecated-declarations$(comma)-Wno-format
old: export LINK := $(NVCC) $(LD_FLAGS) -Xlinker --export-dynamic
else
old: export PREPROCESS := $(CXX) $(filter-out $(WARNINGS),$(CU_FLAGS)) $(CU_PREPROCESS)
old: export COMPILE := $(CXX) $(filter-out $(WARNINGS),$(CU_FLAGS)) -fpermissive -Wno-format
old: export LINK := $(CXX) $(LD_FLAGS)
endif
old: $(LEGACY_OBJECTS) $(B)/liblegacy.a $(LIBS) $(if $(filter cpu,$(BACKEND)),$(B)/cu2cpp)
	$(call say,OLD,$(FILE))
	$(Q)scripts/old.sh

# How each source is compiled, for editors
.PHONY: compile_commands.json
compile_commands.json:
	$(call say,JSON,$@)
	$(Q)scripts/compile_commands.sh '$(CC) $(C_FLAGS)' '$(CXX) $(CXX_FLAGS)' '$(PREPROCESS) $(MPI_FLAGS)' $(SOURCES) $(BENCHES:%=%.cu) \
	    $(sort $(wildcard common/lib/*.c common/legacy/*.c tests/common/*.c tests/common/*.cu cpu/*.c cpu/src/*.c cpu/src/*.cpp tests/cpu/*.cu)) >$@

# Linking. With -rdynamic the CPU back end can find the name of a kernel, and with the name its shared memory.
ifeq ($(BACKEND),gpu)
LINK = $(NVCC)
else
LINK = $(CXX)
endif
$(addprefix $(BIN)/,$(PROGRAMS) $(TESTS) $(BENCHES) $(EXERCISES)): $(BIN)/%: $(B)/%.o $(LIBS) $(BIN)/.variant
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) $(LD_FLAGS) -o $@ $< $(LIBS) $(LIBS_$*) $(LD_LIBS)

# Compiling. The three steps of the CPU back end keep what they make: x.ii is the preprocessed .cu,
# x.cpp.ii its translation to C++.
ifeq ($(BACKEND),gpu)
$(B)/%.o: %.cu $(B)/flags-cu
	$(call say,NVCC,$*)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(FLAGS_$*) $(if $(filter my/%,$*),$(UNUSED)) -MMD -MP -MF $(B)/$*.d -MT $@ -c -o $@ $<
else
$(B)/%.o: %.cu $(B)/flags-cu $(B)/cu2cpp
	$(call say,CXX,$*)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(CU_FLAGS) $(CU_PREPROCESS) $(FLAGS_$*) -MMD -MP -MF $(B)/$*.d -MT $@ -x c++ -E -o $(B)/$*.ii $<
	$(Q)$(B)/cu2cpp $(B)/$*.ii -o $(B)/$*.cpp.ii
	$(Q)$(CXX) $(CU_FLAGS) $(if $(filter my/%,$*),$(UNUSED)) -c -o $@ $(B)/$*.cpp.ii
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

$(B)/liblegacy.a: $(B)/common/legacy/glut.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $<

# The translator runs while building, so it is built for this machine, without the sanitizers.
$(B)/cu2cpp: cpu/cu2cpp.c $(B)/flags-host
	$(call say,CC,$<)
	$(Q)$(HOSTCC) -std=gnu11 -O2 -g $(WARNINGS) -MMD -MP -MF $@.d -o $@ $<

.SECONDARY:
# The dependency files (.d) of earlier builds may name a source that has been deleted or renamed since. make has no
# rule for such a source and would stop. So these files are not read, and their objects are built again if needed.
DEPENDENCIES := $(wildcard $(B)/*.d $(B)/*/*.d $(B)/*/*/*.d)
source_of = $(firstword $(filter %.cu %.c %.cpp %.S,$(file <$(1))))
STALE := $(foreach d,$(DEPENDENCIES),$(if $(wildcard $(call source_of,$(d))),,$(d)))
.PHONY: again
$(STALE:.d=.o) $(STALE:.d=): again
-include $(filter-out $(STALE),$(DEPENDENCIES))
