// SPDX-License-Identifier: MIT
// cuSPARSE: each function against loops over a dense matrix, for all formats.
#include <cusparse.h>
#include "linear.h"

template <class T> static cudaDataType type_of() {
    return sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
}

// A random sparse matrix as a dense one, by rows, and as lists of its entries by rows and by columns. About
// one element in three is not zero; empty rows occur too.
template <class T> struct Entries {
    int rows, columns;
    std::vector<T> dense, by_rows, by_columns;
    std::vector<int> row_offsets{0}, column_offsets{0}, columns_of_rows, rows_of_columns, row_of_entry;

    // `density` is in percent. With `dominant`, the diagonal is there and large.
    Entries(int rows, int columns, int density = 33, bool dominant = false)
        : rows(rows), columns(columns), dense((size_t)rows * columns) {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                if (pick(0, 99) < density)
                    at(i, j) = pick(1, 1000) / (T)1000 * (pick(0, 1) ? 1 : -1);
                if (dominant && i == j)
                    at(i, j) = pick(3, 5) + columns;
            }
        list(rows, columns, false, by_rows, columns_of_rows, row_offsets);
        list(columns, rows, true, by_columns, rows_of_columns, column_offsets);
        for (int i = 0; i < rows; i++)
            row_of_entry.resize(row_offsets[i + 1], i);
    }
    void list(int n, int m, bool transposed, std::vector<T> &values, std::vector<int> &indices,
              std::vector<int> &offsets) const {
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < m; j++)
                if (const T x = at(i, j, transposed)) {
                    values.push_back(x);
                    indices.push_back(j);
                }
            offsets.push_back(values.size());
        }
    }
    T &at(int i, int j) { return dense[(size_t)i * columns + j]; }
    T at(int i, int j, bool transposed = false) const {
        return transposed ? dense[(size_t)j * columns + i] : dense[(size_t)i * columns + j];
    }
    int count() const { return by_rows.size(); }
};

template <class I> static std::vector<I> with_base(const std::vector<int> &indices, int base) {
    std::vector<I> result(indices.begin(), indices.end());
    for (I &i : result)
        i += base;
    return result;
}

// The description of a matrix in a format, with indices of type I
template <class T, class I> struct Sparse {
    Array<I> offsets, indices;
    Array<T> values;
    cusparseSpMatDescr_t matrix;

    Sparse(const Entries<T> &e, cusparseFormat_t format, int base)
        : offsets(with_base<I>(format == CUSPARSE_FORMAT_CSR   ? e.row_offsets
                               : format == CUSPARSE_FORMAT_CSC ? e.column_offsets
                                                               : e.row_of_entry,
                               base)),
          indices(with_base<I>(format == CUSPARSE_FORMAT_CSC ? e.rows_of_columns : e.columns_of_rows, base)),
          values(format == CUSPARSE_FORMAT_CSC ? e.by_columns : e.by_rows) {
        const cusparseIndexBase_t from = (cusparseIndexBase_t)base;
        const cusparseIndexType_t i = sizeof(I) == 4 ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;
        if (format == CUSPARSE_FORMAT_COO)
            OK(cusparseCreateCoo(&matrix, e.rows, e.columns, e.count(), offsets, indices, values, i, from,
                                 type_of<T>()));
        else
            OK((format == CUSPARSE_FORMAT_CSR ? cusparseCreateCsr : cusparseCreateCsc)(
                &matrix, e.rows, e.columns, e.count(), offsets, indices, values, i, i, from, type_of<T>()));
    }
    ~Sparse() { OK(cusparseDestroySpMat(matrix)); }
};

template <class T> struct Vector : Array<T> {
    HandleOf<cusparseDnVecDescr_t, cusparseCreateDnVec, cusparseDestroyDnVec> vector;
    explicit Vector(int n) : Array<T>(noise<T>(n)), vector(n, this->data, type_of<T>()) {}
};

template <class T> struct Dense : Matrix<T> {
    HandleOf<cusparseDnMatDescr_t, cusparseCreateDnMat, cusparseDestroyDnMat> matrix;
    bool by_rows;
    // `by_rows` reads the same memory as a matrix that is stored by rows.
    Dense(int rows, int columns, bool by_rows)
        : Matrix<T>(by_rows ? columns : rows, by_rows ? rows : columns, pick(0, 2)),
          matrix(rows, columns, this->ld, this->data, type_of<T>(),
                 by_rows ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL),
          by_rows(by_rows) {}
    size_t place(int i, int j) const { return by_rows ? j + (size_t)i * this->ld : i + (size_t)j * this->ld; }
    double element(int i, int j) const { return this->host[place(i, j)]; }
    template <class F> bool holds(double scale, F expected) const {
        return Matrix<T>::holds(scale,
                                [&](int i, int j) { return by_rows ? expected(j, i) : expected(i, j); });
    }
};

typedef HandleOf<cusparseHandle_t, cusparseCreate, cusparseDestroy> Handle;

// Calls a function with the buffer whose size it asks for.
#define BUFFERED(function, ...)                                                                              \
    do {                                                                                                     \
        const Array<char> buffer(STORED(size_t, function##_bufferSize(__VA_ARGS__, &it)));                   \
        OK(function(__VA_ARGS__, buffer));                                                                   \
    } while (0)
// A solver has two steps.
#define SOLVED(function, ...)                                                                                \
    do {                                                                                                     \
        const Array<char> buffer(STORED(size_t, function##_bufferSize(__VA_ARGS__, &it)));                   \
        OK(function##_analysis(__VA_ARGS__, buffer));                                                        \
        OK(function##_solve(__VA_ARGS__));                                                                   \
    } while (0)

static cusparseOperation_t operation(bool transposed) {
    return transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
}

static const cusparseFormat_t formats[] = {CUSPARSE_FORMAT_CSR, CUSPARSE_FORMAT_CSC, CUSPARSE_FORMAT_COO};

template <class T, class I> static void multiply(cusparseHandle_t h, cusparseFormat_t format) {
    for (int round = 0; round < 4; round++) {
        const Entries<T> e(pick(1, 40), pick(1, 40));
        const bool t = round % 2;
        const Sparse<T, I> A(e, format, pick(0, 1));
        const int rows = t ? e.columns : e.rows, columns = t ? e.rows : e.columns;
        const Vector<T> x(columns), y(rows);
        const T alpha = pick(-4, 4), beta = pick(-1, 1);
        BUFFERED(cusparseSpMV, h, operation(t), &alpha, A.matrix, x.vector, &beta, y.vector, type_of<T>(),
                 CUSPARSE_SPMV_ALG_DEFAULT);
        EXPECT(y.holds(5 * columns + 1, [&](int i) {
            return alpha * sum(columns, [&](int j) { return (double)e.at(i, j, t) * x.host[j]; }) +
                   beta * y.host[i];
        }));
    }
}
TEST(products_with_vectors) {
    const Handle h;
    for (cusparseFormat_t format : formats) {
        multiply<float, int>(h, format);
        multiply<double, int>(h, format);
        multiply<double, int64_t>(h, format);
    }
}

TEST(products_with_matrices) {
    const Handle h;
    for (int round = 0; round < 12; round++) {
        const Entries<double> e(pick(1, 30), pick(1, 30));
        const bool ta = pick(0, 1), tb = pick(0, 1), by_rows = pick(0, 1);
        const Sparse<double, int> A(e, round % 2 ? CUSPARSE_FORMAT_COO : CUSPARSE_FORMAT_CSR, 0);
        const int m = ta ? e.columns : e.rows, k = ta ? e.rows : e.columns, n = pick(1, 20);
        const Dense<double> B(tb ? n : k, tb ? k : n, by_rows), C(m, n, by_rows);
        const double alpha = pick(-4, 4), beta = pick(-1, 1);
        BUFFERED(cusparseSpMM, h, operation(ta), operation(tb), &alpha, A.matrix, B.matrix, &beta, C.matrix,
                 CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT);
        const auto product = [&](int i, int j) {
            return sum(k, [&](int l) { return e.at(i, l, ta) * (tb ? B.element(j, l) : B.element(l, j)); });
        };
        EXPECT(
            C.holds(5 * k + 1, [&](int i, int j) { return alpha * product(i, j) + beta * C.element(i, j); }));
    }
}

// The element of the triangle that a system uses
template <class T>
static T triangle(const Entries<T> &e, int i, int j, cusparseFillMode_t fill, cusparseDiagType_t diagonal,
                  bool t) {
    const bool lower = fill == CUSPARSE_FILL_MODE_LOWER;
    if (i == j)
        return diagonal == CUSPARSE_DIAG_TYPE_UNIT ? 1 : e.at(i, i);
    return (t ? j > i : i > j) == lower ? e.at(i, j, t) : 0;
}
TEST_OF(triangular_systems, float, double) {
    const Handle h;
    for (int round = 0; round < 16; round++) {
        const int n = pick(1, 20), columns = pick(1, 3);
        const Entries<T> e(n, n, 40, true);
        cusparseFillMode_t fill = (cusparseFillMode_t)(round & 1);
        cusparseDiagType_t diagonal = (cusparseDiagType_t)(round >> 1 & 1);
        const bool t = round >> 2 & 1, coo = round >> 3 & 1;
        const cusparseOperation_t op = operation(t);
        const Sparse<T, int> A(e, coo ? CUSPARSE_FORMAT_COO : CUSPARSE_FORMAT_CSR, pick(0, 1));
        OK(cusparseSpMatSetAttribute(A.matrix, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
        OK(cusparseSpMatSetAttribute(A.matrix, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof(diagonal)));
        const T alpha = 2;
        // Whether the triangle times column c of the solutions is column c of the right-hand sides.
        const auto solved = [&](const std::vector<T> &got, const auto &right, size_t ld, int c) {
            double size = 1; // of the solution: a unit triangle may have a large inverse
            for (T x : got)
                size = fmax(size, fabs(x));
            for (int i = 0; i < n; i++) {
                const double left = sum(
                    n, [&](int j) { return (double)triangle(e, i, j, fill, diagonal, t) * got[j + c * ld]; });
                if (!near<T>(left, alpha * right(i, c), 30 * n * size))
                    return false;
            }
            return true;
        };

        const Vector<T> x(n), y(n);
        const HandleOf<cusparseSpSVDescr_t, cusparseSpSV_createDescr, cusparseSpSV_destroyDescr> plan;
        SOLVED(cusparseSpSV, h, op, &alpha, A.matrix, x.vector, y.vector, type_of<T>(),
               CUSPARSE_SPSV_ALG_DEFAULT, plan);
        EXPECT(solved(
            y.back(), [&](int i, int) { return x.host[i]; }, n, 0));

        const Dense<T> B(n, columns, false), C(n, columns, false);
        const HandleOf<cusparseSpSMDescr_t, cusparseSpSM_createDescr, cusparseSpSM_destroyDescr> many;
        SOLVED(cusparseSpSM, h, op, operation(false), &alpha, A.matrix, B.matrix, C.matrix, type_of<T>(),
               CUSPARSE_SPSM_ALG_DEFAULT, many);
        for (int c = 0; c < columns; c++)
            EXPECT(solved(
                C.back(), [&](int i, int c) { return B.element(i, c); }, C.ld, c));
    }
}
TEST(dense_to_sparse_and_back) {
    const Handle h;
    for (cusparseFormat_t format : formats)
        for (bool by_rows : {false, true}) {
            const Entries<double> e(pick(1, 20), pick(1, 20));
            Dense<double> D(e.rows, e.columns, by_rows), F(e.rows, e.columns, !by_rows);
            for (int i = 0; i < e.rows; i++)
                for (int j = 0; j < e.columns; j++)
                    D.host[D.place(i, j)] = e.at(i, j);
            D.to_device();
            const Sparse<double, int> empty(Entries<double>(e.rows, e.columns, 0), format, 0);
            const cusparseSpMatDescr_t A = empty.matrix;
            int *const offsets = empty.offsets;
            const Array<char> buffer(
                STORED(size_t, cusparseDenseToSparse_bufferSize(h, D.matrix, A,
                                                                CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, &it)));
            OK(cusparseDenseToSparse_analysis(h, D.matrix, A, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, buffer));
            int64_t rows = 0, columns = 0, count = 0;
            OK(cusparseSpMatGetSize(A, &rows, &columns, &count));
            if (!EXPECT(rows == e.rows && columns == e.columns && count == e.count()))
                return;
            const Array<int> indices(count), more(count);
            const Array<double> values(count);
            if (format == CUSPARSE_FORMAT_COO)
                OK(cusparseCooSetPointers(A, more, indices, values));
            else
                OK((format == CUSPARSE_FORMAT_CSR ? cusparseCsrSetPointers
                                                  : cusparseCscSetPointers)(A, offsets, indices, values));
            OK(cusparseDenseToSparse_convert(h, D.matrix, A, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, buffer));
            const bool csc = format == CUSPARSE_FORMAT_CSC;
            EXPECT(values.back() == (csc ? e.by_columns : e.by_rows));
            EXPECT(indices.back() == (csc ? e.rows_of_columns : e.columns_of_rows));
            if (format == CUSPARSE_FORMAT_COO)
                EXPECT(more.back() == e.row_of_entry);
            else
                EXPECT(empty.offsets.back() == (csc ? e.column_offsets : e.row_offsets));
            BUFFERED(cusparseSparseToDense, h, A, F.matrix, CUSPARSE_SPARSETODENSE_ALG_DEFAULT);
            EXPECT(F.holds(0, [&](int i, int j) { return e.at(i, j); }));
        }
}

TEST(conversions_of_compressed_formats) {
    const Handle h;
    for (int base = 0; base < 2; base++) {
        const Entries<float> e(pick(1, 20), pick(1, 20), 30);
        const int m = e.rows, n = e.columns, count = e.count();
        const cusparseIndexBase_t from = (cusparseIndexBase_t)base;
        const Array<int> offsets(with_base<int>(e.row_offsets, base)),
            columns(with_base<int>(e.columns_of_rows, base)), rows(count), offsets2(m + 1),
            csc_offsets(n + 1), csc_rows(count);
        const Array<float> values(e.by_rows), csc_values(count);
        OK(cusparseXcsr2coo(h, offsets, count, m, rows, from));
        OK(cusparseXcoo2csr(h, rows, count, m, offsets2, from));
        BUFFERED(cusparseCsr2cscEx2, h, m, n, count, values, offsets, columns, csc_values, csc_offsets,
                 csc_rows, CUDA_R_32F, CUSPARSE_ACTION_NUMERIC, from, CUSPARSE_CSR2CSC_ALG_DEFAULT);
        EXPECT(rows.back() == with_base<int>(e.row_of_entry, base));
        EXPECT(offsets2.back() == offsets.host);
        EXPECT(csc_offsets.back() == with_base<int>(e.column_offsets, base));
        EXPECT(csc_rows.back() == with_base<int>(e.rows_of_columns, base));
        EXPECT(csc_values.back() == e.by_columns);
    }
}

TEST(entries_are_sorted_with_their_permutation) {
    const Handle h;
    const Entries<float> e(pick(2, 20), pick(2, 20), 50);
    const int m = e.rows, n = e.columns, count = e.count();
    const Array<int> rows(e.row_of_entry), columns(e.columns_of_rows), order(count);
    const auto bytes = [&](auto of) { return STORED(size_t, of(h, m, n, count, rows, columns, &it)); };
    const Array<char> memory(
        std::max({bytes(cusparseXcoosort_bufferSizeExt), bytes(cusparseXcsrsort_bufferSizeExt),
                  bytes(cusparseXcscsort_bufferSizeExt)}));
    OK(cusparseCreateIdentityPermutation(h, count, order));
    OK(cusparseXcoosortByColumn(h, m, n, count, rows, columns, order, memory));
    EXPECT(rows.back() == e.rows_of_columns);
    std::vector<float> moved;
    for (int k : order.back())
        moved.push_back(e.by_rows[k]);
    EXPECT(moved == e.by_columns);
    OK(cusparseXcoosortByRow(h, m, n, count, rows, columns, order, memory));
    EXPECT(rows.back() == e.row_of_entry && columns.back() == e.columns_of_rows);

    // The entries of each row (CSR) or column (CSC) are in reverse order before they are sorted.
    cusparseMatDescr_t matrix;
    OK(cusparseCreateMatDescr(&matrix));
    OK(cusparseSetMatIndexBase(matrix, CUSPARSE_INDEX_BASE_ONE));
    for (bool csc : {false, true}) {
        const std::vector<int> &starts = csc ? e.column_offsets : e.row_offsets,
                               sorted = with_base<int>(csc ? e.rows_of_columns : e.columns_of_rows, 1);
        std::vector<int> reversed = sorted;
        for (size_t i = 0; i + 1 < starts.size(); i++)
            std::reverse(&reversed[starts[i]], &reversed[starts[i + 1]]);
        const Array<int> offsets(with_base<int>(starts, 1)), indices(reversed);
        OK(cusparseCreateIdentityPermutation(h, count, order));
        OK((csc ? cusparseXcscsort : cusparseXcsrsort)(h, m, n, count, matrix, offsets, indices, order,
                                                       memory));
        EXPECT(indices.back() == sorted);
        EXPECT(made(count, [&, from = order.back()](int k) { return reversed[from[k]]; }) == sorted);
    }
    const Array<int> offsets(with_base<int>(e.row_offsets, 1));
    EXPECT(cusparseXcoosortByRow(h, m, n, count, rows, columns, nullptr, memory) != CUSPARSE_STATUS_SUCCESS);
    EXPECT(cusparseXcsrsort(h, m, n, count, matrix, offsets, columns, nullptr, memory) !=
           CUSPARSE_STATUS_SUCCESS);
    OK(cusparseDestroyMatDescr(matrix));
}

TEST(scalars_on_the_device_in_a_graph) {
    const Handle h;
    Captured graph;
    OK(cusparseSetStream(h, graph.stream));
    OK(cusparseSetPointerMode(h, CUSPARSE_POINTER_MODE_DEVICE));
    const Entries<float> e(30, 20);
    const Sparse<float, int> A(e, CUSPARSE_FORMAT_CSR, 0);
    const Vector<float> x(20), y(30);
    Array<float> scalars(std::vector<float>{2, 1});
    const Array<char> memory(
        STORED(size_t, cusparseSpMV_bufferSize(h, operation(false), scalars, A.matrix, x.vector, scalars + 1,
                                               y.vector, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &it)));
    graph.capture([&] {
        OK(cusparseSpMV(h, operation(false), scalars, A.matrix, x.vector, scalars + 1, y.vector, CUDA_R_32F,
                        CUSPARSE_SPMV_ALG_DEFAULT, memory));
    });
    EXPECT(y.back() == y.host); // captured, not done
    scalars.host[0] = 3;        // read when the graph runs
    scalars.to_device();
    graph.run();
    EXPECT(y.holds(60, [&](int i) {
        return 3 * sum(20, [&](int j) { return (double)e.at(i, j) * x.host[j]; }) + y.host[i];
    }));
}

TEST(bad_arguments) {
    const Handle h;
    const Entries<float> e(5, 4);
    const Sparse<float, int> A(e, CUSPARSE_FORMAT_CSR, 0);
    const Vector<float> x(5), y(5);
    const float one = 1;
    EXPECT(cusparseSpMV(h, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, A.matrix, x.vector, &one, y.vector,
                        CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, NULL) == CUSPARSE_STATUS_INVALID_VALUE);
    EXPECT(cusparseSetStream(NULL, 0) != CUSPARSE_STATUS_SUCCESS);
    EXPECT(strcmp(cusparseGetErrorName(CUSPARSE_STATUS_INVALID_VALUE), "CUSPARSE_STATUS_INVALID_VALUE") == 0);
}

// The functions that NVIDIA has marked as deprecated
#ifdef __CUDACC__
#pragma nv_diag_suppress 1444
#endif
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST(sparse_vectors) {
    for (int base : {0, 1}) {
        const Handle h;
        const int n = 9, count = 3;
        const Array<int> indices(with_base<int>({1, 4, 8}, base));
        const Array<float> values(noise<float>(count)), fetched(count);
        const Vector<float> y(n), z(n), w(n);
        const float alpha = 3, beta = 2;
        float dot = 0;
        cusparseSpVecDescr_t x, x2;
        for (auto [vector, data] : {std::pair(&x, values.data), {&x2, fetched.data}})
            OK(cusparseCreateSpVec(vector, n, count, indices, data, CUSPARSE_INDEX_32I,
                                   (cusparseIndexBase_t)base, CUDA_R_32F));
        OK(cusparseScatter(h, x, y.vector));
        OK(cusparseGather(h, z.vector, x2));
        OK(cusparseAxpby(h, &alpha, x, &beta, w.vector));
        BUFFERED(cusparseSpVV, h, operation(false), x, z.vector, &dot, CUDA_R_32F);
        std::vector<float> scattered = y.host, added(n);
        for (int k = 0; k < count; k++) {
            scattered[indices.host[k] - base] = values.host[k];
            added[indices.host[k] - base] = alpha * values.host[k];
        }
        const auto gathered = [&](int k) { return (double)z.host[indices.host[k] - base]; };
        EXPECT(y.back() == scattered && fetched.holds(0, gathered));
        EXPECT(w.holds(5, [&](int i) { return beta * w.host[i] + added[i]; }));
        EXPECT(near<float>(dot, sum(count, [&](int k) { return values.host[k] * gathered(k); }), count));
        OK(cusparseDestroySpVec(x));
    }
}

// L and U of the incomplete factorization have a product that agrees with A where A has entries.
TEST(incomplete_lu) {
    const Handle h;
    const HandleOf<cusparseMatDescr_t, cusparseCreateMatDescr, cusparseDestroyMatDescr> description;
    for (int density : {20, 100}) {
        const Entries<double> e(15, 15, density, true);
        const Array<int> offsets(e.row_offsets), columns(e.columns_of_rows);
        const Array<double> values(e.by_rows);
        const HandleOf<csrilu02Info_t, cusparseCreateCsrilu02Info, cusparseDestroyCsrilu02Info> info;
        int bytes = 0;
        const auto call = [&](auto function, auto... more) {
            OK(function(h, 15, e.count(), description, values, offsets, columns, info, more...));
        };
        call(cusparseDcsrilu02_bufferSize, &bytes);
        const Array<char> buffer(bytes);
        call(cusparseDcsrilu02_analysis, CUSPARSE_SOLVE_POLICY_NO_LEVEL, buffer.data);
        call(cusparseDcsrilu02, CUSPARSE_SOLVE_POLICY_NO_LEVEL, buffer.data);
        EXPECT(STORED(int, cusparseXcsrilu02_zeroPivot(h, info, &it)) == -1);
        const std::vector<double> got = values.back();
        double lu[15][15] = {};
        for (int k = 0; k < e.count(); k++)
            lu[e.row_of_entry[k]][e.columns_of_rows[k]] = got[k];
        for (int i = 0; i < 15; i++)
            for (int j = 0; j < 15; j++) {
                const double product =
                    sum(std::min(i, j) + 1, [&](int l) { return (l == i ? 1 : lu[i][l]) * lu[l][j]; });
                EXPECT(e.at(i, j) == 0 || near<double>(product, e.at(i, j), 100));
            }
    }
}
