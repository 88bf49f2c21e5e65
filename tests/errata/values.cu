// SPDX-License-Identifier: MIT
// What the texts compute or claim in passing, computed.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>

__global__ void nothing() {}

int main() {
    printf("4.2.2 magnitude %.1f\n", sqrt(1000.0));
    printf("5.2.1 blocks %d\n", (1000 + 127) / 128);
    printf("5.2.2 threads above %d\n", 8 * 16 + 5);
    nothing<<<0, 1>>>();
    printf("R grid of size 0 %s\n", cudaGetErrorName(cudaGetLastError()));
    printf("C whole tiles of 1000 columns %d\n", 1000 / 32);
    unsigned short half = 0.5f, whole = 1.0f;
    printf("N fractions in an unsigned short %d %d\n", half, whole);
    int digits[] = {5, 213, 55, 21, 430, 31, 20}, tens = 0;
    for (int i = 0; i < 7; i++)
        tens += digits[i] / 10 % 10 == 3;
    printf("N numbers whose tens are 3 %d\n", tens);
    printf("N bit 0 of 3: > 1 %d, != 0 %d\n", (3 & 1) > 1, (3 & 1) != 0);
    printf("T peak %.1f GB/s\n", 800e6 * 64 * 2 / 1e9);
    printf("T rate %.2f GB/s\n", 4 * (1 << 22) / 0.2268e-3 / 1e9);
    int numbers[] = {-3, -1, -2}, most = 0;
    for (int i = 0; i < 3; i++)
        most = numbers[i] > most ? numbers[i] : most;
    printf("T maximum from 0 %d\n", most);
    printf("T largest quotient %.1f\n", RAND_MAX / (RAND_MAX + 1.0f));
}
