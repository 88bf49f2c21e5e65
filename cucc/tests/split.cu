// SPDX-License-Identifier: MIT
// Kernels with barriers: the comment before each says how it runs, as cucc --explain prints it.
// test_split.py compares that, and what the program prints with both ways of running a barrier.
#include <cooperative_groups.h>
#include <cstdio>
#include <sstream>

namespace cg = cooperative_groups;

struct Cell {
    float value;
    int parts[2];
};

__device__ int counter;

__device__ int twice(int x) {
    return 2 * x;
}

// no barrier
__global__ void plain(int *x) {
    x[threadIdx.x]++;
}

// split
__global__ void strides(int *x, int n) {
    const int stride = blockDim.x * gridDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        x[i] = 3 * x[i] + i;
}

// split
__global__ void early_return(int *x, int n) {
    extern __shared__ int all[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    all[threadIdx.x] = x[i];
    __syncthreads();
    x[i] = all[0] + all[threadIdx.x];
    if (blockIdx.x == 1)
        return;
    __syncthreads();
    x[i] += twice(all[threadIdx.x]);
}

// split
__global__ void __launch_bounds__(256, 2) structures(float *x) {
    __shared__ Cell cells[64];
    const auto t = threadIdx.x;
    Cell &mine = cells[t];
    Cell before = {1.5f, {1, 2}};
    mine = {(float)t, {3, (int)t}};
    __syncthreads();
    before.parts[1] += cells[63 - t].parts[1];
    __syncthreads();
    x[t] = before.value + before.parts[1];
}

// fibers: threads may wait in '__syncthreads_count', or it is not known here
__global__ void counted(int *x) {
    __syncthreads();
    x[threadIdx.x] = __syncthreads_count(threadIdx.x & 1);
}

// fibers: a barrier is in a branch or loop that depends on 'threadIdx', which may differ between threads
__global__ void two_branches(int *x) {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    x[threadIdx.x]++;
}

// fibers: a barrier is in a branch or loop that depends on 'x', which may differ between threads
__global__ void from_memory(int *x) {
    for (int i = 0; i < (x[0] & 3); i++)
        __syncthreads();
}

// fibers: a barrier is in a branch or loop that depends on 'counter', which may differ between threads
__global__ void from_variable(int *x) {
    for (int i = 0; i < (counter & 3); i++)
        __syncthreads();
    x[0] = 1;
}

// fibers: a barrier is in a branch or loop that depends on 'copy', which may differ between threads
__global__ void from_copy(int *x) {
    int mine = threadIdx.x, copy = mine;
    if (copy < 1000) {
        x[0] = 5;
        __syncthreads();
    }
    x[threadIdx.x]++;
}

// fibers: a barrier is in a branch or loop that depends on 'n', which may differ between threads
__global__ void from_parameter(int *x, int n) {
    if (threadIdx.x == 3)
        n *= 2;
    if (n > 0) {
        x[0] = n;
        __syncthreads();
    }
    x[threadIdx.x] += n;
}

// fibers: a branch has nothing but a barrier
__global__ void barrier_on_request(int *x, int n) {
    x[threadIdx.x]++;
    if (n)
        __syncthreads();
    x[0] = x[threadIdx.x];
}

// fibers: there may be no barrier between two iterations of a loop
__global__ void missing_barrier(int *x, int n) {
    __shared__ int s[64];
    for (int i = 0; i < n; i++) {
        s[threadIdx.x] = i;
        __syncthreads();
        int left = s[threadIdx.x ^ 1];
        x[threadIdx.x] += left;
    }
}

// fibers: threads may wait in 'atomicCAS', or it is not known here
__global__ void lock(int *x) {
    __syncthreads();
    while (atomicCAS(x, 0, 1) != 0) {
    }
    atomicExch(x, 0);
}

// fibers: the mask of a warp operation is not that of all lanes
__global__ void other_mask(int *x, unsigned half = 0xffffffff) {
    {
        const unsigned mask = 0xffffffff;
        x[threadIdx.x] += __shfl_sync(mask, x[threadIdx.x], 1);
    }
    const unsigned mask = threadIdx.x % 32 < 16 ? half : ~half;
    __syncthreads();
    x[threadIdx.x] += __ballot_sync(mask, threadIdx.x % 3 == 0);
    if (threadIdx.x % 32 < 16)
        x[threadIdx.x] += __ballot_sync(half, threadIdx.x % 5 == 0);
}

// fibers: the mask of a warp operation is not that of all lanes
__global__ void changed_mask(int *x) {
    unsigned mask = 0xffffffff;
    __syncthreads();
    mask = threadIdx.x % 2 ? 0xaaaaaaaa : ~0xaaaaaaaa;
    x[threadIdx.x] += __reduce_add_sync(mask, threadIdx.x);
}

__device__ int total(int x, int *shared, cg::thread_block cta) {
    shared[threadIdx.x] = x;
    cg::sync(cta);
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
        cg::sync(cta);
    }
    return shared[0];
}

// split
__global__ void block_groups(int *x) {
    __shared__ int shared[64];
    auto block = cg::this_thread_block();
    const int sum = total(x[threadIdx.x], shared, block);
    block.sync();
    x[threadIdx.x] = sum + shared[threadIdx.x];
}

// split
__global__ void tile_groups(int *x) {
    auto tile = cg::tiled_partition<4>(cg::this_thread_block());
    const int left = x[threadIdx.x];
    tile.sync();
    x[threadIdx.x ^ 1] += left;
}

template <class T> struct Larger {
    static __device__ T of(T a, T b) { return a > b ? a : b; }
};
template <template <class> class F, class T> __device__ T of_warp(T x) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x = F<T>::of(x, __shfl_xor_sync(~0u, x, lanes));
    return x;
}

// split
__global__ void template_parameter(int *x) {
    __syncthreads();
    x[threadIdx.x] = of_warp<Larger, int>(x[threadIdx.x]);
}

// fibers: threads may wait in 'f', or it is not known here
template <class F> __global__ void functor(int *x, F f) {
    __syncthreads();
    x[threadIdx.x] = f(3);
}

// fibers: two variables have the same name
__global__ void hidden(int *x) {
    int i = threadIdx.x;
    __syncthreads();
    for (int k = 0; k < 3; k++) {
        int i = 5 + k;
        x[i] = 1;
        __syncthreads();
    }
    x[i + 8] = i;
}

// fibers: a variable with auto or a reference is used on both sides of a barrier
__global__ void reference(int *x) {
    int all[2] = {x[threadIdx.x], 3};
    auto &mine = all[threadIdx.x & 1];
    __syncthreads();
    x[threadIdx.x] = mine;
}

// fibers: a barrier is in a switch or an expression
__global__ void switched(int *x) {
    switch (blockIdx.x) {
    case 0:
        __syncthreads();
    }
    x[threadIdx.x] = 1;
}

// fibers: it has a volatile parameter
__global__ void volatile_parameter(volatile int *x) {
    __syncthreads();
    x[threadIdx.x] = 1;
}

__device__ void last_warp(volatile int *v, int t) {
    v[t] += v[t + 32];
    v[t] = v[t] * 3 - v[t + 16];
    for (int d = 8; d > 0; d /= 2)
        v[t] ^= v[t + d];
}

// split
__global__ void in_lockstep(int *x) {
    __shared__ int cache[128];
    volatile int *const other = cache;
    const int t = threadIdx.x;
    cache[t] = x[t];
    cache[t + 64] = t;
    __syncthreads();
    if (t < 32) {
        last_warp(cache, t);
    } else {
        x[t] += cache[t ^ 1];
    }
    __syncthreads();
    const int sum = other[t ^ 5];
    other[t] = sum;
    if (t % 3 == 0)
        other[t + 64] = 7;
    x[t] += cache[t ^ 1] + other[(t ^ 3) + 64];
}

// fibers: a barrier is in a branch or loop that depends on 't', which may differ between threads
__global__ void diverging(int *x) {
    volatile __shared__ int cache[64];
    const int t = threadIdx.x;
    cache[t] = x[t];
    if (t < 16)
        cache[t] += cache[t + 16];
    x[t] += cache[t ^ 1];
}

// split
__global__ void writes_in_step(int *x) {
    volatile __shared__ int cache[80];
    const int t = threadIdx.x % 32 + threadIdx.x / 32 * 40;
    cache[t] = 1;
    cache[t + 1] = t;
    for (int k = 0; k < 4; k++)
        cache[t + k] = t * 4 + k;
    __syncthreads();
    x[threadIdx.x] += cache[t];
}

// split
__global__ void half_warp(int *x) { // in a block of 16 by 4 threads
    volatile __shared__ int cache[64];
    cache[threadIdx.x + 16 * threadIdx.y] = 3;
    if (threadIdx.y == 0)
        cache[threadIdx.x] += cache[threadIdx.x + 8];
    __syncthreads();
    x[threadIdx.x] += cache[threadIdx.x];
}

// fibers: it changes volatile memory in an unknown way
__global__ void index_from_memory(int *x) {
    volatile __shared__ int cache[64];
    cache[threadIdx.x] = threadIdx.x ^ 1;
    cache[cache[threadIdx.x]] = 5;
    x[threadIdx.x] += cache[threadIdx.x];
}

// fibers: a loop reads volatile memory
__global__ void polling(int *x) {
    volatile __shared__ int ready[1];
    if (threadIdx.x == 40)
        ready[0] = 1;
    while (ready[0] != 1)
        ;
    x[threadIdx.x]++;
}

// fibers: it has a pointer or reference to an array or function
__global__ void rows(int *x) {
    __shared__ int cache[4][16];
    int(*row)[16] = cache;
    row[threadIdx.x / 16][threadIdx.x % 16] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = row[3 - threadIdx.x / 16][threadIdx.x % 16];
}

// split
__global__ void whole_warps(int *x) { // the conditions are those of a warp
    const int i = threadIdx.x + blockIdx.x * blockDim.x, low = i % 4;
    int sum = x[i];
    if (i < 96) {
        sum += __shfl_xor_sync(~0u, sum, 1);
        const int j = 3 * threadIdx.y;
        if (j == 0)
            sum -= __shfl_down_sync(~0u, sum, 2);
    }
    x[i] = sum + low;
}

// fibers: only some warps change 'count'
__global__ void some_warps(int *x) {
    int count = 0, v = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 32) {
        v += __shfl_xor_sync(~0u, v, 1);
        count += 5;
    }
    __syncthreads();
    x[threadIdx.x] += v + 100 * count;
}

// fibers: it has a declaration of an unknown form
__global__ void bits(int *x) {
    union {
        float f;
        int i;
    } u;
    u.i = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x ^ 1] += u.i;
}

// split
__global__ void fractions(int *x) {
    const int t = threadIdx.x;
    const float part = t / 32.0f;
    const unsigned char low = t;
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const int other = __shfl_xor_sync(~0u, t, 1);
    __syncthreads();
    auto promoted = __shfl_xor_sync(~0u, low, 1); // int
    promoted *= 300;
    x[t] += promoted;
    __syncthreads();
    if (low < 16)
        x[t] += 7;
    __syncthreads();
    x[t] += other + (int)(100 * part) + lane;
}

struct Rank {
    __device__ operator int() const { return threadIdx.x; }
};

// split
__global__ void asking_operator(int *x, Rank rank) {
    __syncthreads();
    const int mine = rank;
    __syncthreads();
    x[threadIdx.x] += mine;
}

struct Counter {
    int count;
    __device__ explicit Counter(int first) : count(first + threadIdx.x % 3) {}
    __device__ int operator()() { return ++count; }
};

// fibers: an object of a class with functions is used on both sides of a barrier
__global__ void objects(int *x) {
    Counter twice(5);
    x[threadIdx.x] += twice();
    __syncthreads();
    x[threadIdx.x ^ 1] += twice();
}

struct Plain {
    int value;
};
using Same = Plain;
__device__ Same &operator<<(Same &p, int x) {
    p.value = 3 * p.value + x;
    return p;
}

// fibers: an object of a class with functions is used on both sides of a barrier
__global__ void shifted(int *x) {
    Same p = {x[threadIdx.x]};
    __syncthreads();
    p << 5;
    __syncthreads();
    x[threadIdx.x] = p.value;
}

struct Two {
    int &a, &b;
};

// split
__global__ void bound(int *x) { // references and a pointer to local variables
    const int t = threadIdx.x;
    const int count = 4;
    int a = t, b = 2 * t, c = 5, array[count];
    int *p = &c;
    array[t % count] = t;
    __syncthreads();
    int &either = t & 1 ? a : b;
    either += 100;
    ((int &)a) += 7;
    *p += x[t ^ 1];
    __syncthreads();
    x[t] = a + 3 * b + *p + array[t % count] + (int)sizeof array;
}

// split
__global__ void braces(int *x) {
    int a = x[threadIdx.x], b = 2 * a;
    __syncthreads();
    Two two{a, b};
    two.b += 1000;
    __syncthreads();
    x[threadIdx.x ^ 1] += a + b;
}

// fibers: it has a declaration of an unknown form
__global__ void bindings(int *x) {
    Plain p = {x[threadIdx.x]};
    auto [value] = p;
    __syncthreads();
    x[threadIdx.x] = value + 1;
}

// fibers: a declaration outside of regions uses a variable of one
__global__ void declared_size(int *x) {
    int mine = threadIdx.x;
    typedef int Pair[sizeof mine / 2];
    __syncthreads();
    Pair pair = {mine, 1};
    x[threadIdx.x ^ 1] += pair[0] + pair[1];
}

__device__ int scale = 3;
__device__ int scaled(int x) {
    return scale * __shfl_xor_sync(~0u, x, 1);
}

// fibers: the function 'scaled', which has barriers, has an unknown form
__global__ void captured(int *x) { // `scale` in the function is not that of the kernel
    const int scale = 10;
    x[threadIdx.x] = scaled(x[threadIdx.x]) + scale;
}

__device__ int above(const float &limit, int x) {
    return __shfl_xor_sync(~0u, x > limit, 1);
}

// fibers: the function 'above', which has barriers, has an unknown form
__global__ void converted(int *x) {
    int limit = 10;
    x[threadIdx.x] += above(limit, x[threadIdx.x]);
}

__device__ int kept(bool first, int value) {
    __shared__ int one, other;
    if (first && threadIdx.x == 7)
        one = value, other = 2 * value;
    __syncthreads();
    return one + other;
}
template <class T> __device__ T from_zero(T x) {
    T sum = T(0);
    sum += __shfl_xor_sync(~0u, x, 1);
    return sum;
}

// split
__global__ void called_twice(int *x) {
    unsigned int y = threadIdx.x;
    const int one = kept(true, threadIdx.x);
    y += from_zero(y);
    x[threadIdx.x] = y + one + kept(false, 5);
}

__device__ int defined_below(int x);

// fibers: the function 'defined_below', which has barriers, has an unknown form
__global__ void calls_below(int *x) {
    x[threadIdx.x] = defined_below(x[threadIdx.x]);
}

constexpr int lanes = 16;
__device__ int defined_below(int x) {
    return x + __shfl_xor_sync(~0u, x, lanes);
}

struct Parts {
    int of[2][3], *all;
};
typedef int Three[3];
__device__ void triple(int *x) {
    x[0] *= 3;
}

// split
__global__ void decayed(int *x) { // arrays that become pointers, and are seen by later regions through these
    int rows[2][3], *now = rows[0], *next = rows[1], other[2] = {5, 6};
    Parts parts = {{{7, 8, 9}, {}}, other};
    const Three weights = {1, 2, (int)threadIdx.x};
    for (int i = 0; i < 3; i++)
        now[i] = x[threadIdx.x] + i;
    __syncthreads();
    triple(parts.of[0]);
    parts.all[1] += now[1];
    for (int i = 0; i < 3; i++)
        next[i] = now[2 - i] + i;
    __syncthreads();
    x[threadIdx.x] = next[0] + 5 * next[2] + parts.of[0][0] + parts.all[1] + weights[threadIdx.x % 3];
}

// split
__global__ void counts_down(int *x) { // a thread whose loop has ended does not evaluate its condition again
    int sum = 0, i = threadIdx.x, left = threadIdx.x % 3;
    __syncthreads();
    while (left--) {
        sum += x[i];
        i += blockDim.x;
    }
    __syncthreads();
    x[threadIdx.x] = sum + left;
}

struct Exchange {
    __device__ void operator()(int &a, int &b) const { a ^= b, b ^= a, a ^= b; }
};

// split
__global__ void called_object(int *x) {
    int a = x[threadIdx.x], b = 5;
    __syncthreads();
    Exchange()(a, b);
    __syncthreads();
    x[threadIdx.x] = a + 3 * b;
}

struct Seven {
    int value = 7;
};
template <int N> struct Numbers { int first[N]; };

// split
template <class T> __global__ void constructed(int *x) { // without an initial value; with a size
    const int count = 2;
    T seven;
    Numbers<count> numbers;
    numbers.first[1] = x[threadIdx.x];
    __syncthreads();
    seven.value += numbers.first[1];
    __syncthreads();
    x[threadIdx.x ^ 1] = seven.value;
}

// fibers: it has a statement of an unknown form
__global__ void attribute(int *x, int n) {
    if (n > 0) [[likely]] {
        x[threadIdx.x]++;
    }
    int mine = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x ^ 1] += mine;
}

// split
__global__ void returned_warp(int *x) {
    if (threadIdx.x >= 32)
        return;
    int v = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 64) {
        const int factor = 2 * gridDim.x;
        for (int k = 1; k < 32; k *= factor)
            v += __shfl_xor_sync(~0u, v, k);
    }
    __syncthreads();
    x[threadIdx.x] = v;
}

template <class T> __device__ T halves(T x) {
    for (int lanes = 1; lanes < 3; lanes++)
        x += __shfl_xor_sync(~0u, x, lanes) / 2;
    return x;
}

// split
__global__ void other_scope(int *x) { // the argument is a float
    float s = x[threadIdx.x] * 0.3f;
    for (int s = 0; s < 2; s++)
        x[threadIdx.x] += s;
    x[threadIdx.x] += (int)(10 * halves(s));
}

__device__ void added(int &x, int y) {
    for (int x = 0; x < 3; x++)
        y += x;
    x += __shfl_xor_sync(~0u, y, 1);
}

// fibers: the function 'added', which has barriers, has an unknown form
__global__ void hidden_parameter(int *x) {
    int mine = x[threadIdx.x];
    added(mine, mine);
    x[threadIdx.x] = mine;
}

static int *data;

static void show(const char *name) {
    cudaError_t error = cudaDeviceSynchronize();
    unsigned hash = 2166136261u;
    for (int i = 0; i < 512; i++) {
        hash = (hash ^ data[i]) * 16777619u;
        data[i] = i * 7 % 31;
    }
    printf("%s %u %s\n", name, hash, cudaGetErrorString(error));
}

// Launches these kernels, each with one block of 64 threads.
#define SHOW(...) show_each(#__VA_ARGS__, {__VA_ARGS__})
static void show_each(const char *names, std::initializer_list<void (*)(int *)> kernels) {
    std::istringstream list(names);
    std::string name;
    for (const auto kernel : kernels) {
        list >> name;
        kernel<<<1, 64>>>(data), show(name.c_str());
    }
}

int main() {
    cudaMallocManaged(&data, 512 * sizeof(int));
    show("start");
    for (int n : {0, 1, 100, 150})
        early_return<<<3, 50, 50 * sizeof(int)>>>(data, n), show("early_return");
    structures<<<2, 64>>>((float *)data), show("structures");
    other_mask<<<1, 64>>>(data, 0xffff), show("other_mask");
    strides<<<2, 50>>>(data, 301), show("strides");
    functor<<<1, 64>>>(data, [] __device__(int x) { return x; }), show("functor");
    half_warp<<<1, dim3(16, 4)>>>(data), show("half_warp");
    whole_warps<<<2, 64>>>(data), show("whole_warps");
    fractions<<<1, 512>>>(data), show("fractions");
    asking_operator<<<1, 64>>>(data, Rank()), show("asking_operator");
    attribute<<<1, 64>>>(data, 1), show("attribute");
    SHOW(changed_mask, block_groups, tile_groups, template_parameter, in_lockstep, diverging, polling,
         writes_in_step, index_from_memory, rows, some_warps, bits, objects, shifted, bound, braces, bindings,
         declared_size, captured, converted, called_twice, calls_below, decayed, counts_down, called_object,
         constructed<Seven>, returned_warp, other_scope, hidden_parameter);
    return 0;
}
