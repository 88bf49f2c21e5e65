// SPDX-License-Identifier: MIT
// Inline PTX: the instructions and registers that the translator turns into C++.
#include <cuda_fp16.h>
#include "device.h"

__managed__ unsigned words[64];
__managed__ unsigned long long longs[16];
__managed__ float floats[16];

// After a kernel: words[i] and those that follow
static void expect(int i, std::initializer_list<unsigned> expected) {
    OK(cudaDeviceSynchronize());
    for (unsigned word : expected) {
        if (!EXPECT(words[i] == word))
            fprintf(stderr, "  %d: %u, not %u\n", i, words[i], word);
        i++;
    }
}

__device__ __forceinline__ unsigned lane_id() {
    unsigned x;
    asm("mov.u32 %0, %%laneid;" : "=r"(x));
    return x;
}

__global__ void registers(int *good) {
    unsigned lt, le, eq, ge, gt, warp, tid;
    asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm volatile("mov.u32 %0, %%lanemask_le;" : "=r"(le));
    asm volatile("mov.u32 %0, %%lanemask_eq;\n\tmov.u32 %1, %%lanemask_ge;" : "=r"(eq), "=r"(ge));
    asm volatile("mov.u32 %0, %%lanemask_gt;" : "=r"(gt)::"memory");
    asm("mov.u32 %0, %%warpid; mov.u32 %1, %%tid.x;" : "=r"(warp), "=r"(tid));
    good[threadIdx.x] = lane_id() == threadIdx.x % 32 && eq == 1u << lane_id() && lt == eq - 1 &&
                        le == (lt | eq) && ge == ~lt && gt == ~le && warp == threadIdx.x / 32 &&
                        tid == threadIdx.x;
}

TEST(special_registers) {
    EXPECT(good(registers, 64));
}

__global__ void clocks() {
    long long start, end;
    unsigned low, sm, sms;
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(start));
    asm volatile("mov.u32 %0, %%clock;" : "=r"(low));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    asm volatile("nanosleep.u32 1000;");
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(end)::"memory");
    const clock_t first = clock(); // counts as clock64()
    const long long after = clock64();
    __nanosleep(200000);
    const long long ticks = clock64() - after;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    asm("mov.u32 %0, %%nsmid;" : "=r"(sms));
    words[0] = end > start && ns > 1000000000 && sm < sms && ticks > 0 && clock() - first >= ticks;
    words[1] = low;
}

TEST(clocks_run) {
    clocks<<<1, 1>>>();
    EXPECT(cudaDeviceSynchronize() == cudaSuccess && words[0] == 1);
}

__global__ void memory(unsigned *p, float4 *f, const double *d) {
    unsigned a, b;
    float4 v;
    double x;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(a) : "l"(p));
    asm volatile("ld.volatile.global.s32 %0, [%1+4];" : "=r"(b) : "l"(p) : "memory");
    asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(f));
    asm volatile("ld.global.nc.L1::no_allocate.f64 %0, [%1];" : "=d"(x) : "l"(d));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(p + 2), "r"(a + b + (unsigned)x) : "memory");
    asm volatile("st.global.v2.f32 [%0 + 8], {%1, %2};" ::"l"(f + 1), "f"(v.w), "f"(v.x + 1));
    asm volatile("membar.gl; fence.acq_rel.gpu;" ::: "memory");
    asm volatile("bar.sync 0;");
    asm volatile("" : "+f"(v.x)::"memory");
}

TEST(loads_and_stores) {
    float4 *const f = managed<float4>(2);
    double *const d = managed<double>();
    f[0] = make_float4(1, 2, 3, 4);
    *d = 100;
    words[0] = 5, words[1] = 6;
    memory<<<1, 2>>>(words, f, d);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess && words[2] == 111);
    EXPECT(f[1].z == 4 && f[1].w == 2);
}

__device__ unsigned char loaded(unsigned char *p, int form) {
    unsigned short x;
    if (form == 0)
        asm volatile("ld.acquire.sys.global.u8 %0, [%1];" : "=h"(x) : "l"(p) : "memory");
    else if (form == 1)
        asm volatile("ld.relaxed.gpu.global.u8 %0, [%1];" : "=h"(x) : "l"(p) : "memory");
    else
        asm volatile("ld.volatile.global.u8 %0, [%1];" : "=h"(x) : "l"(p) : "memory");
    return (unsigned char)x;
}

// Thread 0 waits for thread 1, whatever runs first.
__global__ void wait_for_other(unsigned char *flags, int form) {
    const int t = threadIdx.x;
    if (t == 0)
        while (loaded(&flags[1], form) == 0)
            ;
    asm volatile("st.release.sys.global.u8 [%0], %1;" ::"l"(&flags[t]), "h"((unsigned short)1) : "memory");
    if (t == 1)
        while (loaded(&flags[0], form) == 0)
            ;
}

TEST(a_loop_that_polls) {
    const std::vector<unsigned char> set(2, 1);
    for (int form = 0; form < 3; ++form)
        EXPECT(WRITTEN(unsigned char, 2, wait_for_other<<<1, 2>>>(out, form)) == set);
}

// ---- instructions of one thread: a row each ----

__managed__ int wrong;

template <class T> __device__ void compare(T is, T expected, const char *ptx) {
    if (!(is == expected)) {
        printf("%s: %.9g (%#llx), not %.9g\n", ptx, (double)is, (unsigned long long)is, (double)expected);
        atomicAdd(&wrong, 1);
    }
}
#define ROW(T, c, expected, ptx, ...)                                                                        \
    {                                                                                                        \
        T is;                                                                                                \
        asm volatile(ptx : "=" c(is) : __VA_ARGS__ : "memory");                                              \
        compare<T>(is, expected, ptx);                                                                       \
    }
#define R(expected, ptx, ...) ROW(unsigned, "r", (unsigned)(expected), ptx, __VA_ARGS__)
#define L(expected, ptx, ...) ROW(unsigned long long, "l", (unsigned long long)(expected), ptx, __VA_ARGS__)
#define H(expected, ptx, ...) ROW(unsigned short, "h", expected, ptx, __VA_ARGS__)
#define F(expected, ptx, ...) ROW(float, "f", expected, ptx, __VA_ARGS__)
#define D(expected, ptx, ...) ROW(double, "d", expected, ptx, __VA_ARGS__)

static void rows_hold(void (*kernel)()) {
    wrong = 0;
    kernel<<<1, 1>>>();
    EXPECT(cudaDeviceSynchronize() == cudaSuccess && wrong == 0);
}

// clang-format off
__global__ void integers() {
    const unsigned a = 0xdeadbeef, b = (unsigned)-6, h = 0x80000000, z = 0;
    const unsigned long long c = 1ull << 40, square = (unsigned long long)a * a;
    R(14, "bfind.u32 %0, %1;", "r"(0x5000)) R(~0u, "bfind.u32 %0, %1;", "r"(z))
    R(3, "bfind.s32 %0, %1;", "r"(-9)) R(17, "bfind.shiftamt.u32 %0, %1;", "r"(0x5000))
    R(40, "bfind.s64 %0, %1;", "l"(c)) R(~0u, "bfind.shiftamt.s32 %0, %1;", "r"(-1))
    R(17, "clz.b32 %0, %1;", "r"(0x5000)) R(32, "clz.b32 %0, %1;", "r"(z)) R(23, "clz.b64 %0, %1;", "l"(c))
    R(0xf77db57b, "brev.b32 %0, %1;", "r"(a)) L(1 << 23, "brev.b64 %0, %1;", "l"(c))
    R(61, "popc.b64 %0, %1;", "l"(~0ull >> 3)) R(0xee, "bfe.u32 %0, %1, 4, 8;", "r"(a))
    R(b, "bfe.s32 %0, %1, 0, 4;", "r"(b)) R(0xdeadb5ef, "bfi.b32 %0, %1, %2, 8, 4;", "r"(0xf5), "r"(a))
    R(a ^ b ^ 0x0ff0, "lop3.b32 %0, %1, %2, %3, 0x96;", "r"(a), "r"(b), "r"(0x0ff0))
    R((a & b) | (~a & 7), "lop3.b32 %0, %1, %2, %3, 0xca;", "r"(a), "r"(b), "r"(7))
    R(0xefbeadde, "prmt.b32 %0, %1, %2, 0x0123;", "r"(a), "r"(z))
    R(0x11ff11ff, "prmt.b32 %0, %1, %2, %3;", "r"(0x80), "r"(0x11), "r"(0x4848))
    R(a * 10 + 3, "mad.lo.u32 %0, %1, %2, %3;", "r"(a), "r"(10), "r"(3))
    R(square >> 32, "mul.hi.u32 %0, %1, %2;", "r"(a), "r"(a))
    R(0xadbeef * 10u, "mul24.lo.u32 %0, %1, %2;", "r"(a), "r"(10))
    R(7 / 3 + 7 % 3, "{.reg .u32 q; div.u32 q, %1, 3; rem.u32 %0, %1, 3; add.u32 %0, %0, q;}", "r"(7))
    R(14, "sad.s32 %0, %1, 3, 5;", "r"(b)) L(square, "mul.wide.u32 %0, %1, %2;", "r"(a), "r"(a))
    L(-18, "mul.wide.s32 %0, %1, %2;", "r"(b), "r"(3))
    L(2ull * a + c, "mad.wide.u32 %0, %1, %2, %3;", "r"(a), "r"(2), "l"(c))
    R(0x345678de, "shf.l.wrap.b32 %0, %1, %2, 8;", "r"(a), "r"(0x12345678))
    R(-3, "shr.s32 %0, %1, 1;", "r"(b)) R(0, "shr.u32 %0, %1, 40;", "r"(a))
    R(b, "min.s32 %0, %1, %2;", "r"(b), "r"(3)) R(b, "max.u32 %0, %1, %2;", "r"(b), "r"(3))
    R(~a, "not.b32 %0, %1;", "r"(a)) R(1, "activemask.b32 %0;") R(1, "mov.u32 %0, %ntid.x;")
    R(11, "dp4a.s32.s32 %0, %1, %2, %3;", "r"(0x0102ff04), "r"(0x01010101), "r"(5))
    // Carries: in one statement, and from one statement to the next
    L(0x900000001, "{.reg .u32 l, h; add.cc.u32 l, %1, 2; addc.u32 h, 4, 4; mov.b64 %0, {l, h};}", "r"(~0u))
    L(0x4ffffffff, "{.reg .u32 l, h; sub.cc.u32 l, 1, 2; subc.u32 h, 5, 0; mov.b64 %0, {l, h};}")
    R(14, "{.reg .u32 l; mad.lo.cc.u32 l, %1, 3, %1; madc.hi.cc.u32 %0, %1, 13, 7;}", "r"(h))
    R(14, "{.reg .u32 l; mad.hi.cc.u32 l, %1, 2, %2; madc.lo.u32 %0, %1, 4, 13;}", "r"(h), "r"(~0u))
    asm volatile("add.cc.u32 %0, %1, 1;" : "=r"(words[0]) : "r"(~0u));
    R(6, "addc.u32 %0, %1, 5;", "r"(z))
    const unsigned x = 0xff80ff7f, y = 0x017f0201;
    R(254 + 1 + 253 + 126 + 9, "vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;", "r"(x), "r"(y), "r"(9))
}

__global__ void numbers() {
    F(6, "fma.rn.f32 %0, %1, %1, %1;", "f"(2.f)) F(.5f, "rcp.approx.ftz.f32 %0, %1;", "f"(2.f))
    F(4, "ex2.approx.f32 %0, %1;", "f"(2.f)) F(2.5f, "div.rn.f32 %0, %1, %2;", "f"(5.f), "f"(2.f))
    D(2.5, "add.rn.f64 %0, %1, %1;", "d"(1.25)) D(-2, "mov.f64 %0, 0dC000000000000000;")
    F(3, "add.f32 %0, %1, 0f3F800000;", "f"(2.f)) R(0x40000000, "mov.b32 %0, %1;", "f"(2.f))
    asm volatile("// only a comment");
    F(-2, "neg.f32 %0, %1; // a comment\n\t/* another one; */", "f"(2.f))
}

__global__ void conversions() {
    const float nan = __int_as_float(0x7fffffff);
    R(2, "cvt.rni.s32.f32 %0, %1;", "f"(2.5f)) R(-2, "cvt.rzi.s32.f32 %0, %1;", "f"(-2.9f))
    R(-3, "cvt.rmi.s32.f32 %0, %1;", "f"(-2.1f)) R(-2, "cvt.rpi.ftz.s32.f32 %0, %1;", "f"(-2.9f))
    R(0x7fffffff, "cvt.rzi.s32.f32 %0, %1;", "f"(3e9f)) R(0, "cvt.rzi.u32.f32 %0, %1;", "f"(-1.f))
    R(0, "cvt.rzi.s32.f32 %0, %1;", "f"(nan)) R(255, "cvt.rni.sat.u8.f32 %0, %1;", "f"(300.f))
    R(-128, "cvt.rni.sat.s8.f32 %0, %1;", "f"(-300.f)) L(1ull << 63, "cvt.rzi.s64.f64 %0, %1;", "d"(-1e30))
    L(~0ull, "cvt.rpi.u64.f64 %0, %1;", "d"(1e30)) R(0xc8, "cvt.u32.u8 %0, %1;", "r"(0x1c8))
    R(-56, "cvt.s32.s8 %0, %1;", "r"(0x1c8)) L(-6, "cvt.s64.s32 %0, %1;", "r"(-6))
    R(127, "cvt.sat.s8.s32 %0, %1;", "r"(300)) R(0, "cvt.sat.u16.s32 %0, %1;", "r"(-300))
    R(0x9abcdef0, "cvt.u32.u64 %0, %1;", "l"(0x123456789abcdef0))
    F(16777216, "cvt.rn.f32.s32 %0, %1;", "r"(16777217)) F(16777218, "cvt.rp.f32.s32 %0, %1;", "r"(16777217))
    F(-16777218, "cvt.rm.f32.s32 %0, %1;", "r"(-16777217))
    F(-16777216, "cvt.rz.f32.s32 %0, %1;", "r"(-16777217))
    D(0x1p63, "cvt.rz.f64.u64 %0, %1;", "l"((1ull << 63) + 1))
    F(0x1.fffffep127f, "cvt.rz.f32.f64 %0, %1;", "d"(1e300)) F(1, "cvt.rm.f32.f64 %0, %1;", "d"(1 + 1e-12))
    F(0x1.000002p0f, "cvt.rp.f32.f64 %0, %1;", "d"(1 + 1e-12)) F(1, "cvt.sat.f32.f32 %0, %1;", "f"(1.5f))
    F(0, "cvt.sat.f32.f32 %0, %1;", "f"(nan)) F(2, "cvt.rni.f32.f32 %0, %1;", "f"(2.5f))
    F(3, "cvt.rpi.f32.f32 %0, %1;", "f"(2.1f)) D(1.25, "cvt.f64.f32 %0, %1;", "f"(1.25f))
    H(0x3c00, "cvt.rn.f16.f32 %0, %1;", "f"(1.0001f)) H(0xbc01, "cvt.rn.f16.f32 %0, %1;", "f"(-1.001f))
    H(0x3c00, "cvt.rz.f16.f32 %0, %1;", "f"(1.0009f))
    F(1.5f, "cvt.f32.f16 %0, %1;", "h"((unsigned short)0x3e00))
    R(1, "cvt.rzi.s32.f16 %0, %1;", "h"((unsigned short)0x3e00)) H(0x4900, "cvt.rn.f16.s32 %0, %1;", "r"(10))
    H(0x3fc0, "cvt.rn.bf16.f32 %0, %1;", "f"(1.5f))
    R(0x3c004000, "cvt.rn.f16x2.f32 %0, %1, %2;", "f"(1.f), "f"(2.f))
    R(0x3f804000, "cvt.rn.bf16x2.f32 %0, %1, %2;", "f"(1.f), "f"(2.f))
    R(0x3f802000, "cvt.rna.tf32.f32 %0, %1;", "f"(__int_as_float(0x3f801000)))
}

__global__ void atomics() {
    __shared__ unsigned shared[4];
    unsigned *const w = words, address = (unsigned)__cvta_generic_to_shared(shared);
    w[0] = 5, shared[0] = 5, shared[1] = 6, floats[0] = 1.5f, longs[0] = 7;
    double *const d = (double *)(longs + 1);
    *d = .5;
    R(5, "atom.global.add.u32 %0, [%1], %2;", "l"(w), "r"(3))
    R(8, "atom.add.s32 %0, [%1], %2;", "l"(w), "r"(-10))
    R(-2, "atom.global.max.s32 %0, [%1+0], %2;", "l"(w), "r"(4))
    R(4, "atom.min.u32 %0, [%1], %2;", "l"(w), "r"(3))
    R(3, "atom.relaxed.gpu.global.or.b32 %0, [%1], %2;", "l"(w), "r"(12))
    R(15, "atom.and.b32 %0, [%1], %2;", "l"(w), "r"(10)) R(10, "atom.xor.b32 %0, [%1], %2;", "l"(w), "r"(3))
    R(9, "atom.exch.b32 %0, [%1], %2;", "l"(w), "r"(2))
    R(2, "atom.acq_rel.sys.cas.b32 %0, [%1], %2, %3;", "l"(w), "r"(2), "r"(6))
    R(6, "atom.inc.u32 %0, [%1], %2;", "l"(w), "r"(6)) R(0, "atom.dec.u32 %0, [%1], %2;", "l"(w), "r"(9))
    R(9, "ld.u32 %0, [%1];", "l"(w)) F(1.5f, "atom.add.f32 %0, [%1], %2;", "l"(floats), "f"(1.f))
    D(.5, "atom.add.f64 %0, [%1], %2;", "l"(d), "d"(1.))
    L(7, "atom.add.u64 %0, [%1], %2;", "l"(longs), "l"(1ull << 40))
    L((1ull << 40) + 7, "atom.cas.b64 %0, [%1], %2, 3;", "l"(longs), "l"((1ull << 40) + 7))
    R(5, "atom.shared.add.u32 %0, [%1], 1;", "r"(address))
    R(2, "red.shared.add.u32 [%1+4], 2; red.global.add.f32 [%2], 0f3F800000; mov.u32 %0, 2;", "r"(address),
      "l"(floats))
    R(8, "ld.shared.u32 %0, [%1+4];", "r"(address)) F(3.5f, "ld.f32 %0, [%1];", "l"(floats))
    R(address, "{.reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t;}", "l"(shared))
    R(1, "st.shared.v2.u32 [%1], {%2, 22}; mov.u32 %0, 1;", "r"(address + 8), "r"(21))
    L(shared + 2, "{.reg .u64 t; cvt.u64.u32 t, %1; cvta.shared.u64 %0, t;}", "r"(address + 8))
    R(43, "mov.u32 %0, %1;", "r"(shared[2] + shared[3]))
}

// clang-format on

TEST(integer_arithmetic) {
    rows_hold(integers);
}
TEST(floating_point) {
    rows_hold(numbers);
}
TEST(conversions_between_types) {
    rows_hold(conversions);
}
TEST(atomics_and_shared_memory) {
    rows_hold(atomics);
}

// An input keeps its value while the instructions write outputs, also to the same variable.
__device__ void add_twice(unsigned &a, unsigned b) {
    asm("add.u32 %0, %1, %2;\n\tadd.u32 %0, %0, %1;" : "=r"(a) : "r"(a), "r"(b));
}

__global__ void same_variables(volatile int *in_step) {
    unsigned a = 3, x = 10, y = 20, i = 0, s, v, c = 5;
    unsigned *p = words + 20;
    int array[2] = {7, 8};
    add_twice(a, 4);
    words[0] = a;
    asm("mov.u32 %0, %3; mov.u32 %1, %2;" : "=r"(x), "=r"(y) : "r"(x), "r"(y));
    words[1] = x;
    words[2] = y;
    asm("add.u32 %0, %1, %1;" : "=r"(s) : "r"(++i));
    words[3] = s * 10 + i;
    asm("mul.lo.u32 %0, %1, %1;" : "=r"(v) : "r"(*p++ = 7));
    words[4] = v + (unsigned)(p - words);
    asm("add.u32 %0, %0, %1; add.u32 %0, %0, %1;" : "+r"(c) : "r"(a)); // for c again, nvcc has one register
    words[5] = c;
    asm("ld.s32 %0, [%1+4];" : "=r"(words[6]) : "l"(array));
    asm("mov.u32 %0, %1;" : "=r"(words[7]) : "r"(in_step[0]));
}

TEST(operands_are_evaluated_once) {
    words[30] = 33;
    same_variables<<<1, 1>>>((volatile int *)(words + 30));
    expect(0, {3 + 4 + 3, 20, 10, 21, 49 + 21, 25, 8, 33});
}

__device__ int clamp_and_add(int x) {
    int r;
    asm("{\n\t.reg .pred p;\n\t.reg .s32 t, %%u;\n\t"
        "setp.lt.s32 p, %1, 0;\n\tmov.s32 t, %1;\n\t@p mov.s32 t, 0;\n\t@!p add.s32 t, t, 1;\n\t"
        "selp.s32 %%u, 100, 200, !p;\n\tadd.s32 %0, t, %%u;\n\t}"
        : "=r"(r)
        : "r"(x));
    return r;
}

__global__ void blocks_and_registers() {
    unsigned ballot, low, high, nested;
    double three;
    asm volatile("{ .reg .pred q; setp.ge.u32 q, %1, 30; vote.sync.ballot.b32 %0, q, 0xffffffff; }"
                 : "=r"(ballot)
                 : "r"(threadIdx.x));
    if (threadIdx.x > 0)
        return;
    words[0] = ballot;
    words[1] = clamp_and_add(-5);
    words[2] = clamp_and_add(5);
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(0x123456789ull));
    words[3] = low == 0x23456789 && high == 1;
    asm("mov.b64 %0, {%1, %2};" : "=d"(three) : "r"(0), "r"(0x40080000));
    words[4] = three == 3;
    asm("{ .reg .u64 t; .reg .u32 x; mul.wide.u32 t, %1, 6;\n\t"
        "{ .reg .u32 x; mov.b64 {x, %0}, t; } mov.u32 x, 1; add.u32 %0, %0, x; }"
        : "=r"(nested)
        : "r"(0x80000000));
    words[5] = nested;
}

TEST(blocks_registers_and_predicates) {
    blocks_and_registers<<<1, 32>>>();
    expect(0, {3u << 30, 200, 106, 1, 1, 4});
}

// ---- warps and blocks ----

__global__ void shuffles(unsigned *seen) {
    const unsigned t = threadIdx.x;
    unsigned down, same, any;
    asm volatile("{.reg .pred p; shfl.sync.down.b32 %0|p, %1, 3, 0x1f, 0xffffffff; selp.u32 %0, %0, 99, p;}"
                 : "=r"(down)
                 : "r"(t));
    asm volatile("{.reg .pred p; shfl.sync.up.b32 %0|p, %1, 1, 0x1800, -1; @p add.u32 %0, %0, 100;}"
                 : "=r"(seen[t])
                 : "r"(t));
    asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, -1;" : "=r"(same) : "r"(t));
    asm volatile("{.reg .pred p, q; setp.eq.u32 p, %1, 7; vote.sync.any.pred q, p, -1; selp.u32 %0, 1, 0, q;}"
                 : "=r"(any)
                 : "r"(t));
    asm volatile("bar.warp.sync 0xffffffff; redux.sync.add.u32 %0, %1, 0xffffffff;" : "+r"(any) : "r"(any));
    seen[32 + t] = down * 1000 + (same ^ 1) + (any - 32);
}

TEST(shuffles_with_predicates) {
    // up by one within 8 lanes: the first one has no other, and keeps its value
    std::vector<unsigned> expected = made(64, [](int i) -> unsigned {
        return i < 32 ? i % 8 ? i - 1 + 100 : i : (i < 61 ? i - 29 : 99) * 1000 + i - 32;
    });
    EXPECT(WRITTEN(unsigned, 64, shuffles<<<1, 32>>>(out)) == expected);
}

// Rows that cp.async brings to shared memory; matrices that ldmatrix and mma read there
__global__ void matrices(const unsigned short *from, unsigned *loaded, float *product, int *whole) {
    __shared__ __align__(16) unsigned short rows[256];
    const unsigned t = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(rows + 8 * t);
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n\tcp.async.commit_group;" ::"r"(to),
                 "l"(from + 8 * t)
                 : "memory");
    asm volatile("cp.async.wait_group 0; bar.sync 0;" ::: "memory");
    unsigned a[4], b[4], c[2] = {0x3c003c00, 0};
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(to));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"(to));
    asm volatile("ldmatrix.sync.aligned.x1.m8n8.shared.b16 {%0}, [%1];" : "=r"(b[2]) : "r"(to));
    for (int i = 0; i < 7; i++)
        loaded[7 * t + i] = i < 4 ? a[i] : b[i - 4];
    float d[4], e[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
                 "%9}, {%10, %11, %12, %13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(e[0]), "f"(e[1]),
                   "f"(e[2]), "f"(e[3]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])
                 : "r"(__float_as_int(t + 0.f)), "r"(__float_as_int(1.f)), "r"(__float_as_int(t % 5 + 0.f)),
                   "r"(0), "r"(__float_as_int(t % 3 + 0.f)), "r"(__float_as_int(2.f)));
    int s[4] = {0, 0, 0, 0x7fffff00};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, "
                 "%7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
                 : "r"(t * 0x010203), "r"(0x01010101), "r"(0x7f80ff00 ^ t), "r"(t), "r"(0x01ff0201),
                   "r"(t * 0x01000201));
    for (int i = 0; i < 4; i++) {
        product[8 * t + i] = d[i], product[8 * t + 4 + i] = e[i];
        whole[6 * t + i] = s[i];
    }
    whole[6 * t + 4] = (int)c[0], whole[6 * t + 5] = (int)c[1];
}

TEST(matrices_by_lane_and_register) {
    static const unsigned short halves[] = {0, 0x3c00, 0x4000, 0x4200}; // 0 to 3
    const auto n = [](int row, int column) { return (row * 5 + column * 3 + row * column) % 4; };
    const auto byte = [](unsigned word, int i) { return (int)(signed char)(word >> 8 * i); };
    unsigned short *const from = managed<unsigned short>(256);
    for (int i = 0; i < 256; i++)
        from[i] = halves[n(i / 8, i % 8)];
    unsigned *const loaded = managed<unsigned>(7 * 32);
    float *const product = managed<float>(8 * 32);
    int *const whole = managed<int>(6 * 32);
    matrices<<<1, 32>>>(from, loaded, product, whole);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < 32; t++) {
        for (int i = 0; i < 14; i++) { // x4, x2.trans, x1; two halves
            const int row = t / 4, column = t % 4 * 2 + i % 2, r = i / 2;
            const int at = r == 4 || r == 5 ? (r - 4) * 64 + column * 8 + row : r % 6 * 64 + row * 8 + column;
            EXPECT((unsigned short)(loaded[7 * t + r] >> i % 2 * 16) == from[at]);
        }
        for (int r = 0; r < 4; r++) { // the sums: row i and column j
            const int i = t / 4 + r / 2 * 8, j = t % 4 * 2 + r % 2;
            float d = r + 1.f, e = r + 1.f, h = i < 8;
            long long s = r == 3 ? 0x7fffff00 : 0;
            for (int l = 0; l < 32; l++) {
                const int a = i % 8 * 4 + l % 4,
                          b = j * 4 + l % 4; // the lanes that have l, for TensorFloat-32
                const int a4 = i % 8 * 4 + l / 4 % 4, b4 = j * 4 + l / 4 % 4; // and for bytes
                const float term = l < 16 ? (float)(n((i / 8 + l / 8 * 2) * 8 + i % 8, l % 8) * n(l, j)) : 0;
                d += term, h += l < 8 ? term : 0;
                if (l < 8)
                    e += (float)((l < 4 ? (i < 8 ? a : 1) : i < 8 ? a % 5 : 0) * (l < 4 ? b % 3 : 2));
                const unsigned words[] = {a4 * 0x010203u, 0x01010101, 0x7f80ff00u ^ (unsigned)a4,
                                          (unsigned)a4};
                s += byte(words[l / 16 * 2 + i / 8], l % 4) *
                     byte(l < 16 ? 0x01ff0201 : (unsigned)b4 * 0x01000201, l % 4);
            }
            EXPECT(product[8 * t + r] == d && product[8 * t + 4 + r] == e);
            EXPECT(whole[6 * t + r] == (s > INT_MAX ? INT_MAX : s));
            EXPECT(__half2float(__ushort_as_half((unsigned short)(whole[6 * t + 4 + r / 2] >> r % 2 * 16))) ==
                   h);
        }
    }
}

// Half of the warps produce and half consume. Then threads with an odd index, and those above 40, end.
__global__ void named_barriers(int *sums) {
    __shared__ int cells[32];
    const int t = threadIdx.x;
    int sum = 0;
    for (int round = 1; round <= 3; round++)
        if (t < 32) {
            cells[t] = round * 100 + t;
            asm volatile("bar.arrive 1, 64; bar.sync 2, %0;" ::"r"(64) : "memory");
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            sum += cells[63 - t];
            asm volatile("barrier.cta.arrive 2, 64;" ::: "memory");
        }
    for (;;) {
        if (t % 2 == 1)
            asm volatile("exit;");
        asm volatile("{.reg .pred p; setp.gt.s32 p, %0, 40; @p exit;}" ::"r"(t));
        break;
    }
    sums[t] = sum + 1;
}

TEST(named_barriers_and_exit) {
    EXPECT(WRITTEN(int, 64, named_barriers<<<1, 64>>>(out)) == made(64, [](int i) {
               return i % 2 || i > 40 ? 0 : i < 32 ? 1 : 601 + 3 * (63 - i);
           }));
}
