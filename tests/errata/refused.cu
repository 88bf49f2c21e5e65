// SPDX-License-Identifier: MIT
// Mistakes that a compiler refuses: cucc -c -DVOID_RESULT refused.cu. Each case is between #ifdef and #endif.
#ifdef VOID_RESULT // 3.2.3: cudaMalloc is taken for a function that returns a pointer
void *dev = cudaMalloc(&dev, 4);
#endif

#ifdef FORMATS // 3.3, A.2: conversions of printf that do not fit their arguments; g++ checks them if it is
               // asked to
#include <stdio.h>
#pragma GCC diagnostic error "-Wformat"
#pragma GCC diagnostic error "-Wformat-signedness"
void print(size_t bytes, void *value) {
    printf("%ld\n", bytes);
    printf("%d\n", value);
}
#endif

#ifdef NO_INDEX // 4.2.1: the counter of a loop is not declared
void fill(int *a, int n) {
    for (i = 0; i < n; i++)
        a[i] = i;
}
#endif

#ifdef CONSTRUCTOR // 4.2.2: a kernel makes an object whose constructor is a function of the host
struct Number {
    float value;
    Number(float v) : value(v) {}
};
__global__ void kernel(float *out) {
    *out = Number(2).value;
}
#endif

#ifdef HOST_POINTER // 6.2.2: a kernel reads a pointer that is a variable of the host
float *s;
__global__ void kernel(float *out) {
    *out = s[0];
}
#endif

#ifdef TOO_MANY // 6.3.1: a kernel of one parameter is launched with two arguments
__global__ void draw(float *ptr) {
    *ptr = 1;
}
void launch(float *s, float *dev_bitmap) {
    draw<<<1, 1>>>(s, dev_bitmap);
}
#endif

#ifdef IDLE // 8.3.1: a function of GLUT under a wrong name
#include <GL/glut.h>
void frame() {}
void animate() {
    glutIdleFunction(frame);
}
#endif

#ifdef NO_OFFSET // 11.4: a member is used that the struct of 11.3 does not have
struct Part {
    int size;
};
int end_of(Part part) {
    return part.offset + part.size;
}
#endif

#ifdef HASHED_VALUE // A.2.2: a pointer to the value is hashed where the key is meant
static size_t bucket_of(size_t key) {
    return key % 1024;
}
bool belongs(void *value, size_t bucket) {
    return bucket_of(value) == bucket;
}
#endif

#ifdef MISSPELT // Rauber and Rünger: three names of CUDA with letters exchanged, missing or left out
__global__ void square(int *out) {
    unit3 grid;
    __synthreads();
    out[blockId.x] = 1;
}
#endif

#ifdef VOID_POINTER // CSInParallel: the address of the pointer, cast to void * where void ** is needed
void allocate(int *dev) {
    cudaMalloc((void *)&dev, sizeof(int));
}
#endif

#ifdef DIM_CALL // CSInParallel: blockDim is called a function
__global__ void kernel(int *out) {
    *out = blockDim().x;
}
#endif

#ifdef CAPITAL // class notes: the template of texture references, with a capital letter
Texture<float> tex;
#endif

#ifdef NO_TEMPLATE // TACC lab: a function with a template parameter is called without its template argument
template <unsigned int blockSize> __device__ void warpReduce(volatile int *sdata, int tid) {
    if (blockSize >= 64)
        sdata[tid] += sdata[tid + 32];
}
__global__ void reduce(int *out) {
    __shared__ int sdata[64];
    warpReduce(sdata, threadIdx.x);
}
#endif

#ifdef AMAX // TACC lab: ISAMAX among the functions of BLAS for double
#include <cublas_v2.h>
void largest(cublasHandle_t handle, const double *x, int *index) {
    cublasIsamax(handle, 8, x, 1, index);
}
#endif

#ifdef SEGMENTED // TACC lab: a scan of segments, by a name that Thrust does not have
#include <thrust/scan.h>
void scan(int *keys, int *values) {
    thrust::segmented_inclusive_scan(keys, keys + 8, values, values);
}
#endif
