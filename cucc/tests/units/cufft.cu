// SPDX-License-Identifier: MIT
// Needs: cufft
// cuFFT: each transform against the definition of the DFT in double, for several shapes and layouts.
#include <cufftXt.h>
#include <complex>
#include "linear.h"

typedef std::complex<double> Complex;

// The library's names for both precisions
#define PRECISION(Name, R, P, C2C, R2C, C2R)                                                                 \
    struct Name {                                                                                            \
        typedef R Real;                                                                                      \
        typedef P Pair;                                                                                      \
        static const cufftType c2c = CUFFT_##C2C, r2c = CUFFT_##R2C, c2r = CUFFT_##C2R;                      \
        static cufftResult run(cufftHandle p, Pair *in, Pair *out, int d) {                                  \
            return pick(0, 1) ? cufftExec##C2C(p, in, out, d) : cufftXtExec(p, in, out, d);                  \
        }                                                                                                    \
        static cufftResult run(cufftHandle p, Real *in, Pair *out) {                                         \
            return pick(0, 1) ? cufftExec##R2C(p, in, out) : cufftXtExec(p, in, out, CUFFT_FORWARD);         \
        }                                                                                                    \
        static cufftResult run(cufftHandle p, Pair *in, Real *out) {                                         \
            return pick(0, 1) ? cufftExec##C2R(p, in, out) : cufftXtExec(p, in, out, CUFFT_INVERSE);         \
        }                                                                                                    \
    };
PRECISION(Floats, float, cufftComplex, C2C, R2C, C2R)
PRECISION(Doubles, double, cufftDoubleComplex, Z2Z, D2Z, Z2D)

// A shape, and one transform of it: n[0] x n[1] x n[2], with 1 for dimensions that it lacks
struct Shape {
    int rank, n[3];
    int size() const { return n[0] * n[1] * n[2]; }
    int last() const { return n[rank - 1]; }
    // Index of element i of a contiguous array if its rows are `row` elements long
    size_t at(int i, int row) const { return (size_t)(i / last()) * row + i % last(); }
};
// The transforms of `batch` arrays
static std::vector<Complex> dft(const Shape &s, const Complex *x, int sign, int batch = 1) {
    const int b = s.n[1], c = s.n[2], n = s.size();
    std::vector<Complex> result((size_t)n * batch);
    for (int at = 0; at < n * batch; at++)
        for (int i = 0; i < n; i++) {
            const int k = at % n;
            const double turns = (double)(k / (b * c)) * (i / (b * c)) / s.n[0] +
                                 (double)(k / c % b) * (i / c % b) / b + (double)(k % c) * (i % c) / c;
            result[at] += x[at - k + i] * std::polar(1.0, sign * 2 * M_PI * fmod(turns, 1));
        }
    return result;
}
static Shape random_shape() {
    const int most[] = {0, 120, 14, 6};
    Shape s = {pick(1, 3), {1, 1, 1}};
    for (int d = 0; d < s.rank; d++)
        s.n[d] = pick(1, most[s.rank]);
    return s;
}
static std::vector<Complex> random_numbers(size_t n) {
    return made(n, [](int) { return Complex(pick(-1000, 1000) / 1000.0, pick(-1000, 1000) / 1000.0); });
}
template <class Pair> static std::vector<Pair> pairs_of(const std::vector<Complex> &x) {
    typedef decltype(Pair::x) Real;
    return made(x.size(), [&](int i) { return Pair{(Real)x[i].real(), (Real)x[i].imag()}; });
}
template <class Library, class Pair> static bool close(const Pair &got, const Complex &expected, size_t n) {
    return std::abs(Complex(got.x, got.y) - expected) <=
           (sizeof(typename Library::Real) == 4 ? 4e-6 : 4e-14) * (1 + n);
}

// Plans of all dimensions and batches, with every function that makes one
static cufftHandle plan_of(const Shape &s, cufftType type, int batch) {
    cufftHandle plan = CUFFT_PLAN_NULL;
    const int *n = s.n;
    size_t size = 1 << 30;
    if (pick(0, 1) && (batch == 1 || s.rank == 1)) {
        OK(s.rank == 1   ? cufftPlan1d(&plan, n[0], type, batch)
           : s.rank == 2 ? cufftPlan2d(&plan, n[0], n[1], type)
                         : cufftPlan3d(&plan, n[0], n[1], n[2], type));
    } else if (pick(0, 1) && (batch == 1 || s.rank == 1)) {
        OK(cufftCreate(&plan));
        OK(s.rank == 1   ? cufftMakePlan1d(plan, n[0], type, batch, &size)
           : s.rank == 2 ? cufftMakePlan2d(plan, n[0], n[1], type, &size)
                         : cufftMakePlan3d(plan, n[0], n[1], n[2], type, &size));
        EXPECT(size < 1 << 30);
    } else if (pick(0, 1)) {
        const bool wide = type >= CUFFT_Z2Z;
        const cudaDataType real = wide ? CUDA_R_64F : CUDA_R_32F, pair = wide ? CUDA_C_64F : CUDA_C_32F;
        long long all[] = {n[0], n[1], n[2]};
        OK(cufftCreate(&plan));
        OK(cufftXtMakePlanMany(plan, s.rank, all, NULL, 1, 0,
                               type == CUFFT_R2C || type == CUFFT_D2Z ? real : pair, NULL, 1, 0,
                               type == CUFFT_C2R || type == CUFFT_Z2D ? real : pair, batch, &size, pair));
        EXPECT(size < 1 << 30);
    } else {
        OK(cufftPlanMany(&plan, s.rank, (int *)n, NULL, 1, 0, NULL, 1, 0, type, batch));
    }
    return plan;
}

TEST_OF(complex_numbers, Floats, Doubles) {
    typedef typename T::Pair Pair;
    for (int round = 0; round < 30; round++) {
        const Shape s = random_shape();
        const int batch = pick(1, 3), sign = pick(0, 1) ? CUFFT_FORWARD : CUFFT_INVERSE, n = s.size();
        const cufftHandle plan = plan_of(s, T::c2c, batch);
        for (int skip : {pick(0, 3), pick(0, 3)}) { // a plan works for arrays at any address
            const std::vector<Complex> x = random_numbers(skip + (size_t)n * batch);
            const Array<Pair> in(pairs_of<Pair>(x)), out(x.size());
            OK(T::run(plan, in + skip, out + skip, sign));
            EXPECT(memcmp(in.back().data(), in.host.data(), x.size() * sizeof(Pair)) ==
                   0); // the input is kept
            OK(T::run(plan, in + skip, in + skip, sign));
            const std::vector<Pair> got = out.back(), in_place = in.back();
            const std::vector<Complex> expected = dft(s, &x[skip], sign, batch);
            for (int i = 0; i < n * batch; i++)
                if (!EXPECT(close<T>(got[skip + i], expected[i], n) &&
                            close<T>(in_place[skip + i], expected[i], n)))
                    return;
        }
        OK(cufftDestroy(plan));
    }
}

// Real to complex and back. In place, each row of real numbers is padded to the length of the complex ones.
TEST_OF(real_numbers, Floats, Doubles) {
    typedef typename T::Real Real;
    typedef typename T::Pair Pair;
    for (int round = 0; round < 30; round++) {
        const Shape s = random_shape();
        const int batch = pick(1, 3), n = s.size(), half = s.last() / 2 + 1;
        const bool in_place = pick(0, 1);
        const int row = in_place ? 2 * half : s.last();
        const size_t reals = (size_t)n / s.last() * row, pairs = (size_t)n / s.last() * half;
        const int skip = 2 * pick(0, 1);
        std::vector<Complex> x = random_numbers((size_t)n * batch);
        std::vector<Real> host(skip + reals * batch);
        const auto place = [&](int i) { return skip + i / n * reals + s.at(i % n, row); };
        for (int i = 0; i < n * batch; i++)
            host[place(i)] = (x[i] = x[i].real()).real();
        const Array<Real> in(host);
        const Array<Pair> separate(pairs * batch);
        Pair *const middle = in_place ? (Pair *)(in + skip) : separate;
        const cufftHandle plan = plan_of(s, T::r2c, batch), back = plan_of(s, T::c2r, batch);
        OK(T::run(plan, in + skip, middle));
        std::vector<Pair> got(pairs * batch);
        OK(cudaMemcpy(got.data(), middle, got.size() * sizeof(Pair), cudaMemcpyDeviceToHost));
        const std::vector<Complex> expected = dft(s, x.data(), -1, batch);
        for (int i = 0; i < n * batch; i++)
            if (i % s.last() < half &&
                !EXPECT(close<T>(got[i / n * pairs + s.at(i % n, half)], expected[i], n)))
                return;
        OK(cudaMemset(in, 0, in_place ? 0 : host.size() * sizeof(Real)));
        OK(T::run(back, middle, in + skip));
        const std::vector<Real> again = in.back();
        for (int i = 0; i < n * batch; i++)
            if (!EXPECT(close<T>(Pair{again[place(i)], 0}, x[i] * (double)n, 2 * n)))
                return;
        if (s.rank == 1 && !in_place) // one dimension back to real numbers keeps the input
            EXPECT(memcmp(separate.back().data(), got.data(), got.size() * sizeof(Pair)) == 0);
        OK(cufftDestroy(plan));
        OK(cufftDestroy(back));
    }
}

// Two matrices of 8 x 13 numbers, one number of each in turn; of each a rectangle of 6 x 10 is transformed.
template <class Integer, class Make> static void rectangles(Make make) {
    Integer n[] = {6, 10}, inembed[] = {8, 13}, onembed[] = {6, 9};
    const Array<double> in(noise<double>(8 * 13 * 2));
    const Array<cufftDoubleComplex> out(std::vector<cufftDoubleComplex>(6 * 9 * 2, {77, 78}));
    const HandleOf<cufftHandle, cufftCreate, cufftDestroy> plan;
    STORED(size_t, make(plan, 2, n, inembed, 2, 1, onembed, 1, 6 * 9, CUFFT_D2Z, 2, &it));
    OK(cufftExecD2Z(plan, in, out));
    const std::vector<cufftDoubleComplex> got = out.back();
    for (int b = 0; b < 2; b++) {
        const auto x = made(60, [&](int i) { return Complex(in.host[(i / 10 * 13 + i % 10) * 2 + b]); });
        const std::vector<Complex> expected = dft({2, {6, 10, 1}}, x.data(), -1);
        for (int i = 0; i < 6 * 9; i++) // rows of 6 numbers, with gaps
            EXPECT(close<Doubles>(got[b * 6 * 9 + i],
                                  i % 9 < 6 ? expected[i / 9 * 10 + i % 9] : Complex(77, 78), 60));
    }
}
TEST(strides_and_rectangles) {
    rectangles<int>(cufftMakePlanMany);
    rectangles<long long>(cufftMakePlanMany64);
}

TEST(wrong_arguments) {
    cufftHandle plan;
    size_t size;
    int n[] = {4, 4, 4, 4};
    EXPECT(cufftPlan1d(&plan, 0, CUFFT_C2C, 1) == CUFFT_INVALID_SIZE);
    EXPECT(cufftPlan1d(&plan, -8, CUFFT_C2C, 1) == CUFFT_INVALID_SIZE);
    EXPECT(cufftPlan1d(&plan, 8, CUFFT_C2C, 0) == CUFFT_INVALID_SIZE);
    EXPECT(cufftPlan1d(&plan, 8, (cufftType)3, 1) == CUFFT_INVALID_TYPE);
    EXPECT(cufftPlanMany(&plan, 4, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 1) != CUFFT_SUCCESS);
    EXPECT(cufftSetStream(4711, 0) == CUFFT_INVALID_PLAN);

    const Array<cufftComplex> x(8);
    OK(cufftCreate(&plan));
    OK(cufftSetAutoAllocation(plan, 1));
    EXPECT(cufftExecC2C(plan, x, x, CUFFT_FORWARD) == CUFFT_INVALID_PLAN); // nothing is planned
    OK(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size));
    EXPECT(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size) == CUFFT_INVALID_PLAN); // a second time
    EXPECT(cufftExecC2C(plan, x, x, 0) == CUFFT_INVALID_VALUE);
#ifdef __CU2CPP__ // NVIDIA's cuFFT does not look at these arguments
    cufftHandle none;
    EXPECT(cufftPlan2d(&none, 8, 0, CUFFT_C2C) == CUFFT_INVALID_SIZE);
    EXPECT(cufftExecC2C(plan, NULL, x, CUFFT_FORWARD) == CUFFT_INVALID_VALUE);
    EXPECT(cufftExecR2C(plan, (float *)x.data, x) != CUFFT_SUCCESS); // a plan of another type
#endif
    OK(cufftExecC2C(plan, x, x, CUFFT_FORWARD));
    OK(cufftDestroy(plan));
    EXPECT(cufftDestroy(plan) == CUFFT_INVALID_PLAN);

    long long eight = 8;
    OK(cufftCreate(&plan));
    const auto make = [&](cudaDataType in, cudaDataType out, cudaDataType execution) {
        return cufftXtMakePlanMany(plan, 1, &eight, NULL, 1, 0, in, NULL, 1, 0, out, 1, &size, execution);
    };
    EXPECT(make(CUDA_R_32F, CUDA_R_32F, CUDA_C_32F) != CUFFT_SUCCESS);
    EXPECT(make(CUDA_C_32F, CUDA_C_64F, CUDA_C_64F) != CUFFT_SUCCESS);
    OK(make(CUDA_C_64F, CUDA_R_64F, CUDA_C_64F));
}

// A captured transform runs when the graph does. On the CPU back end it may outlive its plan.
TEST(transforms_are_captured) {
    const int n = 64;
    const Array<cufftComplex> x(std::vector<cufftComplex>(n, make_cuComplex(1, 0)));
    Captured graph;
    const auto plan = STORED(cufftHandle, cufftPlan1d(&it, n, CUFFT_C2C, 1));
    OK(cufftSetStream(plan, graph.stream));
    const auto there_and_back = [&] {
        OK(cufftExecC2C(plan, x, x, CUFFT_FORWARD));
        OK(cufftExecC2C(plan, x, x, CUFFT_INVERSE));
    };
    there_and_back(); // loads the kernels of cuFFT, which is not allowed during a capture
    OK(cudaStreamSynchronize(graph.stream));
    x.to_device();
    graph.capture(there_and_back);
    EXPECT(x.back()[0].x == 1); // captured, not done
#ifdef __CU2CPP__
    OK(cufftDestroy(plan));
#endif
    graph.run();
    graph.run();
    for (const cufftComplex &z : x.back())
        EXPECT(close<Floats>(z, n * n, n * n));
}

TEST(threads_plan_at_the_same_time) {
    in_threads(4, [](int t) {
        for (int n = 50 + t; n < 250; n += 4) {
            const HandleOf<cufftHandle, cufftPlan1d, cufftDestroy> plan(n, CUFFT_C2C, 1);
            const Array<cufftComplex> x(std::vector<cufftComplex>(n, make_cuComplex(1, 0)));
            OK(cufftExecC2C(plan, x, x, CUFFT_FORWARD));
            const std::vector<cufftComplex> got = x.back();
            for (int i = 0; i < n; i++)
                EXPECT(close<Floats>(got[i], i == 0 ? n : 0, n));
        }
    });
}
