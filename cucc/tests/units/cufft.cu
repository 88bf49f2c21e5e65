// SPDX-License-Identifier: MIT
// Needs: cufft
// cuFFT on the CPU back end: each transform against the definition of the DFT in double, for several shapes
// and layouts. With nvcc (-lcufft) the same cases run against NVIDIA's cuFFT.
#include <cufft.h>
#include <cmath>
#include <complex>
#include <thread>
#include "random.h"

typedef std::complex<double> Complex;

// The library's names for both precisions
struct Floats {
    typedef float Real;
    typedef cufftComplex Pair;
    static const cufftType c2c = CUFFT_C2C, r2c = CUFFT_R2C, c2r = CUFFT_C2R;
    static cufftResult run(cufftHandle p, Pair *in, Pair *out, int d) { return cufftExecC2C(p, in, out, d); }
    static cufftResult run(cufftHandle p, Real *in, Pair *out) { return cufftExecR2C(p, in, out); }
    static cufftResult run(cufftHandle p, Pair *in, Real *out) { return cufftExecC2R(p, in, out); }
};
struct Doubles {
    typedef double Real;
    typedef cufftDoubleComplex Pair;
    static const cufftType c2c = CUFFT_Z2Z, r2c = CUFFT_D2Z, c2r = CUFFT_Z2D;
    static cufftResult run(cufftHandle p, Pair *in, Pair *out, int d) { return cufftExecZ2Z(p, in, out, d); }
    static cufftResult run(cufftHandle p, Real *in, Pair *out) { return cufftExecD2Z(p, in, out); }
    static cufftResult run(cufftHandle p, Pair *in, Real *out) { return cufftExecZ2D(p, in, out); }
};

// An array in device memory, from element `skip` of its allocation on
template <class T> struct Array {
    size_t n;
    T *start, *data;
    explicit Array(size_t n, size_t skip = 0) : n(n) {
        CALL(cudaMalloc(&start, (n + skip) * sizeof(T)));
        data = start + skip;
    }
    ~Array() { cudaFree(start); }
    Array(const Array &) = delete;
    void set(const std::vector<T> &host) {
        CALL(cudaMemcpy(data, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    std::vector<T> get() const {
        std::vector<T> host(n);
        CALL(cudaDeviceSynchronize());
        CALL(cudaMemcpy(host.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
        return host;
    }
};

// A shape, and one transform of it: n[0] x n[1] x n[2], with 1 for dimensions that it lacks
struct Shape {
    int rank, n[3];
    int size() const { return n[0] * n[1] * n[2]; }
    int last() const { return n[rank - 1]; }
    // Index of element i of a contiguous array if its rows are `row` elements long
    size_t at(int i, int row) const { return (size_t)(i / last()) * row + i % last(); }
};
static std::vector<Complex> dft(const Shape &s, const std::vector<Complex> &x, int sign) {
    std::vector<Complex> result(x.size());
    const int b = s.n[1], c = s.n[2];
    for (int k = 0; k < s.size(); k++)
        for (int i = 0; i < s.size(); i++) {
            const double turns = (double)(k / (b * c)) * (i / (b * c)) / s.n[0] +
                                 (double)(k / c % b) * (i / c % b) / b + (double)(k % c) * (i % c) / c;
            result[k] += x[i] * std::polar(1.0, sign * 2 * M_PI * fmod(turns, 1));
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
    std::vector<Complex> x(n);
    for (Complex &z : x)
        z = {pick(-1000, 1000) / 1000.0, pick(-1000, 1000) / 1000.0};
    return x;
}
template <class Library> static double limit(size_t n) {
    return (sizeof(typename Library::Real) == 4 ? 4e-6 : 4e-14) * (1 + n);
}
template <class Library> static bool near(const Complex &got, const Complex &expected, size_t n) {
    return std::abs(got - expected) <= limit<Library>(n);
}

// Plans of all dimensions and batches, with every function that makes one
static cufftHandle plan_of(const Shape &s, cufftType type, int batch) {
    cufftHandle plan = CUFFT_PLAN_NULL;
    const int *n = s.n;
    size_t size = 1 << 30;
    if (pick(0, 1) && (batch == 1 || s.rank == 1)) {
        CALL(s.rank == 1   ? cufftPlan1d(&plan, n[0], type, batch)
             : s.rank == 2 ? cufftPlan2d(&plan, n[0], n[1], type)
                           : cufftPlan3d(&plan, n[0], n[1], n[2], type));
    } else if (pick(0, 1) && (batch == 1 || s.rank == 1)) {
        CALL(cufftCreate(&plan));
        CALL(s.rank == 1   ? cufftMakePlan1d(plan, n[0], type, batch, &size)
             : s.rank == 2 ? cufftMakePlan2d(plan, n[0], n[1], type, &size)
                           : cufftMakePlan3d(plan, n[0], n[1], n[2], type, &size));
        EXPECT(size < 1 << 30);
    } else {
        CALL(cufftPlanMany(&plan, s.rank, (int *)n, NULL, 1, 0, NULL, 1, 0, type, batch));
    }
    return plan;
}

template <class Library> static void complex_transforms() {
    typedef typename Library::Pair Pair;
    for (int round = 0; round < 30; round++) {
        const Shape s = random_shape();
        const int batch = pick(1, 3), sign = pick(0, 1) ? CUFFT_FORWARD : CUFFT_INVERSE, n = s.size();
        const size_t skip = pick(0, 3), all = (size_t)n * batch;
        const std::vector<Complex> x = random_numbers(all);
        std::vector<Pair> host(all);
        for (size_t i = 0; i < all; i++)
            host[i].x = x[i].real(), host[i].y = x[i].imag();
        Array<Pair> in(all, skip), out(all);
        in.set(host);
        const cufftHandle plan = plan_of(s, Library::c2c, batch);
        CALL(Library::run(plan, in.data, out.data, sign));
        EXPECT(memcmp(in.get().data(), host.data(), all * sizeof(Pair)) == 0); // the input is kept
        CALL(Library::run(plan, in.data, in.data, sign));
        const std::vector<Pair> got = out.get(), in_place = in.get();
        for (int b = 0; b < batch; b++) {
            const std::vector<Complex> expected = dft(s, {x.begin() + b * n, x.begin() + (b + 1) * n}, sign);
            for (int i = 0; i < n; i++)
                for (const Pair &z : {got[b * n + i], in_place[b * n + i]})
                    if (!EXPECT(near<Library>({z.x, z.y}, expected[i], n)))
                        return;
        }
        CALL(cufftDestroy(plan));
    }
}
TEST(complex_numbers) {
    complex_transforms<Floats>(), complex_transforms<Doubles>();
}

// Real to complex and back. In place, each row of real numbers is padded to the length of the complex ones.
template <class Library> static void real_transforms() {
    typedef typename Library::Real Real;
    typedef typename Library::Pair Pair;
    for (int round = 0; round < 30; round++) {
        const Shape s = random_shape();
        const int batch = pick(1, 3), n = s.size(), half = s.last() / 2 + 1;
        const bool in_place = pick(0, 1);
        const int row = in_place ? 2 * half : s.last();
        const size_t reals = (size_t)n / s.last() * row, pairs = (size_t)n / s.last() * half;
        std::vector<Complex> x = random_numbers((size_t)n * batch);
        std::vector<Real> host(reals * batch);
        for (int i = 0; i < n * batch; i++) {
            x[i] = x[i].real();
            host[i / n * reals + s.at(i % n, row)] = x[i].real();
        }
        Array<Real> in(reals * batch, 2 * pick(0, 1));
        Array<Pair> separate(pairs * batch);
        Pair *const middle = in_place ? (Pair *)in.data : separate.data;
        in.set(host);
        const cufftHandle plan = plan_of(s, Library::r2c, batch), back = plan_of(s, Library::c2r, batch);
        CALL(Library::run(plan, in.data, middle));
        std::vector<Pair> got(pairs * batch);
        CALL(cudaMemcpy(got.data(), middle, got.size() * sizeof(Pair), cudaMemcpyDeviceToHost));
        for (int b = 0; b < batch; b++) {
            const std::vector<Complex> expected = dft(s, {x.begin() + b * n, x.begin() + (b + 1) * n}, -1);
            for (int i = 0; i < n; i++) {
                const Pair &z = got[b * pairs + s.at(i, half)];
                if (i % s.last() < half && !EXPECT(near<Library>({z.x, z.y}, expected[i], n)))
                    return;
            }
        }
        CALL(cudaMemset(in.data, 0, in_place ? 0 : reals * batch * sizeof(Real)));
        CALL(Library::run(back, middle, in.data));
        const std::vector<Real> again = in.get();
        for (int i = 0; i < n * batch; i++)
            if (!EXPECT(near<Library>(again[i / n * reals + s.at(i % n, row)], x[i] * (double)n, 2 * n)))
                return;
        CALL(cufftDestroy(plan));
        CALL(cufftDestroy(back));
    }
}
TEST(real_numbers) {
    real_transforms<Floats>(), real_transforms<Doubles>();
}

// A plan works for arrays at any address, whichever it saw first, and one dimension back to real numbers
// keeps the input.
TEST(any_address) {
    const int n = 4096;
    const std::vector<Complex> x = random_numbers(n / 2 + 1);
    std::vector<cufftComplex> host;
    for (const Complex &z : x)
        host.push_back(make_cuComplex(z.real(), z.imag()));
    host[0].y = host[n / 2].y = 0;
    cufftHandle plan;
    CALL(cufftPlan1d(&plan, n, CUFFT_C2R, 1));
    std::vector<float> first;
    for (int skip : {0, 1, 3, 2, 0}) {
        Array<cufftComplex> in(host.size(), skip);
        Array<float> out(n, 2 * skip); // cuFFT wants real arrays at multiples of two floats
        in.set(host);
        CALL(cufftExecC2R(plan, in.data, out.data));
        EXPECT(memcmp(in.get().data(), host.data(), host.size() * sizeof(cufftComplex)) == 0);
        const std::vector<float> got = out.get();
        if (first.empty())
            first = got;
        double sum = 0; // of all results: n times the first number
        for (int i = 0; i < n; i++) {
            sum += got[i];
            EXPECT(near<Floats>(got[i], first[i], 100));
        }
        EXPECT(near<Floats>(sum, n * (double)host[0].x, 100 * n));
    }
}

// Columns of a matrix, with gaps, into rows that are longer than the result
template <class Integer, class Make> static void strided(Make make) {
    Integer n[] = {12}, inembed[] = {12}, onembed[] = {12};
    const int columns = 5, stride = 7, length = 15;
    const std::vector<Complex> x = random_numbers(12 * stride);
    std::vector<cufftComplex> host(x.size()), marked(columns * length);
    for (size_t i = 0; i < x.size(); i++)
        host[i] = make_cuComplex(x[i].real(), x[i].imag());
    for (cufftComplex &z : marked)
        z = make_cuComplex(77, 78);
    Array<cufftComplex> in(x.size()), out(marked.size());
    in.set(host);
    out.set(marked);
    cufftHandle plan;
    CALL(cufftCreate(&plan));
    size_t size;
    CALL(make(plan, 1, n, inembed, stride, 1, onembed, 1, length, CUFFT_C2C, columns, &size));
    CALL(cufftExecC2C(plan, in.data, out.data, CUFFT_FORWARD));
    const std::vector<cufftComplex> got = out.get();
    for (int c = 0; c < columns; c++) {
        std::vector<Complex> column;
        for (int i = 0; i < 12; i++)
            column.push_back(x[i * stride + c]);
        const std::vector<Complex> expected = dft({1, {12, 1, 1}}, column, -1);
        for (int i = 0; i < length; i++) {
            const cufftComplex z = got[c * length + i];
            EXPECT(near<Floats>({z.x, z.y}, i < 12 ? expected[i] : Complex(77, 78), 12));
        }
    }
}
TEST(strides) {
    strided<int>(cufftMakePlanMany);
    strided<long long>(cufftMakePlanMany64);
}

// A rectangle within a larger matrix, real to complex
TEST(rectangle_within_a_matrix) {
    const Shape s = {2, {6, 10, 1}};
    int n[] = {6, 10}, inembed[] = {8, 13}, onembed[] = {6, 9};
    const std::vector<Complex> numbers = random_numbers(8 * 13 * 2);
    std::vector<double> host;
    for (const Complex &z : numbers)
        host.push_back(z.real());
    Array<double> in(host.size());
    Array<cufftDoubleComplex> out(6 * 9 * 2);
    in.set(host);
    cufftHandle plan;
    CALL(cufftPlanMany(&plan, 2, n, inembed, 1, 8 * 13, onembed, 1, 6 * 9, CUFFT_D2Z, 2));
    CALL(cufftExecD2Z(plan, in.data, out.data));
    const std::vector<cufftDoubleComplex> got = out.get();
    for (int b = 0; b < 2; b++) {
        std::vector<Complex> x;
        for (int i = 0; i < 60; i++)
            x.push_back(host[b * 8 * 13 + i / 10 * 13 + i % 10]);
        const std::vector<Complex> expected = dft(s, x, -1);
        for (int i = 0; i < 60; i++) {
            const cufftDoubleComplex z = got[b * 6 * 9 + i / 10 * 9 + i % 10 % 6];
            if (i % 10 < 6)
                EXPECT(near<Doubles>({z.x, z.y}, expected[i], 60));
        }
    }
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
    EXPECT(cufftDestroy(4711) == CUFFT_INVALID_PLAN);
    EXPECT(cufftSetStream(4711, 0) == CUFFT_INVALID_PLAN);
    EXPECT(cufftGetSize(4711, &size) == CUFFT_INVALID_PLAN);

    Array<cufftComplex> x(8);
    CALL(cudaMemset(x.data, 0, 8 * sizeof(cufftComplex)));
    CALL(cufftCreate(&plan));
    EXPECT(cufftExecC2C(plan, x.data, x.data, CUFFT_FORWARD) == CUFFT_INVALID_PLAN); // nothing is planned
    CALL(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size));
    CALL(cufftGetSize(plan, &size));
    EXPECT(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size) == CUFFT_INVALID_PLAN); // a second time
    EXPECT(cufftExecC2C(plan, x.data, x.data, 0) == CUFFT_INVALID_VALUE);
#ifndef __NVCC__ // NVIDIA's cuFFT does not look at these arguments
    cufftHandle none;
    EXPECT(cufftPlan2d(&none, 8, 0, CUFFT_C2C) == CUFFT_INVALID_SIZE);
    EXPECT(cufftExecC2C(plan, NULL, x.data, CUFFT_FORWARD) == CUFFT_INVALID_VALUE);
    EXPECT(cufftExecR2C(plan, (float *)x.data, x.data) != CUFFT_SUCCESS); // a plan of another type
#endif
    CALL(cufftExecC2C(plan, x.data, x.data, CUFFT_FORWARD));
    CALL(cufftDestroy(plan));
    EXPECT(cufftExecC2C(plan, x.data, x.data, CUFFT_FORWARD) == CUFFT_INVALID_PLAN);
    EXPECT(cufftDestroy(plan) == CUFFT_INVALID_PLAN);
}

TEST(sizes_and_version) {
    cufftHandle plan;
    size_t size = 1;
    int version = 0, major = 0;
    CALL(cufftEstimate1d(100, CUFFT_R2C, 2, &size));
    CALL(cufftCreate(&plan));
    CALL(cufftSetAutoAllocation(plan, 1));
    CALL(cufftGetSize2d(plan, 10, 20, CUFFT_C2C, &size));
    CALL(cufftGetVersion(&version));
    CALL(cufftGetProperty(MAJOR_VERSION, &major));
    EXPECT(version >= 10000 && version / 1000 == major);
}

// A captured transform runs when the graph does. On the CPU back end it may outlive its plan.
TEST(transforms_are_captured) {
    const int n = 64;
    std::vector<cufftComplex> ones(n, make_cuComplex(1, 0));
    Array<cufftComplex> x(n);
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t runs = NULL;
    cufftHandle plan;
    CALL(cudaStreamCreate(&stream));
    CALL(cufftPlan1d(&plan, n, CUFFT_C2C, 1));
    CALL(cufftSetStream(plan, stream));
    // The first transforms load the kernels of cuFFT, which is not allowed during a capture.
    CALL(cufftExecC2C(plan, x.data, x.data, CUFFT_FORWARD));
    CALL(cufftExecC2C(plan, x.data, x.data, CUFFT_INVERSE));
    CALL(cudaStreamSynchronize(stream));
    x.set(ones);
    CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CALL(cufftExecC2C(plan, x.data, x.data, CUFFT_FORWARD));
    CALL(cufftExecC2C(plan, x.data, x.data, CUFFT_INVERSE));
    CALL(cudaStreamEndCapture(stream, &graph));
    CALL(cudaGraphInstantiate(&runs, graph, 0));
    EXPECT(x.get()[0].x == 1); // captured, not done
#ifdef __CU2CPP__
    CALL(cufftDestroy(plan));
#endif
    CALL(cudaGraphLaunch(runs, stream));
    CALL(cudaGraphLaunch(runs, stream));
    CALL(cudaStreamSynchronize(stream));
    for (const cufftComplex &z : x.get())
        EXPECT(near<Floats>({z.x, z.y}, n * n, n * n));
    CALL(cudaGraphExecDestroy(runs));
    CALL(cudaGraphDestroy(graph));
#ifndef __CU2CPP__
    CALL(cufftDestroy(plan));
#endif
}

TEST(threads_plan_at_the_same_time) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t] {
            for (int n = 50 + t; n < 250; n += 4) {
                cufftHandle plan;
                Array<cufftComplex> x(n);
                x.set(std::vector<cufftComplex>(n, make_cuComplex(1, 0)));
                CALL(cufftPlan1d(&plan, n, CUFFT_C2C, 1));
                CALL(cufftExecC2C(plan, x.data, x.data, CUFFT_FORWARD));
                const std::vector<cufftComplex> got = x.get();
                for (int i = 0; i < n; i++)
                    EXPECT(near<Floats>({got[i].x, got[i].y}, i == 0 ? n : 0, n));
                CALL(cufftDestroy(plan));
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}
