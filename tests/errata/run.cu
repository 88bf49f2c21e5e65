// SPDX-License-Identifier: MIT
// Mistakes that compile: cucc run.cu -o run; ./run CASE. docs/errata.md says what each of them does.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ended(void) { // the status of a case whose kernel may fail
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    return error != cudaSuccess;
}

// 4.2.1: squares, as of the elements of a vector of 50,000
static int squares(void) {
    for (volatile int i = 46340; i <= 46341; i++)
        printf("%d * %d = %d\n", i, i, i * i);
    return 0;
}

// 5.2.1: three vectors that are local variables of main. Class notes: two arrays of a sort.
static int stack(void) {
    enum { ELEMENTS = 700000 };
    volatile int a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];
    a[0] = 2, b[0] = 7, c[0] = a[0] + b[0];
    printf("%d\n", c[0]);
    return 0;
}

// 6.2.3: a copy to a symbol that is no constant
__device__ int in_global_memory;
static int symbol(void) {
    int sent = 7, received = 0;
    cudaMemcpyToSymbol(in_global_memory, &sent, sizeof(int));
    cudaMemcpyFromSymbol(&received, in_global_memory, sizeof(int));
    printf("%d\n", received);
    return 0;
}

// 7.3, 10.4, and Rauber and Rünger: a buffer on the host, one on the device and an event, which the
// clean-up forgets
static int leak(void) {
    float *dev_inSrc, *output_bitmap;
    volatile float *part_c = (volatile float *)malloc(32 * sizeof(float));
    part_c[0] = 0;
    cudaEvent_t start;
    cudaEventCreate(&start);
    cudaMalloc(&dev_inSrc, 4096);
    cudaMalloc(&output_bitmap, 4096);
    cudaFree(dev_inSrc);
    return 0;
}

// 8.3: a function with a pointer to pixels, called as one with a pointer to void
static void frame(unsigned char *pixels, int ticks) {
    pixels[0] = ticks;
}
static int cast(void) {
    unsigned char pixel;
    void (*called)(void *, int) = (void (*)(void *, int))frame;
    called(&pixel, 7);
    printf("%d\n", pixel);
    return 0;
}

// 10.2: the first copy reads host memory, the second device memory that nothing has written
__global__ void read(const int *in, int *out) {
    *out = *in;
}
static int unset(void) {
    int *host = (int *)malloc(sizeof(int)), *dev;
    cudaMalloc(&dev, 2 * sizeof(int));
    read<<<1, 1>>>(dev, dev + 1); // what a copy to the host would read
    cudaMemcpy(dev, host, sizeof(int), cudaMemcpyHostToDevice);
    if (*host == 1)
        puts("1");
    free(host);
    cudaFree(dev);
    return 0;
}

// 11.2: the addresses of mapped memory, plain and write-combined, on the host and on the device. 11.4: the
// first call is cudaHostAlloc, not cudaSetDevice.
static int addresses(void) {
    for (unsigned more : {0, cudaHostAllocWriteCombined}) {
        float *host, *dev;
        cudaHostAlloc(&host, 4, cudaHostAllocMapped | more);
        cudaHostGetDevicePointer(&dev, host, 0);
        puts(host == dev ? "equal" : "different");
        cudaFreeHost(host);
    }
    return 0;
}

// 12.2.6: an index beyond one array leads into another
__global__ void read_at(const int *a, long long i, int *out) {
    *out = a[i];
}
static int neighbour(void) {
    int *a, *b, seven = 7, got = 0;
    cudaMalloc(&a, 1024);
    cudaMalloc(&b, 1024);
    cudaMemcpy(b, &seven, sizeof(int), cudaMemcpyHostToDevice);
    read_at<<<1, 1>>>(a, b - a, b + 1);
    int status = ended();
    cudaMemcpy(&got, b + 1, sizeof(int), cudaMemcpyDeviceToHost);
    printf("a has 256 elements, and one beyond them is %d\n", got);
    cudaFree(a);
    cudaFree(b);
    return status;
}

// A.1.1: a lock is released by storing 1, the value of a lock that is taken
__global__ void take_and_keep(int *mutex, int *count) {
    while (atomicCAS(mutex, 0, 1) != 0)
        ;
    ++*count;
    atomicExch(mutex, 1);
}
static int unlock(void) {
    int *state;
    cudaMalloc(&state, 2 * sizeof(int));
    cudaMemset(state, 0, 2 * sizeof(int));
    take_and_keep<<<2, 1>>>(state, state + 1);
    return ended();
}

// A.1.1: a lock without memory fences; the sum is read and written by its owner only
__global__ void count_alone(int *mutex, int *sum) {
    for (int i = 0; i < 100; i++) {
        while (atomicCAS(mutex, 0, 1) != 0)
            ;
        ++*sum;
        atomicExch(mutex, 0);
    }
}
static int fence(void) {
    const int blocks = 1000;
    int *state, sum = 0;
    cudaMalloc(&state, 2 * sizeof(int));
    cudaMemset(state, 0, 2 * sizeof(int));
    count_alone<<<blocks, 1>>>(state, state + 1);
    int status = ended();
    cudaMemcpy(&sum, state + 1, sizeof(int), cudaMemcpyDeviceToHost);
    printf("%d of %d\n", sum, 100 * blocks);
    cudaFree(state);
    return status;
}

// A.1.2: a structure whose destructor frees device memory is passed to a kernel by value
static cudaError_t freed;
struct Owner {
    int *mutex;
    Owner() { cudaMalloc(&mutex, sizeof(int)); }
    ~Owner() {
        freed = cudaFree(mutex);
        printf("cudaFree: %s\n", cudaGetErrorName(freed));
    }
};
__global__ void take(Owner lock) {
    *lock.mutex = 1;
}
static int freed_twice(void) {
    {
        Owner lock;
        take<<<1, 1>>>(lock);
        puts("the launch has returned");
    }
    return freed != cudaSuccess;
}

// A.2.4: as many bytes for the pointers of the table as for its keys of 4 bytes
__global__ void take_values(void **values, void **pool, int elements) {
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < elements; i += blockDim.x * gridDim.x)
        pool[i] = values[i];
}
static int values(void) {
    int bytes = 100 << 20, elements = bytes / 4;
    void **dev_values, **pool;
    cudaMalloc(&dev_values, bytes);
    cudaMalloc(&pool, elements * sizeof(void *));
    cudaMemset(dev_values, 0, bytes);
    take_values<<<60, 256>>>(dev_values, pool, elements);
    int status = ended();
    cudaFree(dev_values);
    cudaFree(pool);
    return status;
}

// Rauber and Rünger: the host adds numbers that it reads through a pointer to device memory
static int host_read(void) {
    float parts[4] = {1, 2, 3, 4}, *dev_parts, sum = 0;
    cudaMalloc(&dev_parts, sizeof(parts));
    cudaMemcpy(dev_parts, parts, sizeof(parts), cudaMemcpyHostToDevice);
    for (int i = 0; i < 4; i++)
        sum += dev_parts[i];
    printf("%g\n", sum);
    cudaFree(dev_parts);
    return 0;
}

// Class notes: the array of a texture is freed while the texture still uses it
static int freed_first(void) {
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaResourceDesc resource = {};
    cudaTextureDesc texture = {};
    cudaTextureObject_t tex;
    resource.resType = cudaResourceTypeArray;
    cudaMallocArray(&resource.res.array.array, &desc, 10);
    cudaCreateTextureObject(&tex, &resource, &texture, NULL);
    cudaError_t freed = cudaFreeArray(resource.res.array.array);
    printf("%s, %s\n", cudaGetErrorName(freed), cudaGetErrorName(cudaDestroyTextureObject(tex)));
    return 0;
}

// TACC lab: the last warp adds, in blocks of fewer than 64 threads
__global__ void last_warp(int *out) {
    extern __shared__ int s[];
    int t = threadIdx.x;
    s[t] = 1;
    for (int step = 32; step > 0; step /= 2) {
        int sum = s[t] + s[t + step];
        __syncwarp();
        s[t] = sum;
        __syncwarp();
    }
    if (t == 0)
        *out = s[0];
}
static int small_block(void) {
    int *dev_sum, sum;
    cudaMalloc(&dev_sum, sizeof(int));
    last_warp<<<1, 32, 32 * sizeof(int)>>>(dev_sum);
    int status = ended();
    cudaMemcpy(&sum, dev_sum, sizeof(int), cudaMemcpyDeviceToHost);
    printf("%d ones are %d\n", 32, sum);
    cudaFree(dev_sum);
    return status;
}

// TACC lab: the sum of 1000 random numbers
static int random_sum(void) {
    int sum = 0;
    double exact = 0;
    for (int i = 0; i < 1000; i++) {
        int number = rand();
        sum += number;
        exact += number;
    }
    printf("%d for %.0f\n", sum, exact);
    return 0;
}

#define CASE(name)                                                                                           \
    { #name, name }
static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {CASE(squares),   CASE(stack),       CASE(symbol),      CASE(leak),
             CASE(cast),      CASE(unset),       CASE(addresses),   CASE(neighbour),
             CASE(unlock),    CASE(fence),       CASE(freed_twice), CASE(values),
             CASE(host_read), CASE(freed_first), CASE(small_block), CASE(random_sum)};

int main(int argc, char **argv) {
    for (auto &one : cases)
        if (argc == 2 && strcmp(argv[1], one.name) == 0)
            return one.run();
    return 64;
}
