// SPDX-License-Identifier: MIT
// A.1.1: a lock that is released by storing 1, the value of a lock that is taken.
__global__ void kernel(int *mutex, int *count) {
    while (atomicCAS(mutex, 0, 1) != 0)
        ;
    ++*count;
    atomicExch(mutex, 1);
}

int main() {
    int *state;
    cudaMalloc(&state, 2 * sizeof(int));
    cudaMemset(state, 0, 2 * sizeof(int));
    kernel<<<2, 1>>>(state, state + 1);
    return cudaDeviceSynchronize() != cudaSuccess;
}
