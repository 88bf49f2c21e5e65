// SPDX-License-Identifier: MIT
// The steps from a source to an object: each is one function with one command
#include "driver.h"

typedef struct {
    const char *file, *object;
    const char *stem;  // of the files between the steps
    List preprocessor; // the command, without -E and what follows
    List dependencies; // options of -MD and -MMD
} Source;

// What a file is by its name; for a source, -x decides.
Kind kind_of(const Settings *s, const char *file) {
    if (matches(file, "*.o *.obj *.a *.so *.so.[0-9]* *.lo"))
        return OBJECT;
    if (s->language)
        return s->language;
    if (matches(file, "*.cu"))
        return CUDA;
    if (matches(file, "*.cpp *.cc *.cxx *.c++ *.C *.CPP"))
        return CXX;
    if (matches(file, "*.c"))
        return C;
    if (matches(file, "*.ii *.i *.s *.S"))
        return OTHER;
    if (matches(file, "*.ptx *.cubin *.fatbin"))
        stop("%s: there is no code for a GPU here", file);
    stop("%s: do not know this kind of file (.cu, .cpp, .c, .o, .a, .so; -x names the language)", file);
}

static void add_common(const Settings *s, List *command) {
    add(command, s->optimize);
    add_list(command, &s->threads);
    add_list(command, &s->compile);
}

// A report of --check names the line of the program that calls a function of these headers: it skips frames
// with /cuda_cpu/ in their paths.
static void add_instrumentation(const Settings *s, List *command) {
    add_list(command, &s->instrument);
    if (s->check)
        add(command, format("-fdebug-prefix-map=%s/include=%s/include/cuda_cpu/..", s->tools, s->tools));
}

static void add_definitions(const Settings *s, List *command, const char *file) {
    char *unit = format("-DCUDA_CPU_UNIT=\"%s\"", file);
    for (char *p = strchr(unit, '"') + 1; p[1]; p++)
        if (*p == '"' || *p == '\\')
            *p = '_';
    add_all_of(command, "-D__NVCC__ -D__CUDACC__ -D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__=0 "
                        "-D__CUDACC_VER_BUILD__=88");
    add(command, format("-D__CUDA_ARCH_LIST__=%d0", s->arch));
    add(command, s->rdc ? "-D__CUDACC_RDC__" : NULL);
    add(command, s->shared_index || s->check ? "-DCUDA_CPU_SEVERAL" : NULL); // race.cpp reads threadIdx
    add(command, s->check ? "-DCUDA_CPU_CHECK" : NULL);
    ADD(command, "-D__CU2CPP__", unit, "-include", "cuda_runtime.h", "-include", "cuda_cpu/unit.h");
}

// The command that preprocesses a source; it also compiles C and C++.
static List preprocessor_of(const Settings *s, const char *file, Kind kind) {
    List command = copy_of(&s->cxx);
    ADD(&command, "-x", kind == C ? "c" : "c++");
    add(&command, kind == C ? s->standard_c : format("-std=%s", s->standard));
    if (kind == CXX)
        add_list(&command, &s->old);
    add_common(s, &command);
    ADD(&command, "-I", format("%s/include", s->tools));
    if (kind == CUDA) {
        add_definitions(s, &command, file);
        add_list(&command, &s->old);
    }
    add_list(&command, &s->preprocess);
    return command;
}

// For -E, -M and -MM
static int only_preprocess(const Settings *s, const Source *source) {
    List command = copy_of(&source->preprocessor);
    if (s->mode == PREPROCESS) {
        add(&command, "-E");
        add_list(&command, &source->dependencies);
    } else {
        add(&command, s->depend);
        add(&command, s->depend_phony ? "-MP" : NULL);
        add_list(&command, &s->depend_targets);
    }
    add(&command, source->file);
    ADD(&command, s->output ? "-o" : NULL, s->output);
    ADD(&command, s->mode == DEPEND && s->depend_file ? "-MF" : NULL, s->depend_file);
    return run_step(s, &command);
}

// For the host; or for the device, with a macro
static int preprocess(const Settings *s, const Source *source, const char *macro, const char *output) {
    List command = copy_of(&source->preprocessor);
    add(&command, macro);
    add(&command, "-E");
    if (!macro)
        add_list(&command, &source->dependencies);
    ADD(&command, source->file, "-o", output);
    const int status = run_step(s, &command);
    if (status && !macro)
        hint_missing_header(s, &source->preprocessor, source->file);
    return status;
}

// The command is what -v shows; the translator runs in a child of this process.
static int translate(const Settings *s, const char *input, const char *device, const char *output) {
    const Translation how = {
        .input = input,
        .device = device,
        .output = output,
        // Debuggers, the race detector and sanitizers follow single threads.
        .only_fibers = s->check || s->sanitize || !strcmp(s->optimize, "-O0"),
        .explain = s->mode == EXPLAIN,
        // Old programs name variables by strings, which the dynamic linker looks up.
        .whole_program = s->shared_index && !s->rdc && !s->legacy,
    };
    List command = {0};
    ADD(&command, format("%s/bin/cu2cpp", s->tools), input);
    add(&command, how.whole_program ? "-w" : NULL);
    ADD(&command, device ? "-d" : NULL, device);
    add(&command, how.only_fibers ? "-f" : NULL);
    add(&command, how.explain ? "-e" : NULL);
    ADD(&command, output ? "-o" : NULL, output);
    return run_translation(s, &command, &how);
}

// Kernels read and write memory through pointers to other types, as in *(float4 *)half_array.
static int compile_translation(const Settings *s, const char *input, const char *object) {
    List command = copy_of(&s->cxx);
    ADD(&command, format("-std=%s", s->standard), s->optimize, "-ffp-contract=off", "-fno-strict-aliasing");
    add(&command, s->threads.count ? "-g1" : NULL); // lines for messages; WebAssembly cannot look them up
    ADD(&command, "-fno-math-errno",
        "-fno-trapping-math"); // a GPU has neither errno nor floating-point exceptions
    add_list(&command, &s->threads);
    add_list(&command, &s->compile);
    add_instrumentation(s, &command);
    add_list(&command, &s->translated);
    add(&command, s->legacy ? "-fpermissive" : NULL);
    const List whole = copy_of(&command);
    ADD(&command, "-c", input, "-o", object);
    show(s, &command);
    if (s->dryrun || compile_with_precompiled(s, &whole, input, object))
        return 0;
    Text messages = {0};
    add(&command, color_option());
    const int status = run_captured(&command, true, &messages);
    print_messages(&messages);
    if (status)
        hint_removed(s, input);
    return status;
}

static int compile_cuda(const Settings *s, const Source *source) {
    const char *preprocessed = format("%s.ii", source->stem), *device = NULL;
    if (preprocess(s, source, NULL, preprocessed) != 0)
        return 1;
    // A source that tests __CUDA_ARCH__ is preprocessed a second time, for the device.
    if (!s->dryrun && names_architecture(preprocessed, format("%s/include/", s->tools))) {
        device = format("%s.device.ii", source->stem);
        if (preprocess(s, source, format("-D__CUDA_ARCH__=%d0", s->arch), device) != 0)
            return 1;
    }
    if (s->mode == EXPLAIN || s->mode == TRANSLATE)
        return translate(s, preprocessed, device, s->mode == TRANSLATE ? s->output : NULL);
    const char *translated = format("%s.cpp.ii", source->stem);
    if (translate(s, preprocessed, device, translated) != 0)
        return 1;
    return compile_translation(s, translated, source->object);
}

static int compile_host(const Settings *s, const Source *source) {
    List command = copy_of(&source->preprocessor);
    if (s->mode == TRANSLATE)
        stop("%s: only a .cu is translated", source->file);
    add_instrumentation(s, &command);
    add_list(&command, &source->dependencies);
    ADD(&command, "-c", source->file, "-o", source->object);
    const int status = run_step(s, &command);
    if (status) {
        hint_missing_header(s, &source->preprocessor, source->file);
        hint_removed(s, source->file);
    }
    return status;
}

// A preprocessed source, or assembly
static int compile_other(const Settings *s, const Source *source) {
    List command = copy_of(&s->cxx);
    add_common(s, &command);
    ADD(&command, "-c", source->file, "-o", source->object);
    return run_step(s, &command);
}

// clang parses CUDA itself; editor.h declares this back end's runtime for it.
static int lint(const Settings *s, const Source *source) {
    List command = blank_separated("clang++ -x cuda --cuda-host-only -nocudainc -nocudalib -fsyntax-only");
    if (!find_command("clang++"))
        stop("--lint needs clang++");
    add(&command, format("-std=%s", s->standard));
    add_list(&command, &s->compile);
    ADD(&command, "-I", format("%s/include", s->tools), "-include", "cuda_cpu/editor.h");
    for (int i = 1; i < s->old.count; i++) // without -fpermissive
        add(&command, s->old.words[i]);
    add_all_of(&command,
               "-Xclang -fcuda-allow-variadic-functions -Wno-macro-redefined -Wno-unknown-cuda-version");
    add_list(&command, &s->preprocess);
    add(&command, source->file);
    return run_step(s, &command);
}

static List dependencies_of(const Settings *s, const char *base, const char *object) {
    List options = {0};
    if (!s->depend || s->mode == DEPEND)
        return options;
    add(&options, s->depend);
    add(&options, s->depend_phony ? "-MP" : NULL);
    ADD(&options, "-MF", s->depend_file ? s->depend_file : format("%s%s.d", s->output_folder, base));
    if (s->depend_targets.count)
        add_list(&options, &s->depend_targets);
    else
        ADD(&options, "-MT", object);
    return options;
}

// Returns 0, or another status after an error.
int compile_source(const Settings *s, const char *file, const char *object) {
    const char *base = stem_of(file);
    const Kind kind = kind_of(s, file);
    const Source source = {
        .file = file,
        .object = object,
        .stem = s->keep ? format("%s%s", s->keep_folder, base) : format("%s/%s", work_folder(), base),
        .preprocessor = preprocessor_of(s, file, kind),
        .dependencies = dependencies_of(s, base, object),
    };
    if (s->mode == LINT)
        return kind == CUDA ? lint(s, &source) : 0;
    if (s->mode == EXPLAIN && kind != CUDA)
        return 0;
    if (kind == OTHER)
        return compile_other(s, &source);
    if (s->mode == DEPEND || s->mode == PREPROCESS)
        return only_preprocess(s, &source);
    return kind == CUDA ? compile_cuda(s, &source) : compile_host(s, &source);
}
