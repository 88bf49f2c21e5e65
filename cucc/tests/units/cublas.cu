// SPDX-License-Identifier: MIT
// Needs: cublas
// cuBLAS on the CPU back end: each function against loops in double, for several shapes and options. With
// nvcc the same cases run against NVIDIA's cuBLAS.
#include <cublas_v2.h>
#include "linear.h"

// The library's functions for both types, by overloading
#define TYPED(name)                                                                                          \
    template <class... A> static cublasStatus_t name(cublasHandle_t h, float, A... a) {                      \
        return cublasS##name(h, a...);                                                                       \
    }                                                                                                        \
    template <class... A> static cublasStatus_t name(cublasHandle_t h, double, A... a) {                     \
        return cublasD##name(h, a...);                                                                       \
    }
TYPED(dot)
TYPED(axpy)
TYPED(scal)
TYPED(nrm2)
TYPED(asum)
TYPED(gemv)
TYPED(ger)
TYPED(gemm)

struct Handle {
    cublasHandle_t h;
    Handle() { CALL(cublasCreate(&h)); }
    ~Handle() { CALL(cublasDestroy(h)); }
    operator cublasHandle_t() const { return h; }
};

template <class T> static void vectors() {
    const Handle h;
    for (int n : {0, 1, 2, 1000}) {
        const int incx = pick(1, 3), incy = pick(0, 1) ? pick(1, 3) : -pick(1, 3);
        Matrix<T> x(incx, n > 0 ? n : 1), y(abs(incy), n > 0 ? n : 1);
        const auto of_x = [&](int i) { return (double)x.host[(size_t)i * incx]; };
        const auto at_y = [&](int i) { return (size_t)(incy > 0 ? i : n - 1 - i) * abs(incy); };
        double sum = 0, squares = 0, sizes = 0;
        for (int i = 0; i < n; i++) {
            sum += of_x(i) * y.host[at_y(i)];
            squares += of_x(i) * of_x(i);
            sizes += fabs(of_x(i));
        }
        T result = -1;
        CALL(dot(h, T(), n, x.device, incx, y.device, incy, &result));
        EXPECT(near<T>(result, sum, n + 1));
        CALL(nrm2(h, T(), n, x.device, incx, &result));
        EXPECT(near<T>(result, sqrt(squares), n + 1));
        CALL(asum(h, T(), n, x.device, incx, &result));
        EXPECT(near<T>(result, sizes, n + 1));

        const T alpha = 0.75;
        CALL(axpy(h, T(), n, &alpha, x.device, incx, y.device, incy));
        const std::vector<T> after = y.back();
        for (int i = 0; i < n; i++)
            if (!EXPECT(near<T>(after[at_y(i)], y.host[at_y(i)] + alpha * of_x(i), 2)))
                break;
        CALL(scal(h, T(), n, &alpha, x.device, incx));
        const std::vector<T> scaled = x.back();
        for (size_t i = 0; i < scaled.size() && n; i++)
            if (!EXPECT(near<T>(scaled[i], x.host[i] * (i % incx ? 1 : (double)alpha), 2)))
                break;
    }
}
TEST(vectors) {
    vectors<float>(), vectors<double>();
}

TEST(index_of_the_largest_and_smallest) {
    const Handle h;
    const float values[] = {1, -5, 0.5f, 5, -0.25f, 0.25f};
    float *x;
    CALL(cudaMalloc(&x, sizeof(values)));
    CALL(cublasSetVector(6, sizeof(float), values, 1, x, 1));
    int index = -1;
    CALL(cublasIsamax(h, 6, x, 1, &index));
    EXPECT(index == 2);
    CALL(cublasIsamin(h, 6, x, 1, &index));
    EXPECT(index == 5);
    CALL(cublasIsamax(h, 3, x, 2, &index));
    EXPECT(index == 1);
    CALL(cublasIsamax(h, 0, x, 1, &index));
    EXPECT(index == 0);
}

template <class T> static void products() {
    const Handle h;
    for (int round = 0; round < 12; round++) {
        const int m = pick(1, 40), n = pick(1, 40), k = pick(1, 40), more = pick(0, 3);
        const cublasOperation_t opa = (cublasOperation_t)pick(0, 1), opb = (cublasOperation_t)pick(0, 1);
        Matrix<T> A(opa ? k : m, opa ? m : k, more), B(opb ? n : k, opb ? k : n, more), C(m, n, more);
        const T alpha = pick(-4, 4), beta = pick(-1, 1);
        CALL(gemm(h, T(), opa, opb, m, n, k, &alpha, A.device, A.ld, B.device, B.ld, &beta, C.device, C.ld));
        const std::vector<T> got = C.back();
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double sum = 0;
                for (int l = 0; l < k; l++)
                    sum += A.at(i, l, opa) * B.at(l, j, opb);
                if (!EXPECT(near<T>(got[i + (size_t)j * C.ld], alpha * sum + beta * C.at(i, j), 5 * k + 1)))
                    return;
            }

        Matrix<T> in(opa ? A.rows : A.columns, 1), out(opa ? A.columns : A.rows, 1);
        CALL(
            gemv(h, T(), opa, A.rows, A.columns, &alpha, A.device, A.ld, in.device, 1, &beta, out.device, 1));
        const std::vector<T> vector = out.back();
        for (int i = 0; i < out.rows; i++) {
            double sum = 0;
            for (int l = 0; l < in.rows; l++)
                sum += A.at(i, l, opa) * in.at(l, 0);
            EXPECT(near<T>(vector[i], alpha * sum + beta * out.at(i, 0), 5 * in.rows + 1));
        }

        Matrix<T> u(m, 1), v(n, 1), D(m, n, more); // D + alpha u vT
        CALL(ger(h, T(), m, n, &alpha, u.device, 1, v.device, 1, D.device, D.ld));
        const std::vector<T> outer = D.back();
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                EXPECT(near<T>(outer[i + (size_t)j * D.ld], D.at(i, j) + alpha * u.at(i, 0) * v.at(j, 0), 8));
    }
}
TEST(products) {
    products<float>(), products<double>();
}

TEST(batches_of_products) {
    const Handle h;
    const int m = 3, n = 4, k = 5, count = 6;
    Matrix<float> A(m, k * count), B(k, n * count), C(m, n * count), D(m, n * count);
    const float one = 1, zero = 0;
    CALL(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, A.device, m, m * k, B.device,
                                   k, k * n, &zero, C.device, m, m * n, count));
    std::vector<const float *> a, b;
    std::vector<float *> d;
    for (int i = 0; i < count; i++) {
        a.push_back(A.device + i * m * k);
        b.push_back(B.device + i * k * n);
        d.push_back(D.device + i * m * n);
    }
    const Array<const float *> list_a(a), list_b(b);
    const Array<float *> list_d(d);
    CALL(cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, list_a.device, m, list_b.device, k,
                            &zero, list_d.device, m, count));
    const std::vector<float> strided = C.back(), listed = D.back();
    for (int which = 0; which < count; which++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double sum = 0;
                for (int l = 0; l < k; l++)
                    sum += A.at(i, l + which * k) * B.at(l, j + which * n);
                EXPECT(near<float>(strided[i + (j + which * n) * m], sum, k));
                EXPECT(near<float>(listed[i + (j + which * n) * m], sum, k));
            }
}

TEST(triangles_symmetric_and_diagonal_matrices) {
    const Handle h;
    for (int round = 0; round < 8; round++) {
        const int m = pick(1, 20), n = pick(1, 20), more = pick(0, 2);
        const cublasSideMode_t side = (cublasSideMode_t)pick(0, 1);
        const cublasFillMode_t fill = (cublasFillMode_t)pick(0, 1);
        const cublasOperation_t op = (cublasOperation_t)pick(0, 1);
        const int a = side == CUBLAS_SIDE_LEFT ? m : n;
        Matrix<double> A(a, a, more), B(m, n, more), C(m, n, more);
        for (int i = 0; i < a; i++) // far from singular
            A.host[i + (size_t)i * A.ld] = 40;
        A.to_device();
        const double alpha = 2, beta = -1, one = 1;
        const auto triangle = [&](int i, int j) {
            if (op == CUBLAS_OP_T)
                std::swap(i, j);
            return (fill == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j) ? A.at(i, j) : 0;
        };
        const auto symmetric = [&](int i, int j) {
            return (fill == CUBLAS_FILL_MODE_LOWER) == (i >= j) ? A.at(i, j) : A.at(j, i);
        };
        CALL(cublasDtrmm(h, side, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &alpha, A.device, A.ld, B.device,
                         B.ld, C.device, C.ld));
        const std::vector<double> product = C.back();
        CALL(
            cublasDtrsm(h, side, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &one, A.device, A.ld, C.device, C.ld));
        const std::vector<double> solved = C.back(); // the solution of op(A) X = alpha op(A) B is alpha B
        C.to_device();
        CALL(cublasDsymm_v2(h, side, fill, m, n, &alpha, A.device, A.ld, B.device, B.ld, &beta, C.device,
                            C.ld));
        const std::vector<double> mirrored = C.back();
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                double by_triangle = 0, by_symmetric = 0;
                for (int l = 0; l < a; l++) {
                    const bool left = side == CUBLAS_SIDE_LEFT;
                    const double b = left ? B.at(l, j) : B.at(i, l);
                    by_triangle += b * (left ? triangle(i, l) : triangle(l, j));
                    by_symmetric += b * (left ? symmetric(i, l) : symmetric(l, j));
                }
                const size_t at = i + (size_t)j * C.ld;
                EXPECT(near<double>(product[at], alpha * by_triangle, 2000));
                EXPECT(near<double>(solved[at], alpha * B.at(i, j), 2000));
                EXPECT(near<double>(mirrored[at], alpha * by_symmetric - C.at(i, j), 2000));
            }
    }
}

TEST(triangles_and_vectors) {
    const Handle h;
    for (int round = 0; round < 8; round++) {
        const int n = pick(1, 20), inc = pick(0, 1) ? pick(1, 3) : -pick(1, 3);
        const cublasFillMode_t fill = (cublasFillMode_t)(round & 1);
        const cublasOperation_t op = (cublasOperation_t)(round >> 1 & 1);
        const bool unit = round >> 2 & 1;
        Matrix<double> A(n, n, pick(0, 2)), x(abs(inc), n);
        for (int i = 0; i < n; i++)
            A.host[i + (size_t)i * A.ld] = unit ? NAN : 40; // not read, or far from singular
        A.to_device();
        const auto place = [=](int i) { return (size_t)(inc > 0 ? i : n - 1 - i) * abs(inc); };
        const cublasDiagType_t diagonal = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
        CALL(cublasDtrmv(h, fill, op, diagonal, n, A.device, A.ld, x.device, inc));
        const std::vector<double> product = x.back();
        CALL(cublasDtrsv(h, fill, op, diagonal, n, A.device, A.ld, x.device, inc));
        const std::vector<double> solved = x.back();
        for (int i = 0; i < n; i++) {
            double sum = (unit ? 1 : 40) * x.host[place(i)];
            for (int j = 0; j < n; j++)
                if (i != j && (op == CUBLAS_OP_T ? j > i : i > j) == (fill == CUBLAS_FILL_MODE_LOWER))
                    sum += A.at(i, j, op) * x.host[place(j)];
            EXPECT(near<double>(product[place(i)], sum, 100));
            EXPECT(unit || near<double>(solved[place(i)], x.host[place(i)],
                                        100)); // a unit triangle may be ill-conditioned
        }
    }
}

TEST(copies_swaps_and_rotations) {
    const Handle h;
    const int n = 50;
    const Matrix<float> x(2, n), y(3, n), z(1, n);
    CALL(cublasScopy(h, n, x.device, 2, z.device, -1));
    CALL(cublasSswap(h, n, x.device, 2, y.device, 3));
    const std::vector<float> copied = z.back(), first = x.back(), second = y.back();
    const float c = 0.6f, s = 0.8f;
    CALL(cublasSrot(h, n, x.device, 2, y.device, 3, &c, &s));
    const std::vector<float> turned = x.back(), other = y.back();
    for (int i = 0; i < n; i++) {
        EXPECT(copied[n - 1 - i] == x.host[2 * i]);
        EXPECT(first[2 * i] == y.host[3 * i] && first[2 * i + 1] == x.host[2 * i + 1]);
        EXPECT(second[3 * i] == x.host[2 * i] && second[3 * i + 1] == y.host[3 * i + 1]);
        EXPECT(near<float>(turned[2 * i], c * first[2 * i] + s * second[3 * i], 2));
        EXPECT(near<float>(other[3 * i], c * second[3 * i] - s * first[2 * i], 2));
    }
}

TEST(matrices_to_the_device_and_back) {
    const std::vector<double> from = noise<double>(7 * 5);
    std::vector<double> to(4 * 5, -9);
    Matrix<double> on_device(3, 5, 3);
    CALL(cublasSetMatrix(3, 5, sizeof(double), from.data(), 7, on_device.device, 6));
    CALL(cublasGetMatrix(3, 5, sizeof(double), on_device.device, 6, to.data(), 4));
    for (int j = 0; j < 5; j++)
        for (int i = 0; i < 4; i++)
            EXPECT(to[i + 4 * j] == (i < 3 ? from[i + 7 * j] : -9));
    CALL(cublasSetVector(5, sizeof(double), from.data(), 7, on_device.device, 2));
    CALL(cublasGetVector(5, sizeof(double), on_device.device, 2, to.data(), 3));
    for (int j = 0; j < 5; j++)
        EXPECT(to[3 * j] == from[7 * j]);
#ifdef __CU2CPP__ // cuBLAS 13 does not check that a column fits
    EXPECT(cublasSetMatrix(3, 5, sizeof(double), from.data(), 2, on_device.device, 6) ==
           CUBLAS_STATUS_INVALID_VALUE);
#endif
}

TEST(transposition_with_geam) {
    const Handle h;
    Matrix<float> A(7, 5, 2), C(5, 7, 1);
    const float one = 1, zero = 0;
    CALL(cublasSgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, 5, 7, &one, A.device, A.ld, &zero, C.device, C.ld, C.device,
                     C.ld));
    const std::vector<float> got = C.back();
    for (int j = 0; j < 7; j++)
        for (int i = 0; i < 5; i++)
            EXPECT(got[i + j * C.ld] == A.at(j, i));
}

TEST(scalars_and_results_on_the_device) {
    const Handle h;
    CALL(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
    Matrix<float> x(100, 1), y(100, 1);
    float *result, back, sum = 0;
    CALL(cudaMalloc(&result, sizeof(float)));
    CALL(cublasSdot(h, 100, x.device, 1, y.device, 1, result));
    CALL(cublasSscal(h, 100, result, x.device, 1)); // by the result before
    CALL(cudaMemcpy(&back, result, sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 100; i++)
        sum += x.host[i] * y.host[i];
    EXPECT(near<float>(back, sum, 100));
    const std::vector<float> scaled = x.back();
    for (int i = 0; i < 100; i++)
        EXPECT(near<float>(scaled[i], x.host[i] * back, 20));
}

TEST(calls_are_captured) {
    const Handle h;
    cudaStream_t stream;
    CALL(cudaStreamCreate(&stream));
    CALL(cublasSetStream(h, stream));
    Matrix<float> x(100, 1);
    const float two = 2;
    cudaGraph_t graph;
    cudaGraphExec_t runs;
    CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CALL(cublasSscal(h, 100, &two, x.device, 1));
    CALL(cublasSscal(h, 100, &two, x.device, 1));
    CALL(cudaStreamEndCapture(stream, &graph));
    CALL(cudaGraphInstantiate(&runs, graph, 0));
    EXPECT(x.back() == x.host); // captured, not done
    CALL(cudaGraphLaunch(runs, stream));
    CALL(cudaGraphLaunch(runs, stream));
    CALL(cudaStreamSynchronize(stream));
    const std::vector<float> scaled = x.back();
    for (int i = 0; i < 100; i++)
        EXPECT(scaled[i] == 16 * x.host[i]);
}

TEST(sixteen_bit_inputs) {
    const Handle h;
    const int m = 5, n = 3, k = 4;
    // 1.5 has the bits 3e00 as half, and 3fc0 as bfloat16; 2 has 4000 in both.
    using Bits = std::vector<unsigned short>;
    const Array<unsigned short> a(Bits(m * k, 0x3e00)), bf(Bits(m * k, 0x3fc0)), b(Bits(k * n, 0x4000)),
        half(m * n);
    const Array<float> full(m * n);
    const float one = 1, zero = 0;
    CALL(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a.device, CUDA_R_16F, m, b.device,
                      CUDA_R_16F, k, &zero, half.device, CUDA_R_16F, m, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT));
    CALL(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, bf.device, CUDA_R_16BF, m, b.device,
                      CUDA_R_16BF, k, &zero, full.device, CUDA_R_32F, m, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT));
    EXPECT(half.back() == Bits(m * n, 0x4a00)); // 4 * 1.5 * 2 = 12
    EXPECT(full.back() == std::vector<float>(m * n, 12));
}

TEST(bad_arguments) {
    const Handle h;
    Matrix<float> A(4, 4);
    const float one = 1;
    EXPECT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, -1, &one, A.device, 4, A.device, 4, &one, A.device,
                       4) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, A.device, 3, A.device, 4, &one, A.device,
                       4) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSscal(NULL, 4, &one, A.device, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
}
