// SPDX-License-Identifier: MIT
// cucc only: CUDA_CPU_CHECK=1. Host code that reads or writes device memory ends the program with a line that
// names the memory. A correct twin of each prints nothing.
#include <sys/resource.h>
#include "device.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool guarded = false; // the sanitizers need all memory open
#else
static const bool guarded = true;
#endif

// The body ends with status 1 and one line that has these words; without the check it ends as always.
static void faulty(std::initializer_list<std::string> words, void (*body)()) {
    if (!guarded)
        return;
    const unit_result result = under({"CUDA_CPU_CHECK=1"}, body);
    EXPECT(strchr(result.err, '\n') == result.err + strlen(result.err) - 1);
    ends_with(result, words);
}

static std::string line(int number) {
    return "allocated at guard.cu:" + std::to_string(number);
}

__global__ void count_up(int *values, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        values[i] += i;
}

// 100 ints of device memory that are 0. `volatile` keeps the compiler from removing an access.
static volatile int *zeros() {
    int *const p = STORED(int *, cudaMalloc(&it, 400));
    OK(cudaMemset(p, 0, 400));
    return p;
}
static const int zeros_line = __LINE__ - 4;

TEST(host_reads_and_writes) {
    faulty({"cuda on the CPU: the host reads 0x", ", which is 400 bytes of device 0, " + line(zeros_line),
            "guard+0x", "; host code must use cudaMemcpy (in "},
           [] { exit(zeros()[10]); });
    faulty({"cuda on the CPU: the host writes 0x", ", which is 400 bytes of device 0, " + line(zeros_line)},
           [] { zeros()[99] = 1; });
    ends_well(under({"CUDA_CPU_CHECK=0"}, [] { zeros()[99] = 1; }));
}

TEST(host_accesses_after_a_kernel_and_in_the_c_library) {
    faulty({"the host reads", "guard+0x", "400 bytes of device 0"}, [] {
        volatile int *const p = zeros();
        int values[100];
        count_up<<<2, 64>>>((int *)p, 100);
        OK(cudaDeviceSynchronize());
        memcpy(values, (int *)p, unit_first ? 400 : 4);
        exit(values[0]);
    });
    faulty({"the host reads", "bytes before 400 bytes of device 0"}, [] { free((int *)zeros()); });
    faulty({"the host writes", "400 bytes of device 0"}, [] { OK(cudaMalloc((void **)zeros(), 4)); });
    faulty({"the host reads"}, [] { std::thread([p = zeros()] { exit(*p); }).join(); });
}

TEST(every_kind_of_device_memory) {
    faulty({"the host writes", "1536 bytes of device 0, allocated at guard.cu:"}, [] {
        char *p;
        size_t pitch;
        OK(cudaMallocPitch(&p, &pitch, 100, 3));
        p[pitch] = 1;
    });
    faulty({"the host reads", "40 bytes of device 0"},
           [] { exit(*STORED(volatile int *, cudaMallocAsync((void **)&it, 40, 0))); });
    // two devices, and memory of more than two huge pages
    faulty({"the host reads", "9437184 bytes of device 1, allocated at guard.cu:"}, [] {
        OK(cudaSetDevice(1));
        exit(STORED(volatile char *, cudaMalloc((void **)&it, 9 << 20))[9 << 19]);
    });
}

TEST(freed_memory) {
    faulty({"the host reads", ", which is inside freed memory: 400 bytes of device 0, " + line(zeros_line)},
           [] {
               volatile int *const p = zeros();
               OK(cudaFree((int *)p));
               exit(p[2]);
           });
    faulty({"the host reads", ", which was freed already: 400 bytes of device 0, " + line(zeros_line)}, [] {
        volatile int *const p = zeros();
        OK(cudaDeviceReset());
        exit(*p);
    });
    if (!guarded)
        return;
    const unit_result result = under({"CUDA_CPU_CHECK=1"}, [] { // by a kernel
        volatile int *const p = zeros(), *const other = zeros();
        OK(cudaFree((int *)p));
        volatile int *const third = zeros();
        count_up<<<1, 1>>>((int *)other, 100);
        count_up<<<1, 1>>>((int *)third, 100);
        count_up<<<1, 1>>>((int *)p, 100);
    });
    ends_with(result,
              {"cuda on the CPU: illegal address 0x", ", which was freed already: 400 bytes of device 0",
               "in kernel count_up, block (0,0,0), launched at guard.cu:"});
}

// No false report for a correct program. test_units.py also runs some units with CUDA_CPU_CHECK=1.
TEST(addresses_of_freed_memory_are_used_again) {
    ends_well(under({"CUDA_CPU_CHECK=1"}, [] {
        const rlimit limit = {300 << 20, 300 << 20};
        if (guarded)
            EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
        volatile int *const kept = zeros();
        for (int i = 0; i < 100; ++i) {
            int *const p = STORED(int *, cudaMalloc(&it, 4 << 20));
            EXPECT(p != (int *)kept);
            OK(cudaFree(p));
        }
        EXPECT(value_at((int *)kept) == 0);
    }));
}

TEST(other_faults_and_bad_values_are_reported_as_before) {
    if (guarded)
        ends_with(under({"CUDA_CPU_CHECK=1"},
                        [] {
                            zeros();
                            int *volatile nowhere = (int *)16;
                            *nowhere = 1;
                        }),
                  {}, 128 + SIGSEGV);
    const unit_result result = under({"CUDA_CPU_CHECK=yes"}, [] { zeros(); });
    EXPECT(result.status == 1);
    EXPECT(strcmp(result.err, "cuda on the CPU: CUDA_CPU_CHECK=yes: must be 0 or 1\n") == 0);
}

TEST(what_is_left_at_the_end) { // in this program anew: the setting is read before main
    if (getenv("CUDA_CPU_CHECK")) {
        const cudaResourceDesc resource = of_array(array_of(std::vector<int>(16), 4, 4));
        const cudaTextureDesc desc = {};
        cudaTextureObject_t texture;
        for (int i = 0; i < 2; i++)
            OK(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));
        OK(cudaDestroyTextureObject(texture));
        OK(cudaStreamDestroy(new_stream()));
        new_stream(), new_stream(), new_event(), zeros();
        return;
    }
    ends_with(in_child([] {
                  setenv("CUDA_CPU_CHECK", "1", 1);
                  execl("/proc/self/exe", "guard", "what_is_left_at_the_end", NULL);
              }),
              {"at exit not freed: 400 bytes of device 0, " + line(zeros_line),
               "at exit not destroyed: 1 array\n", ": 1 texture or surface object\n", ": 2 streams\n",
               ": 1 event\n"});
}
