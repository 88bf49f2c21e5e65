// SPDX-License-Identifier: MIT
// Needs: cusolver
// Sparse systems of cuSOLVER: the solutions are multiplied out in double on the host.
#include <cusolverSp.h>
#include <algorithm>
#include <complex>
#include <numeric>
#include "linear.h"

typedef std::complex<double> Complex;
template <class T> static Complex wide(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return x;
    else
        return Complex(x.x, x.y);
}
template <class T> static T narrow(Complex x) {
    if constexpr (std::is_floating_point_v<T>)
        return (T)x.real();
    else
        return {(decltype(T::x))x.real(), (decltype(T::x))x.imag()};
}

typedef HandleOf<cusolverSpHandle_t, cusolverSpCreate, cusolverSpDestroy> Handle;
struct Description : HandleOf<cusparseMatDescr_t, cusparseCreateMatDescr, cusparseDestroyMatDescr> {
    explicit Description(int base) {
        OK(cusparseSetMatIndexBase(h, base ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO));
    }
};

// A Hermitian positive definite band matrix whose rows and columns are permuted at random; not symmetric if
// `general`.
template <class T> struct Sparse {
    int n, base;
    std::vector<int> rows, columns;
    std::vector<T> values, b;

    Sparse(int n, int base, bool general) : n(n), base(base), rows(n + 1, base), b(n) {
        std::vector<int> places(n);
        std::iota(places.begin(), places.end(), 0);
        std::shuffle(places.begin(), places.end(), engine());
        const auto element = [&](int i, int j) -> Complex {
            const int x = places[i], y = places[j], low = std::min(x, y);
            if (x == y)
                return 9 + low % 3;
            if (std::abs(x - y) > 2)
                return 0;
            return {-1 - low % 4 * 0.25 - (general && x > y), x < y ? 0.5 : -0.5};
        };
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++)
                if (element(i, j) != 0.0) {
                    columns.push_back(j + base);
                    values.push_back(narrow<T>(element(i, j)));
                }
            rows[i + 1] = (int)columns.size() + base;
            b[i] = narrow<T>({1.0 + pick(0, 8), pick(0, 3) / 2.0});
        }
    }
    int count() const { return (int)columns.size(); }
    template <class Real> bool solved(const std::vector<T> &x) const {
        for (int i = 0; i < n; i++) {
            Complex sum = 0;
            for (int k = rows[i] - base; k < rows[i + 1] - base; k++)
                sum += wide(values[k]) * wide(x[columns[k] - base]);
            if (std::abs(sum - wide(b[i])) > (sizeof(Real) == 4 ? 1e-3 : 1e-10))
                return false;
        }
        return true;
    }
};

// Expects that a function solves random systems. `host`: it takes host memory
template <class T, class Real, class Function>
static void solves(Function *function, bool host, bool general) {
    const Handle handle;
    for (int base = 0; base < 2; base++) {
        const Description description(base);
        const Sparse<T> A(pick(1, 150), base, general);
        std::vector<T> x(A.n);
        int singular = 99;
        if (host) {
            OK(function(handle, A.n, A.count(), description, A.values.data(), A.rows.data(), A.columns.data(),
                        A.b.data(), (Real)1e-6, 1, x.data(), &singular));
        } else {
            const Device<T> values(A.values), b(A.b), to(x);
            const Device<int> rows(A.rows), columns(A.columns);
            OK(function(handle, A.n, A.count(), description, values.data, rows.data, columns.data, b.data,
                        (Real)1e-6, 1, to.data, &singular));
            x = to.host();
        }
        EXPECT(singular == -1 && A.template solved<Real>(x));
    }
}
#define ALL(S, T, Real)                                                                                      \
    solves<T, Real>(cusolverSp##S##csrlsvluHost, true, true);                                                \
    solves<T, Real>(cusolverSp##S##csrlsvqrHost, true, true);                                                \
    solves<T, Real>(cusolverSp##S##csrlsvqr, false, true);                                                   \
    solves<T, Real>(cusolverSp##S##csrlsvcholHost, true, false);                                             \
    solves<T, Real>(cusolverSp##S##csrlsvchol, false, false)

TEST(systems_are_solved) {
    for (int turn = 0; turn < 3; turn++) {
        ALL(S, float, float);
        ALL(D, double, double);
        ALL(C, cuComplex, float);
        ALL(Z, cuDoubleComplex, double);
    }
}

TEST(singular_matrices_are_found) {
    const Handle h;
    const Description description(0);
    const int rows[] = {0, 2, 4, 5}, columns[] = {0, 1, 0, 1, 2};
    const double b[] = {1, 2, 3}, equal_rows[] = {1, 2, 1, 2, 1}, not_definite[] = {1, 2, 2, 1, 1};
    double x[3];
    int lu = -1, qr = -1, cholesky = -1;
    OK(cusolverSpDcsrlsvluHost(h, 3, 5, description, equal_rows, rows, columns, b, 1e-9, 0, x, &lu));
    OK(cusolverSpDcsrlsvqrHost(h, 3, 5, description, equal_rows, rows, columns, b, 1e-9, 0, x, &qr));
    OK(cusolverSpDcsrlsvcholHost(h, 3, 5, description, not_definite, rows, columns, b, 1e-9, 0, x,
                                 &cholesky));
    EXPECT(lu >= 0 && qr >= 0 && cholesky >= 0);
#ifdef __CU2CPP__ // a column that does not exist
    const int wrong[] = {0, 1, 0, 3, 2};
    EXPECT(cusolverSpDcsrlsvluHost(h, 3, 5, description, equal_rows, rows, wrong, b, 1e-9, 0, x, &lu) ==
           CUSOLVER_STATUS_INVALID_VALUE);
#endif
}

TEST(orders_permute) {
    const Handle h;
    for (int base = 0; base < 2; base++) {
        const Description description(base);
        const Sparse<double> A(pick(1, 90), base, true);
        const int n = A.n, count = A.count();
        const auto all = made(n, [](int i) { return i; });
        std::vector<int> p(n), q(n), map = made(count, [](int i) { return i; }), rows = A.rows,
                                     columns = A.columns;
        OK(cusolverSpXcsrmetisndHost(h, n, count, description, rows.data(), columns.data(), NULL, q.data()));
        for (auto *function :
             {cusolverSpXcsrsymmdqHost, cusolverSpXcsrsymamdHost, cusolverSpXcsrsymrcmHost}) {
            OK(function(h, n, count, description, rows.data(), columns.data(), p.data()));
            std::vector<int> order = p;
            std::sort(order.begin(), order.end());
            EXPECT(order == all);
        }
        std::reverse(q.begin(), q.end());
        int symmetric = -1;
        OK(cusolverSpXcsrissymHost(h, n, count, description, rows.data(), rows.data() + 1, columns.data(),
                                   &symmetric));
        size_t bytes = 0;
        OK(cusolverSpXcsrperm_bufferSizeHost(h, n, n, count, description, rows.data(), columns.data(),
                                             p.data(), q.data(), &bytes));
        std::vector<char> buffer(bytes);
        OK(cusolverSpXcsrpermHost(h, n, n, count, description, rows.data(), columns.data(), p.data(),
                                  q.data(), map.data(), buffer.data()));
        bool right = symmetric == 1 && rows[n] - base == count;
        for (int i = 0; i < n; i++) // element (i, j) is the old one of row p[i] and column q[j]
            for (int k = rows[i] - base; k < rows[i + 1] - base; k++) {
                right &= map[k] >= A.rows[p[i]] - base && map[k] < A.rows[p[i] + 1] - base;
                right &= A.columns[map[k]] - base == q[columns[k] - base];
                right &= k == rows[i] - base || columns[k - 1] < columns[k];
            }
        EXPECT(right);
    }
}
