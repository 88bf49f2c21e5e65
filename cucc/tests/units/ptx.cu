// SPDX-License-Identifier: MIT
// Inline PTX: the instructions and registers that the translator turns into C++.
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

__global__ void highest_bits(unsigned a, int b, long long c) {
    asm("bfind.u32 %0, %1;" : "=r"(words[0]) : "r"(a));
    asm("bfind.u32 %0, %1;" : "=r"(words[1]) : "r"(a - a));
    asm("bfind.s32 %0, %1;" : "=r"(words[2]) : "r"(b));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(words[3]) : "r"(a));
    asm("bfind.s64 %0, %1;" : "=r"(words[4]) : "l"(c));
    asm("bfind.shiftamt.s64 %0, %1;" : "=r"(words[5]) : "l"(c));
    asm("bfind.shiftamt.s32 %0, %1;" : "=r"(words[6]) : "r"(-1));
}

TEST(bfind) {
    highest_bits<<<1, 1>>>(0x5000, -9, 1ll << 40);
    expect(0, {14, ~0u, 3, 17, 40, 23, ~0u});
}

__global__ void integers(unsigned a, int b, unsigned long long c) {
    asm("bfe.u32 %0, %1, 4, 8;" : "=r"(words[0]) : "r"(a));
    asm("bfe.s32 %0, %1, 0, 4;" : "=r"(words[1]) : "r"(b));
    asm("bfi.b32 %0, %1, %2, 8, 4;" : "=r"(words[2]) : "r"(0xf5), "r"(a));
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(words[3]) : "r"(a), "r"(b), "r"(0x0ff0));
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(words[4]) : "r"(a), "r"(b), "r"(7));
    asm("prmt.b32 %0, %1, %2, 0x0123;" : "=r"(words[5]) : "r"(a), "r"(0));
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(words[6]) : "r"(0x80), "r"(0x11), "r"(0x4848));
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(longs[0]) : "r"(a), "r"(a));
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(longs[1]) : "r"(b), "r"(3));
    asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(words[7]) : "r"(a), "r"(10), "r"(3));
    asm("mul.hi.u32 %0, %1, %2;" : "=r"(words[8]) : "r"(a), "r"(a));
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(longs[2]) : "r"(a), "r"(2), "l"(c));
    asm("add.cc.u32 %0, %2, %3;\n\t"
        "addc.u32 %1, %4, %5;"
        : "=r"(words[20]), "=r"(words[21])
        : "r"(0xffffffffu), "r"(2), "r"(3), "r"(4));
    asm("sub.cc.u32 %0, %1, 2; subc.u32 %2, 5, 0;" : "=r"(words[9]), "+r"(words[20]), "=r"(words[10]));
    asm("shf.l.wrap.b32 %0, %1, %2, 8;" : "=r"(words[11]) : "r"(a), "r"(0x12345678));
    asm("shr.s32 %0, %1, 1;" : "=r"(words[12]) : "r"(b));
    asm("shr.u32 %0, %1, 40;" : "=r"(words[13]) : "r"(a));
    asm("min.s32 %0, %1, %2;" : "=r"(words[14]) : "r"(b), "r"(3));
    asm("max.u32 %0, %1, %2;" : "=r"(words[15]) : "r"(b), "r"(3));
    asm("not.b32 %0, %1;" : "=r"(words[16]) : "r"(a));
    asm volatile("activemask.b32 %0;" : "=r"(words[17]));
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;"
        : "=r"(words[18])
        : "r"(0x01ff8000u), "r"(0x05010210u), "r"(9));
    asm volatile("mov.u32 %0, %ntid.x;" : "=r"(words[19]));
}

TEST(integer_arithmetic) {
    const unsigned a = 0xdeadbeef, b = (unsigned)-6;
    const unsigned long long c = 1ull << 40, square = (unsigned long long)a * a;
    integers<<<1, 1>>>(a, (int)b, c);
    const unsigned sum = 4 + 254 + 126 + 16 + 9, high = (unsigned)(square >> 32);
    expect(0, {0xee, b, 0xdeadb5ef, a ^ b ^ 0x0ff0, (a & b) | (~a & 7), 0xefbeadde, 0x11ff11ff});
    expect(7, {a * 10 + 3, high, ~0u, 4, 0x345678de, (unsigned)-3, 0, b, b, ~a, 1, sum, 1, 1, 8});
    EXPECT(longs[0] == square && (long long)longs[1] == -18 && longs[2] == 2ull * a + c);
}

__global__ void numbers(float x, double y) {
    double z;
    asm("fma.rn.f32 %0, %1, %1, %1;" : "=f"(floats[0]) : "f"(x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(floats[1]) : "f"(x));
    asm("ex2.approx.f32 %0, %1;" : "=f"(floats[2]) : "f"(x));
    asm("add.rn.f64 %0, %1, %2;" : "=d"(z) : "d"(y), "d"(y));
    asm("mov.b32 %0, %1;" : "=r"(words[0]) : "r"(__float_as_uint(x)));
    asm("neg.f32 %0, %1;" : "=f"(floats[4]) : "f"(x));
    floats[3] = (float)z;
}

TEST(floating_point) {
    numbers<<<1, 1>>>(2, 1.25);
    expect(0, {0x40000000});
    EXPECT(floats[0] == 6 && floats[1] == 0.5f && floats[2] == 4 && floats[3] == 2.5f && floats[4] == -2);
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
    asm("popc.b64 %0, %1;" : "=r"(words[6]) : "l"(~0ull >> 3));
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(words[7]) : "r"(0x0102ff04), "r"(0x01010101), "r"(5));
}

TEST(blocks_registers_and_predicates) {
    blocks_and_registers<<<1, 32>>>();
    expect(0, {3u << 30, 200, 106, 1, 1, 4, 61, 11});
}
