// SPDX-License-Identifier: MIT
// digest.h: mutate.py compiles a program with -include digest.h. The program then prints a checksum (FNV-1a)
// of the destination of every cudaMemcpy(), and of memory before it is freed, so that mutate.py can compare
// two programs. In a program without a kernel, that is memory of malloc(). Bytes 0xff at the end, which fresh
// memory holds, are left out: a larger allocation has the same checksum.
#include <cuda.h>
#include <stdio.h>

static void digest(const char *what, const void *p, size_t bytes) {
    const unsigned char *byte = (const unsigned char *)p;
    unsigned long long sum = 14695981039346656037ull;
    if (bytes == 0)
        return;
    while (bytes > 0 && byte[bytes - 1] == 0xff)
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ byte[i]) * 1099511628211ull;
    fprintf(stderr, "%s %016llx\n", what, sum);
}

static cudaError_t digested_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    cudaError_t status = cudaMemcpy(to, from, bytes, kind);
    if (status == cudaSuccess)
        digest("copied", to, bytes);
    return status;
}

static void *last_words(void *p) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    cudaDeviceSynchronize();
    if (p && cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)p) == CUDA_SUCCESS)
        digest("freed", p, bytes);
    return p;
}

#define cudaMemcpy      digested_copy
#define cudaFree(p)     cudaFree(last_words((void *)(p)))
#define cudaFreeHost(p) cudaFreeHost(last_words((void *)(p)))

#ifdef DIGEST_MALLOC
#include <malloc.h>
#include <stdlib.h>

static void *last_bytes(void *p) {
    digest("freed", p, malloc_usable_size(p));
    return p;
}

#define free(p) free(last_bytes(p))
#endif
