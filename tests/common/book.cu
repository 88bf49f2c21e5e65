// SPDX-License-Identifier: MIT
// book.h and the bitmaps: error checks, the choice of the device, pictures from C++. Code that ends
// the program or uses a device runs in a child process.
#include "../../common/book.h"
#include "../../common/cpu_anim.h"
#include "../../common/cpu_bitmap.h"
#include "../../cucc/tests/unit.h"

TEST(name_of_the_program) {}

template <class Body> static unit_result as_prog(Body body) {
    options.program = "prog";
    return in_child(body);
}

static bool is(const char *text, const char *expected) {
    if (strcmp(text, expected) != 0)
        fprintf(stderr, "got      %sexpected %s", text, expected);
    return strcmp(text, expected) == 0;
}

// Whether the last line of stderr is the message of an error on that line of this file. The CPU back
// end may print a line with its own reason before it.
static bool is_at(const unit_result &r, int line, const char *rest) {
    char expected[512];
    snprintf(expected, sizeof(expected), "%s:%d: %s\n", __FILE__, line, rest);
    const char *last = strstr(r.err, __FILE__ ":");
    return is(last ? last : r.err, expected);
}

__global__ static void nothing(void) {}

TEST(handle_error) {
    unit_result r = as_prog([] {
        HANDLE_ERROR(cudaSetDevice(0));
        printf("this far");
        HANDLE_ERROR(cudaSetDevice(1 << 20));
    });
    const int line = __LINE__ - 2;
    EXPECT(r.status == 1);
    EXPECT(is(r.out, "this far"));
    EXPECT(is_at(r, line, "cudaSetDevice(1 << 20): invalid device ordinal (cudaErrorInvalidDevice)"));
}

// The last line. On the CPU back end the runtime has printed one before, as for other errors.
TEST(handle_error_of_memory) {
    for (int pinned = 0; pinned < 2; pinned++) {
        unit_result r = as_prog([=] {
            void *p;
            if (pinned)
                HANDLE_ERROR(cudaHostAlloc(&p, (size_t)1 << 60, cudaHostAllocDefault));
            HANDLE_ERROR(cudaMalloc(&p, (size_t)1 << 60));
        });
        const int line = __LINE__ - 2 - pinned; // of cudaMalloc, or of cudaHostAlloc before it
        EXPECT(r.status == 1);
        char start[256];
        snprintf(start, sizeof(start), "%s:%d: cuda%s(", __FILE__, line, pinned ? "HostAlloc" : "Malloc");
        const char *told = strstr(r.err, start);
        if (!EXPECT(told))
            continue;
        size_t available = 1, total = 0;
        const char *sizes = strstr(told, ": out of memory (cudaErrorMemoryAllocation); ");
        EXPECT(sizes && sscanf(strchr(sizes, ';'), "; %zu of %zu bytes are free", &available, &total) == 2);
        EXPECT(available <= total);
        EXPECT(strchr(told, '\n') == r.err + strlen(r.err) - 1);
    }
}

TEST(handle_launch) {
    unit_result r = as_prog([] {
        nothing<<<1, 1>>>();
        HANDLE_LAUNCH();
        nothing<<<1, 4096>>>();
        HANDLE_LAUNCH();
    });
    char start[256];
    snprintf(start, sizeof(start), "%s:%d: kernel launch: invalid ", __FILE__, __LINE__ - 3);
    EXPECT(r.status == 1);
    // cudaErrorInvalidValue with CUDA 13, cudaErrorInvalidConfiguration before
    EXPECT(strstr(r.err, start) && strstr(r.err, " (cudaErrorInvalid"));
}

TEST(handle_null) {
    unit_result r = as_prog([] {
        int value = 0, *here = &value, *nowhere = NULL;
        HANDLE_NULL(here);
        HANDLE_NULL(nowhere);
    });
    EXPECT(r.status == 1);
    EXPECT(is_at(r, __LINE__ - 3, "nowhere: out of memory"));
}

// 2^61 doubles are 2^64 bytes, a number that overflows to 0.
TEST(host_arrays) {
    float *some = host_array<float>(3), *none = host_array<float>(0);
    EXPECT(some && none);
    some[2] = 1;
    free(some);
    free(none);
    for (size_t n : {(size_t)1 << 50, (size_t)1 << 61, ((size_t)1 << 61) + 1, SIZE_MAX}) {
        unit_result r = as_prog([=] { host_array<double>(n); });
        EXPECT(r.status == 1);
        EXPECT(strstr(r.err, "prog: out of memory: ") == r.err);
    }
}

TEST(no_code_for_this_device) {
    unit_result r = as_prog([] { handle_error(cudaErrorNoKernelImageForDevice, "k", "f.cu", 3); });
    EXPECT(r.status == 1);
    EXPECT(strstr(r.err, "f.cu:3: k: ") == r.err);
    EXPECT(strstr(r.err, "(cudaErrorNoKernelImageForDevice); this build has no code for device 0: "
                         "rebuild with SMS="));
}

TEST(no_device) {
    unit_result r = as_prog([] {
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
        HANDLE_ERROR(cudaFree(NULL));
    });
    EXPECT(r.status == 2);
    EXPECT(strstr(r.err, ": cudaFree(NULL): no CUDA-capable device is detected "
                         "(cudaErrorNoDevice)\n"));
}

TEST(bitmaps) {
    CPUAnimBitmap bitmap(3, 2);
    EXPECT(bitmap.image_size() == 24);
    for (size_t i = 0; i < bitmap.image_size(); i++)
        EXPECT(bitmap.get_ptr()[i] == 0);
    unit_result r = as_prog([] { CPUBitmap bitmap((size_t)1 << 32, (size_t)1 << 31); });
    EXPECT(r.status == 1 && is(r.err, "prog: a picture of 4294967296x2147483648 pixels is too large\n"));
}
