// SPDX-License-Identifier: MIT
// Needs: cublas
// cuBLAS: each function against loops in double, for several shapes and options.
#include <cublasLt.h>
#include <cublas_v2.h>
#include "linear.h"

TYPED(cublas, dot)
TYPED(cublas, axpy)
TYPED(cublas, scal)
TYPED(cublas, nrm2)
TYPED(cublas, asum)
TYPED(cublas, gemv)
TYPED(cublas, ger)
TYPED(cublas, gemm)

typedef HandleOf<cublasHandle_t, cublasCreate, cublasDestroy> Handle;

TEST_OF(vectors, float, double) {
    const Handle h;
    for (int n : {0, 1, 2, 1000}) {
        const int incx = pick(1, 3), incy = pick(0, 1) ? pick(1, 3) : -pick(1, 3);
        const Matrix<T> x(incx, n > 0 ? n : 1), y(abs(incy), n > 0 ? n : 1); // the first rows are the vectors
        const auto column = [=](int i) { return incy > 0 ? i : n - 1 - i; }; // of y, for element i of x
        const T alpha = 0.75;
        T result = -1;
        OK(dot(T(), h, n, x, incx, y, incy, &result));
        EXPECT(near<T>(result, sum(n, [&](int i) { return x.at(0, i) * y.at(0, column(i)); }), n + 1));
        OK(nrm2(T(), h, n, x, incx, &result));
        EXPECT(near<T>(result, sqrt(sum(n, [&](int i) { return x.at(0, i) * x.at(0, i); })), n + 1));
        OK(asum(T(), h, n, x, incx, &result));
        EXPECT(near<T>(result, sum(n, [&](int i) { return fabs(x.at(0, i)); }), n + 1));
        OK(axpy(T(), h, n, &alpha, x, incx, y, incy));
        EXPECT(y.holds(
            2, [&](int row, int i) { return y.at(row, i) + (row || !n ? 0 : alpha * x.at(0, column(i))); }));
        OK(scal(T(), h, n, &alpha, x, incx));
        EXPECT(x.holds(2, [&](int row, int i) { return x.at(row, i) * (row || !n ? 1 : (double)alpha); }));
    }
}
TEST(index_of_the_largest_and_smallest) {
    const Handle h;
    const Array<float> x(std::vector<float>{1, -5, 0.5f, 5, -0.25f, 0.25f});
    const struct {
        cublasStatus_t (*call)(cublasHandle_t, int, const float *, int, int *);
        int n, increment, index;
    } cases[] = {
        {cublasIsamax, 6, 1, 2}, {cublasIsamin, 6, 1, 5}, {cublasIsamax, 3, 2, 1}, {cublasIsamax, 0, 1, 0}};
    for (const auto &c : cases)
        EXPECT(STORED(int, c.call(h, c.n, x, c.increment, &it)) == c.index);
}

TEST_OF(products, float, double) {
    const Handle h;
    for (int round = 0; round < 12; round++) {
        const int m = pick(1, 40), n = pick(1, 40), k = pick(1, 40), more = pick(0, 3);
        const cublasOperation_t opa = (cublasOperation_t)pick(0, 1), opb = (cublasOperation_t)pick(0, 1);
        Matrix<T> A(opa ? k : m, opa ? m : k, more), B(opb ? n : k, opb ? k : n, more), C(m, n, more);
        const T alpha = pick(-4, 4), beta = pick(-1, 1);
        OK(gemm(T(), h, opa, opb, m, n, k, &alpha, A, A.ld, B, B.ld, &beta, C, C.ld));
        EXPECT(C.holds(5 * k + 1, [&](int i, int j) {
            return alpha * sum(k, [&](int l) { return A.at(i, l, opa) * B.at(l, j, opb); }) +
                   beta * C.at(i, j);
        }));

        Matrix<T> in(opa ? A.rows : A.columns, 1), out(opa ? A.columns : A.rows, 1);
        OK(gemv(T(), h, opa, A.rows, A.columns, &alpha, A, A.ld, in, 1, &beta, out, 1));
        EXPECT(out.holds(5 * in.rows + 1, [&](int i, int) {
            return alpha * sum(in.rows, [&](int l) { return A.at(i, l, opa) * in.at(l, 0); }) +
                   beta * out.at(i, 0);
        }));

        Matrix<T> u(m, 1), v(n, 1), D(m, n, more);
        OK(ger(T(), h, m, n, &alpha, u, 1, v, 1, D, D.ld));
        EXPECT(D.holds(8, [&](int i, int j) { return D.at(i, j) + alpha * u.at(i, 0) * v.at(j, 0); }));
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
        OK(cublasDtrmm(h, side, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &alpha, A, A.ld, B, B.ld, C, C.ld));
        // The product of a matrix, given by its elements, and B
        const auto times_B = [&](auto element) {
            return [=, &B](int i, int j) {
                return sum(a, [&](int l) {
                    return side == CUBLAS_SIDE_LEFT ? element(i, l) * B.at(l, j) : B.at(i, l) * element(l, j);
                });
            };
        };
        EXPECT(C.holds(2000, [&](int i, int j) { return alpha * times_B(triangle)(i, j); }));
        // The solution of op(A) X = alpha op(A) B is alpha B.
        OK(cublasDtrsm(h, side, fill, op, CUBLAS_DIAG_NON_UNIT, m, n, &one, A, A.ld, C, C.ld));
        EXPECT(C.holds(2000, [&](int i, int j) { return alpha * B.at(i, j); }));
        C.to_device();
        OK(cublasDsymm_v2(h, side, fill, m, n, &alpha, A, A.ld, B, B.ld, &beta, C, C.ld));
        EXPECT(C.holds(2000, [&](int i, int j) { return alpha * times_B(symmetric)(i, j) - C.at(i, j); }));
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
        const auto at = [=](int i) { return inc > 0 ? i : n - 1 - i; }; // element i is x(0, at(i))
        const cublasDiagType_t diagonal = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
        OK(cublasDtrmv(h, fill, op, diagonal, n, A, A.ld, x, inc));
        EXPECT(x.holds(100, [&](int row, int column) {
            const int i = at(column);
            return row ? x.at(row, column) : sum(n, [&](int j) {
                const bool lower = op == CUBLAS_OP_T ? j > i : i > j;
                const double a = i == j                                      ? (unit ? 1 : 40)
                                 : lower == (fill == CUBLAS_FILL_MODE_LOWER) ? A.at(i, j, op)
                                                                             : 0;
                return a * x.at(0, at(j));
            });
        }));
        OK(cublasDtrsv(h, fill, op, diagonal, n, A, A.ld, x, inc));
        EXPECT(unit || x.holds(100, [&](int row, int column) { // a unit triangle may be ill-conditioned
            return x.at(row, column);
        }));
    }
}

TEST(copies_swaps_and_rotations) {
    const Handle h;
    const int n = 50;
    const Matrix<float> x(2, n), y(3, n), z(1, n);
    OK(cublasScopy(h, n, x, 2, z, -1));
    OK(cublasSswap(h, n, x, 2, y, 3));
    EXPECT(z.holds(0, [&](int, int i) { return x.at(0, n - 1 - i); }));
    EXPECT(x.holds(0, [&](int row, int i) { return row ? x.at(row, i) : y.at(0, i); }));
    EXPECT(y.holds(0, [&](int row, int i) { return row ? y.at(row, i) : x.at(0, i); }));
    const float c = 0.6f, s = 0.8f;
    OK(cublasSrot(h, n, x, 2, y, 3, &c, &s));
    EXPECT(x.holds(2, [&](int row, int i) { return row ? x.at(row, i) : c * y.at(0, i) + s * x.at(0, i); }));
    EXPECT(y.holds(2, [&](int row, int i) { return row ? y.at(row, i) : c * x.at(0, i) - s * y.at(0, i); }));
}

TEST(matrices_to_the_device_and_back) {
    const std::vector<double> from = noise<double>(7 * 5);
    std::vector<double> to(4 * 5, -9);
    Matrix<double> on_device(3, 5, 3);
    OK(cublasSetMatrix(3, 5, sizeof(double), from.data(), 7, on_device, 6));
    OK(cublasGetMatrix(3, 5, sizeof(double), on_device, 6, to.data(), 4));
    EXPECT(to == made(4 * 5, [&](int i) { return i % 4 < 3 ? from[i % 4 + i / 4 * 7] : -9; }));
    OK(cublasSetVector(5, sizeof(double), from.data(), 7, on_device, 2));
    OK(cublasGetVector(5, sizeof(double), on_device, 2, to.data(), 3));
    for (int j = 0; j < 5; j++)
        EXPECT(to[3 * j] == from[7 * j]);
#ifdef __CU2CPP__ // cuBLAS 13 does not check that a column fits
    EXPECT(cublasSetMatrix(3, 5, sizeof(double), from.data(), 2, on_device, 6) ==
           CUBLAS_STATUS_INVALID_VALUE);
#endif
}

TEST(transposition_with_geam) {
    const Handle h;
    Matrix<float> A(7, 5, 2), C(5, 7, 1);
    const float one = 1, zero = 0;
    OK(cublasSgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, 5, 7, &one, A, A.ld, &zero, C, C.ld, C, C.ld));
    EXPECT(C.holds(0, [&](int i, int j) { return A.at(j, i); }));
}

TEST(captured_calls_with_scalars_on_the_device) {
    const Handle h;
    const Matrix<float> x(100, 1), y(100, 1);
    const Array<float> result(1);
    float two = 2;
    Captured graph;
    OK(cublasSetStream(h, graph.stream));
    graph.capture([&] {
        OK(cublasSscal(h, 100, &two, y, 1)); // a scalar of the host is read now
        two = 99;
        OK(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
        OK(cublasSdot(h, 100, x, 1, y, 1, result));
        OK(cublasSscal(h, 100, result, x, 1)); // by the result before
    });
    EXPECT(x.back() == x.host); // captured, not done
    graph.run();
    EXPECT(STORED(cudaStream_t, cublasGetStream(h, &it)) == graph.stream);
    EXPECT(STORED(cublasPointerMode_t, cublasGetPointerMode(h, &it)) == CUBLAS_POINTER_MODE_DEVICE);
    const double dot = sum(100, [&](int i) { return 2 * x.host[i] * y.host[i]; });
    EXPECT(result.holds(100, [=](int) { return dot; }));
    EXPECT(x.holds(200, [&](int i, int) { return dot * x.at(i, 0); }));
}

TEST(products_take_the_compute_type_as_a_cudaDataType) { // as before CUDA 11
    const Handle h;
    const Array<__half> a({1, 2, 3, 4});
    const Array<float> c(std::vector<float>(4, -1));
    const float one = 1, zero = 0;
    OK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, CUDA_R_16F, 2, a, CUDA_R_16F, 2, &zero, c,
                    CUDA_R_32F, 2, CUDA_R_32F, CUBLAS_GEMM_DEFAULT));
    EXPECT(c.back() == std::vector<float>({7, 10, 15, 22}));
}

// 2 A B - C of two products, which are found by strides and by pointers: whole numbers from -most to most -
// 1, of which all sums are exact
template <class In, class Out, class Scale>
static void whole_numbers(int most, cudaDataType in, cudaDataType out, cublasComputeType_t compute) {
    const Handle h;
    const int unit = sizeof(In) == 1 ? 4 : 1; // columns of bytes begin at multiples of 4
    const int m = unit * pick(1, 9), n = unit * pick(1, 9), k = unit * pick(1, 20);
    const auto numbers = [=](auto zero, int count) {
        return made(count, [=](int) { return (decltype(zero))(float)pick(-most, most - 1); });
    };
    const Array<In> a(numbers(In(), 2 * m * k)), b(numbers(In(), 2 * k * n));
    const Array<Out> c(numbers(Out(), 2 * m * n)), d(c.host);
    const Array<const void *> list_a({a, a + m * k}), list_b({b, b + k * n});
    const Array<void *> list_d({d, d + m * n});
    const Scale two = 2, minus = -1;
    OK(cublasGemmStridedBatchedEx(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, a, in, m, m * k, b, in, k,
                                  k * n, &minus, c, out, m, m * n, 2, compute, CUBLAS_GEMM_DEFAULT));
    OK(cublasGemmBatchedEx(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, list_a, in, m, list_b, in, k, &minus,
                           list_d, out, m, 2, compute, CUBLAS_GEMM_DEFAULT));
    std::vector<std::vector<Out>> results = {c.back(), d.back()};
    if constexpr (std::is_same_v<Scale, __half>)
        for (int count : {1, 2}) {
            c.to_device();
            if (count == 2)
                OK(cublasHgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, a, m, m * k, b, k,
                                             k * n, &minus, c, m, m * n, 2));
            for (int i = 0; i < 2 && count == 1; i++)
                OK(cublasHgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, a + i * m * k, m, b + i * k * n, k,
                               &minus, c + i * m * n, m));
            results.push_back(c.back());
        }
    for (const std::vector<Out> &got : results)
        for (int i = 0; i < 2 * m * n; i++) {
            const int row_of_a = i / (m * n) * m * k + i % m, column_of_b = i / m * k;
            const double product = sum(k, [&](int l) {
                return (double)(float)a.host[row_of_a + l * m] * (float)b.host[column_of_b + l];
            });
            EXPECT((float)got[i] == 2 * product - (float)c.host[i]);
        }
}
TEST(whole_numbers_of_all_types) {
    whole_numbers<__half, __half, float>(4, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F);
    whole_numbers<__half, float, float>(4, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
    whole_numbers<__nv_bfloat16, float, float>(4, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F);
    whole_numbers<__half, __half, __half>(4, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F);
    whole_numbers<signed char, int, int>(128, CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I);
    whole_numbers<signed char, float, float>(128, CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32F);
    whole_numbers<double, double, double>(1000, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F);
}

TEST(dot_of_halves) {
    const Handle h;
    const Array<__half> x({__half(1.0f), __half(2.0f), __half(3.0f)}), y({__half(4.0f), __half(5.0f)});
    __half result;
    OK(cublasDotEx(h, 2, x, CUDA_R_16F, 2, y, CUDA_R_16F, -1, &result, CUDA_R_16F, CUDA_R_32F));
    EXPECT((float)result == 1 * 5 + 3 * 4);
    EXPECT(cublasDotEx(h, 2, x, CUDA_R_16F, 2, y, CUDA_R_32F, 1, &result, CUDA_R_16F, CUDA_R_32F) ==
           CUBLAS_STATUS_NOT_SUPPORTED);
    std::vector<float> ones(1 << 16, 1);
    ones[0] = 1 << 24; // a float that an added 1 does not change
    const Array<float> a(ones), b(std::vector<float>(1 << 16, 1));
    float sum;
    OK(cublasDotEx(h, 1 << 16, a, CUDA_R_32F, 1, b, CUDA_R_32F, 1, &sum, CUDA_R_32F, CUDA_R_32F));
    EXPECT(std::fabs(sum - ((1 << 24) + (1 << 16))) < 1000);
}

typedef HandleOf<cublasLtMatrixLayout_t, cublasLtMatrixLayoutCreate, cublasLtMatrixLayoutDestroy> Layout;

#ifdef __CU2CPP__ // an H200 refuses some of these calls
// D = epilogue(2 op(A) op(B) + 3 C + bias) against loops in double
TEST(epilogues) {
    const HandleOf<cublasLtHandle_t, cublasLtCreate, cublasLtDestroy> h;
    cublasLtMatmulPreferenceOpaque_t any;
    OK(cublasLtMatmulPreferenceInit(&any));
    const auto gelu = [](double x) {
        return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    };
    for (const int epilogue :
         {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
          CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB}) {
        const int m = pick(1, 9), n = pick(1, 9), k = pick(1, 9), ta = pick(0, 1), tb = pick(0, 1),
                  more = pick(0, 2);
        const Matrix<float> A(ta ? k : m, ta ? m : k, more), B(tb ? n : k, tb ? k : n, more), C(m, n, more),
            D(m, n, more), bias(16, 1), aux(m, n);
        const float alpha = 2, beta = 3;
        const int64_t aux_ld = aux.ld;
        const HandleOf<cublasLtMatmulDesc_t, cublasLtMatmulDescCreate, cublasLtMatmulDescDestroy> d(
            CUBLAS_COMPUTE_32F, CUDA_R_32F);
        const Layout a(CUDA_R_32F, A.rows, A.columns, A.ld), b(CUDA_R_32F, B.rows, B.columns, B.ld);
        cublasLtMatrixLayoutOpaque_t own;
        OK(cublasLtMatrixLayoutInit(&own, CUDA_R_32F, m, n, C.ld));
        const cublasLtMatrixLayout_t c = &own;
        const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto &value) {
            OK(cublasLtMatmulDescSetAttribute(d, attribute, &value, sizeof value));
        };
        set(CUBLASLT_MATMUL_DESC_TRANSA, ta), set(CUBLASLT_MATMUL_DESC_TRANSB, tb);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.data);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux.data);
        set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
        cublasLtMatmulHeuristicResult_t found;
        int count = 0;
        OK(cublasLtMatmulAlgoGetHeuristic(h, d, a, b, c, c, &any, 1, &found, &count));
        OK(cublasLtMatmul(h, d, &alpha, A, a, B, b, &beta, C, c, D, c, &found.algo, NULL, 0, 0));
        const auto before = [&](int i, int j) {
            return 2 * sum(k, [&](int l) { return A.at(i, l, ta) * B.at(l, j, tb); }) + 3 * C.at(i, j) +
                   (epilogue & 4 ? bias.at(i, 0) : 0);
        };
        EXPECT(count == 1 && D.holds(100, [&](int i, int j) {
            const double x = before(i, j), h = 1e-4, y = aux.at(i, j);
            return epilogue & 2    ? fmax(x, 0)
                   : epilogue & 32 ? gelu(x)
                   : epilogue & 64 ? x * (gelu(y + h) - gelu(y - h)) / (2 * h)
                                   : x;
        }));
        EXPECT((epilogue & 160) != 160 || aux.holds(100, before));
        EXPECT(!(epilogue & 512) || bias.holds(100, [&](int j, int) {
            return j < n ? sum(k, [&](int l) { return B.at(l, j, tb); }) : bias.at(j, 0);
        }));
    }
}
#endif

TEST(bad_arguments) {
    const Handle h;
    Matrix<float> A(4, 4);
    const float one = 1;
    EXPECT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, -1, &one, A, 4, A, 4, &one, A, 4) ==
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, A, 3, A, 4, &one, A, 4) ==
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSscal(NULL, 4, &one, A, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
}
