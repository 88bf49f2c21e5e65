// SPDX-License-Identifier: MIT
// Kernels and their arguments in every form that C++ has for a call, and launches by address.
#include <cuda_runtime.h>
#include "../unit.h"

__managed__ float seen[16];
static float fraction = 2.9f;

__device__ void say(int i, float value) {
    seen[i] = value;
}

static bool saw(float a, float b = 0, float c = 0) {
    const bool equal = seen[0] == a && seen[1] == b && seen[2] == c;
    if (!equal)
        fprintf(stderr, "saw %g %g %g\n", seen[0], seen[1], seen[2]);
    memset(seen, 0, sizeof seen);
    return cudaGetLastError() == cudaSuccess && equal;
}

__global__ void called(int) {}
static void call(void *) {
    called(1);
}
TEST(a_kernel_is_not_called_as_a_function) { // first, because it forks
    const unit_result result = unit_child(call, NULL);
    EXPECT(result.status == 1 && strstr(result.err, "the kernel called is called as a function"));
}

static void not_global(int) {}
static void launch_a_function(void *) {
    not_global<<<1, 1>>>(1);
}
TEST(only_a_kernel_is_launched) {
    const unit_result result = unit_child(launch_a_function, NULL);
    EXPECT(result.status == 1 && strstr(result.err, "not_global is not __global__"));
}

// ---- conversions ----

struct Bits {
    unsigned low : 3, high : 5;
    static const int undefined = 7; // no definition: only its value may be used
    static constexpr float half = 0.5f;
};
struct Base {
    int base;
};
struct Derived : Base {
    int own;
};
struct Pair {
    int a, b;
};

__global__ void numbers(float a, double b, unsigned char c) {
    say(0, a);
    say(1, (float)b);
    say(2, c);
}
__global__ void pointers(const int *a, Base *b, void *c) {
    say(0, a == nullptr);
    say(1, b ? b->base : 0);
    say(2, c == nullptr);
}
__global__ void structs(Pair pair, dim3 size, const Pair unused = {}) {
    say(0, pair.a * 10 + pair.b);
    say(1, size.x * size.z);
    say(2, unused.a);
}
__global__ void defaults(int a, int b = 5);
__global__ void defaults(int a, int b) {
    say(0, a);
    say(1, b);
}
__global__ void unnamed(int, float[], int (*)(int), int (&)[2], const unsigned, int last) {
    say(0, last);
}
__global__ void references(int &sum, const Pair &pair) {
    sum += pair.a;
}

TEST(arguments_are_converted_as_in_a_call) {
    static Derived derived;
    derived.base = 8;
    Bits bits = {5, 17};
    int two[2] = {}, sum = 1;
    numbers<<<1, 1>>>(bits.low, bits.high, Bits::undefined);
    EXPECT(saw(5, 17, 7));
    numbers<<<1, 1>>>(Bits::half, 'a', fraction);
    EXPECT(saw(0.5f, 97, 2));
    pointers<<<1, 1>>>(0, &derived, NULL);
    EXPECT(saw(1, 8, 1));
    pointers<<<1, 1>>>(two, nullptr, two);
    EXPECT(saw(0, 0, 0));
    structs<<<{1, 1}, {1}>>>({1, 2}, {3, 4, 5});
    EXPECT(saw(12, 15));
    structs<<<dim3{1}, 1u, 0, 0>>>({}, 6, {9, 0});
    EXPECT(saw(0, 6, 9));
    defaults<<<1, 1ul>>>(3);
    EXPECT(saw(3, 5));
    unnamed<<<1, 1>>>(1, 0, 0, two, 2, 4);
    EXPECT(saw(4));
    references<<<1, 3>>>(sum, {5, 6});
    EXPECT(sum == 16);
}

// ---- overloads and templates ----

__global__ void overloaded(int) {
    say(0, 1);
}
__global__ void overloaded(float) {
    say(0, 2);
}
__global__ void overloaded(const char *) {
    say(0, 3);
}
template <class T> __global__ void overloaded(T, T) {
    say(0, sizeof(T));
}
template <> __global__ void overloaded(char, char) {
    say(0, 100);
}
template <int N, class T> __global__ void explicitly(T value, T *pointer = nullptr) {
    say(0, N);
    say(1, value);
    say(2, pointer == nullptr);
}
template <class... T> __global__ void packed(int n, T... values) {
    say(0, n + sizeof...(values));
    say(1, (0.0f + ... + values));
}
template <class... T> __global__ void only_types(T...) {
    say(0, sizeof...(T));
}
template <class T> __global__ void __launch_bounds__(64 * sizeof(T), 2) declared_first(T value);
template <class T> __global__ void __launch_bounds__(64 * sizeof(T), 2) declared_first(T value) {
    if constexpr (sizeof(T) == 4)
        say(0, value);
    else
        value.never_compiled();
}
template __global__ void declared_first<int>(int);

TEST(overloads_and_templates) {
    overloaded<<<1, 1>>>(1);
    EXPECT(saw(1));
    overloaded<<<1, 1>>>(1.0f);
    EXPECT(saw(2));
    overloaded<<<1, 1>>>("text");
    EXPECT(saw(3));
    overloaded<<<1, 1>>>(1, 2);
    EXPECT(saw(4));
    overloaded<double><<<1, 1>>>(1, 2);
    EXPECT(saw(8));
    overloaded<<<1, 1>>>('a', 'b');
    EXPECT(saw(100));
    explicitly<3><<<1, 1>>>(4.5f);
    EXPECT(saw(3, 4.5f, 1));
    explicitly<4, char><<<1, 1>>>(65, 0);
    EXPECT(saw(4, 65, 1));
    packed<<<1, 1>>>(3);
    EXPECT(saw(3));
    packed<<<1, 1>>>(3, 1.5f, 'a', 2u);
    EXPECT(saw(6, 1.5f + 'a' + 2));
    packed<int><<<1, 1>>>(3, fraction);
    EXPECT(saw(4, 2));
    only_types<<<1, 1>>>(1, 2.0, "3");
    EXPECT(saw(3));
    declared_first<<<1, 1>>>(6);
    EXPECT(saw(6));
}

// ---- where kernels are, and what launches them ----

namespace outer {
namespace {
__global__ void hidden(int i) {
    say(0, i);
}
} // namespace
static __global__ void internal(int i) {
    say(0, 10 * i);
}
} // namespace outer
extern "C" __global__ void with_c_linkage(int i) {
    say(0, 100 * i);
}
struct Holder {
    void (*kernel)(int);
    static __global__ void own(int i) { say(0, i + secret); }
    void run() { own<<<1, 1>>>(1); }

  private:
    static const int secret = 40;
};
template <class T> struct Runner {
    template <int N> static __global__ void k(T value) {
        say(0, N);
        say(1, value);
    }
    void run() { this->template k<3><<<1, 1>>>(T(2)); }
};
template <class R> static void dependent() {
    R::template k<5><<<1, 1>>>(9);
}
template <class F, class... A> __global__ void apply(F f, A... a) {
    f(threadIdx.x, a...);
}
__global__ void says_its_name() {
    say(0, strcmp(__func__, "says_its_name"));
}

#define LAUNCH(kernel, grid, block, ...)                                                                     \
    do {                                                                                                     \
        kernel<<<grid, block>>>(__VA_ARGS__);                                                                \
    } while (0)

static int launches_another() {
    outer::internal<<<1, 1>>>(3);
    return saw(30) ? 4 : 0;
}

TEST(kernels_of_every_kind) {
    using namespace outer;
    hidden<<<1, 1>>>(1);
    EXPECT(saw(1));
    outer::hidden<<<1, 1>>>(launches_another());
    EXPECT(saw(4));
    LAUNCH(::outer::internal, 1, dim3(1), 2);
    EXPECT(saw(20));
    LAUNCH((explicitly<1, int>), 1, 1, 2);
    EXPECT(saw(1, 2, 1));
    Holder{}.run();
    EXPECT(saw(41));
    Runner<int>().run();
    EXPECT(saw(3, 2));
    dependent<Runner<float>>();
    EXPECT(saw(5, 9));
    const int offset = 6;
    apply<<<1, 3>>>([=] __device__(int i) mutable { say(i, i + offset); });
    EXPECT(saw(6, 7, 8));
    apply<<<1, 1>>>([] __host__ __device__(int, float x, int y) { say(0, x * y); }, 1.5f, 2);
    EXPECT(saw(3));
    says_its_name<<<1, 1>>>();
    EXPECT(saw(0));

    void (*pointer)(int) = with_c_linkage;
    void (*table[])(int) = {hidden, internal};
    const Holder holder = {pointer};
    auto automatic = &internal;
    pointer<<<1, 1>>>(1);
    EXPECT(saw(100));
    (*pointer)<<<1, 1>>>(2);
    EXPECT(saw(200));
    table[1]<<<1, 1>>>(3);
    EXPECT(saw(30));
    holder.kernel<<<1, 1>>>(4);
    EXPECT(saw(400));
    automatic<<<1, 1>>>(5);
    EXPECT(saw(50));
    (offset ? hidden : internal)<<<1, 1>>>(6);
    EXPECT(saw(6));
    offset ? hidden<<<1, 1>>>(7) : internal<<<1, 1>>>(7);
    EXPECT(saw(7));
    [&] { hidden<<<1, 1>>>(offset); }();
    EXPECT(saw(6));
    for (auto kernel : table)
        kernel<<<1, 1>>>(8);
    EXPECT(saw(80));
}

// ---- constructors and destructors ----

static int copies, destructions;

struct Counted {
    int value, *memory;
    explicit Counted(int v) : value(v), memory(nullptr) {}
    Counted(const Counted &other) : value(other.value), memory(other.memory) { ++copies; }
    ~Counted() { ++destructions; }
};
__global__ void take(Counted c, const Counted d) {
    c.value += 1; // each thread has its own
    atomicAdd(&seen[0], (float)c.value);
    atomicAdd(&seen[1], (float)d.value);
}

TEST(a_launch_copies_an_argument_once) {
    {
        const Counted c(5);
        copies = destructions = 0;
        take<<<2, 8>>>(c, Counted(3));
        EXPECT(copies == 1 && destructions == 2);
        EXPECT(saw(16 * 6, 16 * 3));
    }
    EXPECT(destructions == 3);
}

struct Owner { // its copy frees the same memory
    int *memory;
    Owner() { cudaMalloc(&memory, 4); }
    ~Owner() { status = cudaFree(memory); }
    static cudaError_t status;
};
cudaError_t Owner::status;
__global__ void fill(Owner owner) {
    *owner.memory = 3;
}

TEST(a_copy_that_frees_is_reported) {
    {
        Owner owner;
        fill<<<1, 1>>>(owner);
        EXPECT(Owner::status == cudaSuccess);
    }
    EXPECT(Owner::status == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
}

// ---- launches by address ----

__global__ void with_shared(int *out, Pair pair, int n) {
    __shared__ int values[100];
    extern __shared__ int dynamic[];
    values[threadIdx.x] = dynamic[threadIdx.x] = n;
    out[threadIdx.x] = values[threadIdx.x] + pair.b;
}
static __global__ __launch_bounds__(128) void bounded(int i) {
    say(0, i);
}
static int no_kernel() {
    return 1;
}

TEST(launches_by_address) {
    int *out, value = 4, n = 30, result[2];
    Pair pair = {1, 2};
    void *one[] = {&value}, *three[] = {&out, &pair, &n};
    const void *variable = (const void *)with_shared;
    cudaMalloc(&out, 8);
    EXPECT(cudaLaunchKernel((void *)outer::internal, 1, 1, one) == cudaSuccess);
    EXPECT(saw(40));
    EXPECT(cudaLaunchKernel((const void *)with_c_linkage, dim3(1), dim3(1), one, 0, 0) == cudaSuccess);
    EXPECT(saw(400));
    EXPECT(cudaLaunchCooperativeKernel((void *)declared_first<int>, 1, 1, one) == cudaSuccess);
    EXPECT(saw(4));
    EXPECT(cudaLaunchKernel(variable, 1, 2, three, 64) == cudaSuccess);
    cudaMemcpy(result, out, 8, cudaMemcpyDeviceToHost);
    EXPECT(result[0] == 32 && result[1] == 32);
    Counted c(5), d(6);
    void *two[] = {&c, &d};
    copies = destructions = 0;
    EXPECT(cudaLaunchKernel(take, 1, 1, two) == cudaSuccess && copies == 0 && destructions == 0);
    EXPECT(saw(6, 6));
    EXPECT(cudaLaunchKernel((void *)with_c_linkage, 1, 1, nullptr) == cudaErrorInvalidValue);
    EXPECT(cudaLaunchKernel((void *)&value, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((void *)nullptr, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((void *)puts, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((void *)no_kernel, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    EXPECT(cudaLaunchKernel((char *)bounded + 1, 1, 1, one) == cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
    cudaFree(out);
}

TEST(attributes_by_address) {
    cudaFuncAttributes a;
    EXPECT(cudaFuncGetAttributes(&a, (void *)with_shared) == cudaSuccess);
    EXPECT(a.sharedSizeBytes == 400 && a.maxThreadsPerBlock == 1024 && a.maxDynamicSharedSizeBytes == 48752);
    EXPECT(cudaFuncGetAttributes(&a, bounded) == cudaSuccess && a.maxThreadsPerBlock == 128);
    EXPECT(cudaFuncGetAttributes(&a, declared_first<int>) == cudaSuccess && a.maxThreadsPerBlock == 256);
    // The limit of dynamic shared memory belongs to one kernel.
    EXPECT(cudaFuncSetAttribute((void *)with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000) ==
           cudaSuccess);
    EXPECT(cudaFuncGetAttributes(&a, with_shared) == cudaSuccess && a.maxDynamicSharedSizeBytes == 60000);
    EXPECT(cudaFuncGetAttributes(&a, bounded) == cudaSuccess && a.maxDynamicSharedSizeBytes == 49152);
    int *out;
    cudaMalloc(&out, 4);
    with_shared<<<1, 1, 60000>>>(out, {}, 1);
    EXPECT(cudaGetLastError() == cudaSuccess);
    bounded<<<1, 1, 60000>>>(1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    cudaFree(out);
}
