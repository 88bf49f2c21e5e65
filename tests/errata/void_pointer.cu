// SPDX-License-Identifier: MIT
// CSInParallel: the address of the pointer, cast to void * where void ** is needed.
int main() {
    int *dev;
    cudaMalloc((void *)&dev, sizeof(int));
}
