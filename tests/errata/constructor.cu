// SPDX-License-Identifier: MIT
// 4.2.2: a kernel makes an object whose constructor is a function of the host.
struct Number {
    float value;
    Number(float v) : value(v) {}
};

__global__ void kernel(float *out) {
    *out = Number(2).value;
}
