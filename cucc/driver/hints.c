// SPDX-License-Identifier: MIT
// After errors: what cucc has in place of what is not here, in a line of its own
#include "driver.h"

#define HAS "cucc: %s of NVIDIA is not part of the CPU back end, which has "
#define LIBRARIES                                                                                            \
    HAS "cublas_v2.h, cublasLt.h, cusparse.h, cusolverDn.h, cusolverSp.h, cufft.h, curand.h, nvml.h, "       \
        "Thrust and CUB\n"

static const struct {
    const char *names, *message;
} headers[] = {
    {"cublasXt.h", HAS "cublas_v2.h and cublasLt.h\n"},
    {"cusolver*.h", HAS "cusolverDn.h and cusolverSp.h\n"},
    {"cufftw.h", HAS "cufft.h, cufftXt.h, and FFTW's fftw3.h\n"},
    {"nvrtc.h nvvm.h nvJitLink.h nvPTXCompiler.h nvFatbin.h",
     HAS "no compiler at run time: kernels are compiled into the program\n"},
    {"buffer iterator devices device_topk.cuh", "cucc: %s is newer than CUDA 13.0\n"},
    {"nccl.h", HAS "cudaMemcpyPeer, and MPI takes device pointers\n"},
    {"npp*.h nvjpeg*.h cudnn*.h cutensor*.h cutlass.h cute.h cupti*.h nvcomp*.h nvshmem*.h optix*.h cudss.h "
     "cudaEGL.h cuda_egl_interop.h cuda_d3d*.h cuda_vdpau_interop.h cufile.h nvcuvid.h nvsci*.h "
     "cuda_fp[46].h",
     LIBRARIES},
};

// The header that the compiler does not find: a.cu:1:10: fatal error: mine.h: No such file or directory
static char *missing_in(const char *line) {
    static const char text[] = "fatal error: ";
    const char *name = strstr(line, text), *end;
    if (!name)
        return NULL;
    name += strlen(text);
    name += *name == '\'';
    end = name + strcspn(name, ":'\n");
    const char *rest = end + (*end == '\'');
    const bool missing = has_prefix(rest, ": No such file") || has_prefix(rest, " file not found");
    return missing ? format("%.*s", (int)(end - name), name) : NULL;
}

// Says what there is in place of a header of NVIDIA's that is not here.
void hint_missing_header(const Settings *s, const List *preprocessor, const char *file) {
    List command = blank_separated("env LC_ALL=C");
    Text said = {0};
    const char *name = NULL;
    if (s->dryrun)
        return;
    add_list(&command, preprocessor);
    ADD(&command, "-E", file);
    run_captured(&command, true, &said);
    for (const char *line = said.data; !name && line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        name = missing_in(line);
    for (size_t i = 0; name && i < sizeof headers / sizeof *headers; i++)
        if (matches(name_of(name), headers[i].names)) {
            fprintf(stderr, headers[i].message, name);
            return;
        }
}

// Names what a source uses of earlier versions of CUDA, and what is not here.
void hint_removed(const Settings *s, const char *file) {
    static const char lacking[] = " CUmemAllocationProp CUarray CUtexref CUtexObject CUgraph "
                                  "curandStateMtgp32 curandStateMtgp32_t cufftXtSetGPUs cufftXtSetCallback ";
    static const char *const subjects[][2] = {
        {"CUmem", "virtual memory (cuMemCreate, cuMemMap)"},
        {"curand", "Mersenne Twisters"},
        {"cufft", "callbacks and plans for several devices"},
        {"", "arrays, textures and graphs of the driver API"},
    };
    static const char old[] =
        " cudaThreadSynchronize cudaThreadExit cudaBindTexture cudaBindTexture2D "
        "cudaBindTextureToArray __shfl __shfl_up __shfl_down __shfl_xor __ballot __any __all ";
    static const char old_members[] = " .clockRate .memoryClockRate .deviceOverlap .kernelExecTimeoutEnabled "
                                      ".computeMode "; // of cudaDeviceProp
    const char *word = first_of(file, lacking, false);
    int i = 0;
    while (word && !has_prefix(word, subjects[i][0]))
        i++;
    if (word)
        fprintf(stderr, "cucc: %s: %s are not supported by the CPU back end\n", word, subjects[i][1]);
    if (s->legacy)
        return;
    word = first_of(file, old, true);
    if (!word)
        word = first_of(file, old_members, false);
    if (word)
        fprintf(stderr, "cucc: CUDA 13 does not have %s; with --legacy it is here\n", word);
}

// The name of the kernel of a source that has this line, or null. What only looks like a kernel, as in a
// comment, can make a label wrong.
static const char *kernel_at(const char *file, long line) {
    Text text = {0};
    long at = 1;
    if (!read_text(file, &text))
        return NULL;
    for (const char *p = text.data, *word; (word = strstr(p, "__global__"));) {
        for (; p < word; p++)
            at += *p == '\n';
        const long first = at;
        const char *name = NULL;
        int depth = 0;
        for (; *p && *p != ';' && *p != '{'; p++) { // the first name before ( that is no attribute
            at += *p == '\n';
            const char *begin = p;
            while (begin > word && is_word_byte(begin[-1]))
                begin--;
            if (*p == '(' && !name && begin < p && !has_prefix(begin, "__"))
                name = format("%.*s", (int)(p - begin), begin);
        }
        for (; *p && (depth || *p == '{'); p++) {
            at += *p == '\n';
            depth += (*p == '{') - (*p == '}');
            if (depth == 1 && *p == '}')
                break;
        }
        if (name && line >= first && line <= at)
            return name;
    }
    return NULL;
}

// Prints what the compiler has said. The body of a kernel is a lambda for g++, which says "In lambda
// function:" before the line of an error; here it becomes "In kernel k:".
void print_messages(const Text *said) {
    static const char lambda[] = "In lambda function:";
    const char *from = said->data ? said->data : "";
    for (const char *at; (at = strstr(from, lambda)); from = at + strlen(lambda)) {
        Text plain = {0}; // the next line, FILE:LINE:COLUMN: …, without colours
        for (const char *p = at + strcspn(at, "\n"); *p && (*p != '\n' || !plain.length); p++) {
            if (*p == '\033')
                p += strcspn(p, "mK");
            else if (*p != '\n')
                append(&plain, p, 1);
        }
        const char *end = plain.data ? strstr(plain.data, ": ") : NULL;
        const char *column = end ? memrchr(plain.data, ':', (size_t)(end - plain.data)) : NULL;
        const char *line = column ? memrchr(plain.data, ':', (size_t)(column - plain.data)) : NULL;
        const char *kernel =
            line ? kernel_at(format("%.*s", (int)(line - plain.data), plain.data), atol(line + 1)) : NULL;
        fprintf(stderr, "%.*s%s", (int)(at - from), from, kernel ? format("In kernel %s:", kernel) : lambda);
    }
    fputs(from, stderr);
}
