// SPDX-License-Identifier: MIT
// Mistakes that a compiler refuses: cucc -c -DVOID_RESULT refused.cu. Each case is between #ifdef and #endif.
#ifdef VOID_RESULT // 3.2.3: cudaMalloc is taken for a function that returns a pointer
void *dev = cudaMalloc(&dev, 4);
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

#ifdef NO_OFFSET // 11.3: a member is used that the struct does not have
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

#ifdef SEGMENTED // TACC lab: a scan of segments, by a name that Thrust does not have
#include <thrust/scan.h>
void scan(int *keys, int *values) {
    thrust::segmented_inclusive_scan(keys, keys + 8, values, values);
}
#endif
