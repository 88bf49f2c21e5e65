// SPDX-License-Identifier: MIT
// Operations on the bytes and 16-bit halves of words, on random words, beside arithmetic on arrays.
#include <algorithm>
#include <cstdint>
#include "device.h"

// Applies f to each field of type T of the three words; the low bits of its results are a word.
template <class T, class F> static unsigned fields(unsigned a, unsigned b, unsigned c, F f) {
    constexpr int n = 4 / sizeof(T);
    T x[n], y[n], z[n], r[n];
    unsigned result;
    memcpy(x, &a, 4), memcpy(y, &b, 4), memcpy(z, &c, 4);
    for (int i = 0; i < n; i++)
        r[i] = (T)f((long long)x[i], (long long)y[i], (long long)z[i]);
    memcpy(&result, r, 4);
    return result;
}

template <class T> static long long limited(long long x) {
    return std::clamp<long long>(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

template <class T> static unsigned sum_of_differences(unsigned a, unsigned b) {
    unsigned sum = 0;
    fields<T>(a, b, 0, [&](long long x, long long y, long long) { return sum += (unsigned)llabs(x - y); });
    return sum;
}

// name, arguments, type of a field, expression in x, y, z
#define HALVES_AND_BYTES(LIST, n, S, U)                                                                      \
    LIST(__vabs##n(a), S, llabs(x))                                                                          \
    LIST(__vabsss##n(a), S, limited<S>(llabs(x)))                                                            \
    LIST(__vneg##n(a), S, -x)                                                                                \
    LIST(__vnegss##n(a), S, limited<S>(-x))                                                                  \
    LIST(__vadd##n(a, b), S, x + y)                                                                          \
    LIST(__vaddss##n(a, b), S, limited<S>(x + y))                                                            \
    LIST(__vaddus##n(a, b), U, limited<U>(x + y))                                                            \
    LIST(__vsub##n(a, b), S, x - y)                                                                          \
    LIST(__vsubss##n(a, b), S, limited<S>(x - y))                                                            \
    LIST(__vsubus##n(a, b), U, limited<U>(x - y))                                                            \
    LIST(__vabsdiffs##n(a, b), S, llabs(x - y))                                                              \
    LIST(__vabsdiffu##n(a, b), U, llabs(x - y))                                                              \
    LIST(__vavgs##n(a, b), S, (x + y + (x + y > 0) - (x + y < 0)) / 2)                                       \
    LIST(__vavgu##n(a, b), U, (x + y + 1) / 2)                                                               \
    LIST(__vhaddu##n(a, b), U, (x + y) / 2)                                                                  \
    LIST(__vmaxs##n(a, b), S, std::max(x, y))                                                                \
    LIST(__vmaxu##n(a, b), U, std::max(x, y))                                                                \
    LIST(__vmins##n(a, b), S, std::min(x, y))                                                                \
    LIST(__vminu##n(a, b), U, std::min(x, y))                                                                \
    COMPARISONS(LIST, __vcmp, n, S, U, -)                                                                    \
    COMPARISONS(LIST, __vset, n, S, U, +)
#define COMPARISONS(LIST, name, n, S, U, sign)                                                               \
    LIST(name##eq##n(a, b), U, sign(x == y))                                                                 \
    LIST(name##ne##n(a, b), U, sign(x != y))                                                                 \
    LIST(name##ges##n(a, b), S, sign(x >= y))                                                                \
    LIST(name##geu##n(a, b), U, sign(x >= y))                                                                \
    LIST(name##gts##n(a, b), S, sign(x > y))                                                                 \
    LIST(name##gtu##n(a, b), U, sign(x > y))                                                                 \
    LIST(name##les##n(a, b), S, sign(x <= y))                                                                \
    LIST(name##leu##n(a, b), U, sign(x <= y))                                                                \
    LIST(name##lts##n(a, b), S, sign(x < y))                                                                 \
    LIST(name##ltu##n(a, b), U, sign(x < y))

#define DPX(LIST, s, T)                                                                                      \
    LIST(__vimax3_##s(a, b, c), T, std::max({x, y, z}))                                                      \
    LIST(__vimin3_##s(a, b, c), T, std::min({x, y, z}))                                                      \
    LIST(__viaddmax_##s(a, b, c), T, std::max((long long)(T)(x + y), z))                                     \
    LIST(__viaddmin_##s(a, b, c), T, std::min((long long)(T)(x + y), z))
#define DPX_SIGNED(LIST, s, T)                                                                               \
    DPX(LIST, s, T)                                                                                          \
    LIST(__vimax3_##s##_relu(a, b, c), T, std::max({x, y, z, 0ll}))                                          \
    LIST(__vimin3_##s##_relu(a, b, c), T, std::max(std::min({x, y, z}), 0ll))                                \
    LIST(__viaddmax_##s##_relu(a, b, c), T, std::max({(long long)(T)(x + y), z, 0ll}))                       \
    LIST(__viaddmin_##s##_relu(a, b, c), T, std::max(std::min((long long)(T)(x + y), z), 0ll))               \
    LIST(__vimax_##s##_relu(a, b), T, std::max({x, y, 0ll}))                                                 \
    LIST(__vimin_##s##_relu(a, b), T, std::max(std::min(x, y), 0ll))

#define LISTS(LIST)                                                                                          \
    HALVES_AND_BYTES(LIST, 2, int16_t, uint16_t)                                                             \
    HALVES_AND_BYTES(LIST, 4, int8_t, uint8_t)                                                               \
    DPX_SIGNED(LIST, s16x2, int16_t)                                                                         \
    DPX_SIGNED(LIST, s32, int32_t)                                                                           \
    DPX(LIST, u16x2, uint16_t)                                                                               \
    DPX(LIST, u32, uint32_t)

// Functions that do not treat each field alone: name, arguments, expression
#define DOT(a, b)  ((int8_t)(a) * (int8_t)(b))
#define UDOT(a, b) ((uint8_t)(a) * (unsigned)(uint8_t)(b))
#define OTHERS(LIST)                                                                                         \
    LIST(__vsads2(a, b), sum_of_differences<int16_t>(a, b))                                                  \
    LIST(__vsadu2(a, b), sum_of_differences<uint16_t>(a, b))                                                 \
    LIST(__vsads4(a, b), sum_of_differences<int8_t>(a, b))                                                   \
    LIST(__vsadu4(a, b), sum_of_differences<uint8_t>(a, b))                                                  \
    LIST(__dp4a((int)a, (int)b, (int)c),                                                                     \
         c + (unsigned)(DOT(a, b) + DOT(a >> 8, b >> 8) + DOT(a >> 16, b >> 16) + DOT(a >> 24, b >> 24)))    \
    LIST(__dp4a(a, b, c),                                                                                    \
         c + UDOT(a, b) + UDOT(a >> 8, b >> 8) + UDOT(a >> 16, b >> 16) + UDOT(a >> 24, b >> 24))            \
    LIST(__dp2a_lo((int)a, (int)b, (int)c),                                                                  \
         c + (unsigned)((int16_t)a * (int8_t)b + (int16_t)(a >> 16) * (int8_t)(b >> 8)))                     \
    LIST(__dp2a_hi((int)a, (int)b, (int)c),                                                                  \
         c + (unsigned)((int16_t)a * (int8_t)(b >> 16) + (int16_t)(a >> 16) * (int8_t)(b >> 24)))            \
    LIST(__dp2a_lo(a, b, c), c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff))                    \
    LIST(__dp2a_hi(a, b, c), c + (a & 0xffff) * (b >> 16 & 0xff) + (a >> 16) * (b >> 24))                    \
    LIST(chosen(a, b), chosen_reference(a, b))

// The four functions that also say which number they chose, as one number
__device__ static unsigned chosen(unsigned a, unsigned b) {
    bool p[10];
    const unsigned r = (unsigned)__vibmax_s32((int)a, (int)b, &p[0]) ^
                       (unsigned)__vibmin_s32((int)a, (int)b, &p[1]) * 3 ^ __vibmax_u32(a, b, &p[2]) * 5 ^
                       __vibmin_u32(a, b, &p[3]) * 7 ^ __vibmax_s16x2(a, b, &p[4], &p[5]) * 11 ^
                       __vibmin_u16x2(a, b, &p[6], &p[7]) * 13;
    unsigned bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (unsigned)p[i] << i;
    return r * 256 + bits;
}

static unsigned chosen_reference(unsigned a, unsigned b) {
    const int sa = (int)a, sb = (int)b;
    const unsigned r =
        (unsigned)std::max(sa, sb) ^ (unsigned)std::min(sa, sb) * 3 ^ std::max(a, b) * 5 ^
        std::min(a, b) * 7 ^
        fields<int16_t>(a, b, 0, [](long long x, long long y, long long) { return std::max(x, y); }) * 11 ^
        fields<uint16_t>(a, b, 0, [](long long x, long long y, long long) { return std::min(x, y); }) * 13;
    const unsigned bits = (sa >= sb) | (sa <= sb) << 1 | (a >= b) << 2 | (a <= b) << 3 |
                          ((int16_t)(a >> 16) >= (int16_t)(b >> 16)) << 4 | ((int16_t)a >= (int16_t)b) << 5 |
                          (a >> 16 <= b >> 16) << 6 | ((a & 0xffff) <= (b & 0xffff)) << 7;
    return r * 256 + bits;
}

#define COMPUTE(call, ...) *out++ = (unsigned)call;
__global__ void compute(const unsigned *in, unsigned *out, int n, int results) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    const unsigned a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
    out += i * results;
    LISTS(COMPUTE)
    OTHERS(COMPUTE)
}

static const struct {
    const char *text;
    unsigned (*expected)(unsigned, unsigned, unsigned);
} references[] = {
#define FIELDS(call, T, expression)                                                                          \
    {#call, [](unsigned a, unsigned b, unsigned c) {                                                         \
         return fields<T>(a, b, c, [](long long x, long long y, long long z) {                               \
             (void)x, (void)y, (void)z;                                                                      \
             return expression;                                                                              \
         });                                                                                                 \
     }},
#define WORDS(call, expression)                                                                              \
    {#call, [](unsigned a, unsigned b, unsigned c) {                                                         \
         (void)a, (void)b, (void)c;                                                                          \
         return expression;                                                                                  \
     }},
    LISTS(FIELDS) OTHERS(WORDS)};

TEST(fields_of_words) {
    constexpr int n = 4000, results = sizeof references / sizeof *references, total = n * results;
    std::vector<unsigned> in(3 * n);
    for (int i = 0; i < 3 * n; i++) {
        in[i] = (unsigned)engine()();
        if (i % 5 == 0) // fields at the ends of their range, and equal ones
            in[i] = 0x80007fffu >> (in[i] % 2 * 16) ^ (in[i] & 0x00800001);
        else if (i % 5 == 1)
            in[i] = in[i - 1] ^ (in[i] % 4 ? 0 : 0x80ff7f00);
    }
    const Device<unsigned> device(in);
    const auto all =
        WRITTEN(unsigned, total, compute<<<(n + 127) / 128, 128>>>(device.data, out, n, results));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < results; j++) {
            const unsigned a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];
            const unsigned got = all[i * results + j], expected = references[j].expected(a, b, c);
            if (!EXPECT(got == expected))
                fprintf(stderr, "%s, 0x%08x, 0x%08x, 0x%08x: got 0x%08x, expected 0x%08x\n",
                        references[j].text, a, b, c, got, expected);
        }
}

__global__ void find_bits(unsigned mask, unsigned *out) {
    const int base = (int)threadIdx.x, n = (int)blockIdx.x - 33;
    out[blockIdx.x * 32 + threadIdx.x] = __fns(mask, (unsigned)base, n);
}

TEST(the_nth_set_bit) {
    const unsigned masks[] = {0, ~0u, 0x80000001, 0x00f0f010, 0x12345678};
    for (const unsigned mask : masks) {
        const auto got = WRITTEN(unsigned, 67 * 32, find_bits<<<67, 32>>>(mask, out));
        for (int n = -33; n <= 33; n++)
            for (int base = 0; base < 32; base++) {
                std::vector<unsigned> set; // the set bits in the order of the search
                for (int i = base; i >= 0 && i < 32; i += n < 0 ? -1 : 1)
                    if (mask >> i & 1)
                        set.push_back((unsigned)i);
                const unsigned which = (unsigned)abs(n);
                const unsigned expected = n == 0                ? (mask >> base & 1 ? (unsigned)base : ~0u)
                                          : which <= set.size() ? set[which - 1]
                                                                : ~0u;
                if (!EXPECT(got[(n + 33) * 32 + base] == expected))
                    fprintf(stderr, "__fns(0x%08x, %d, %d)\n", mask, base, n);
            }
    }
}
