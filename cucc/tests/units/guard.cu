// SPDX-License-Identifier: MIT
// cucc only: host code that reads or writes device memory ends the program with a line that names the memory,
// and what is written past the end of an allocation is told. A correct twin of each prints nothing.
#include <sys/resource.h>
#include "device.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool guarded = false; // the sanitizers need all memory open
#else
static const bool guarded = true;
#endif

// The body ends with status 1 and one line that has these words, by default and with the strict check.
static void faulty(std::initializer_list<std::string> words, void (*body)(), bool strict = false) {
    for (const char *setting : {"CUDA_CPU_CHECK=1", "OTHER=1"}) {
        if (!guarded || (strict && strcmp(setting, "CUDA_CPU_CHECK=1") != 0))
            continue;
        const unit_result result = under({setting}, body);
        EXPECT(strchr(result.err, '\n') == result.err + strlen(result.err) - 1);
        ends_with(result, words);
    }
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
            " at guard.cu:" + std::to_string(__LINE__ + 1), "; host code must use cudaMemcpy\n"},
           [] { exit(zeros()[10]); });
    faulty({"cuda on the CPU: the host writes 0x", ", which is 400 bytes of device 0, " + line(zeros_line)},
           [] { zeros()[99] = 1; });
    ends_well(under({"CUDA_CPU_CHECK=0"}, [] { zeros()[99] = 1; }));
}

TEST(host_accesses_after_a_kernel_and_in_the_c_library) {
    faulty({"the host reads", " at guard.cu:", "400 bytes of device 0"}, [] {
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

// Access is denied again after thousands of launches, if they are not too short, and by any host thread.
__global__ void count_slowly(int *values) {
    for (int i = 0; i < 100000; i++)
        atomicAdd(values + threadIdx.x % 4, 1);
}
TEST(after_many_launches_and_in_threads) {
    faulty({"the host reads"}, [] {
        volatile int *const p = zeros();
        for (int i = 0; i < 3000; i++)
            count_up<<<1, 1>>>((int *)p, 100);
        for (int i = 0; i < 5000;
             i++) { // until access is denied; when that is depends on the time that mprotect() takes
            count_slowly<<<1, 8>>>((int *)p);
            (void)p[1];
        }
    });
    ends_well(under({"OTHER=1"}, [] { // launches, copies, allocations of several threads: none sees it denied
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; t++)
            threads.emplace_back([] {
                int *const p = (int *)zeros(), out;
                for (int i = 1; i <= 2000; i++) {
                    count_up<<<2, 50>>>(p, 100);
                    if (i % 5 == 0)
                        OK(cudaMemcpy(&out, p + 7, 4, cudaMemcpyDeviceToHost));
                    if (i % 7 == 0)
                        OK(cudaFree((void *)zeros()));
                }
                EXPECT(value_at(p + 3) == 6000);
                OK(cudaFree(p));
            });
        for (std::thread &thread : threads)
            thread.join();
    }));
}

TEST(writes_past_the_end) {
    const std::string told = " wrote byte 400 of 400 bytes of ", hint = "; cucc --check names the thread";
    const auto wrong = [&](const std::string &what, void (*body)()) {
        if (guarded)
            ends_with(under({"OTHER=1"}, body), {"cuda on the CPU: " + what, hint});
    };
    wrong("a kernel" + told + "device 0, " + line(zeros_line), [] { // when it is freed
        int *const p = (int *)zeros();
        count_up<<<2, 64>>>(p, 101);
        OK(cudaFree(p));
    });
    wrong("a kernel" + told + "device 0, " + line(zeros_line),
          [] { count_up<<<1, 128>>>((int *)zeros(), 110); });
    wrong("a kernel or the host" + told + "managed memory, ", [] {
        int *const p = STORED(int *, cudaMallocManaged(&it, 400));
        count_up<<<1, 128>>>(p, 101);
    });
    wrong("a kernel or the host" + told + "pinned host memory, ", [] {
        volatile int *const p = STORED(int *, cudaMallocHost((void **)&it, 400));
        p[100] = 1;
        OK(cudaFreeHost((void *)p));
    });
    ends_well(under({"OTHER=1"}, [] {
        for (size_t bytes : {1, 399, 400, 512, 4095, 4096, 65536, 3 << 20, 9 << 20}) {
            char *const p = STORED(char *, cudaMalloc(&it, bytes)), *const q =
                                                                        STORED(char *,
                                                                               cudaMallocManaged(&it, bytes));
            OK(cudaMemset(p, 1, bytes));
            OK(cudaMemset(q, 1, bytes));
            OK(cudaFree(p));
            if (bytes % 2)
                OK(cudaFree(q));
        }
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
