// SPDX-License-Identifier: MIT
// cuFFT by FFTW. Transforms are not scaled, and run in the order of the plan's stream. As with cuFFT, a
// complex-to-real transform of 2 or 3 dimensions may overwrite its input. Work areas have size 0, because
// FFTW allocates its own memory.
#pragma once
#define _CUFFT_H_
#ifndef __cplusplus
#error "cufft.h: the CPU back end has it for C++ only"
#endif
#if !__has_include(<fftw3.h>)
#error "cufft.h: the CPU back end has cuFFT by FFTW: install libfftw3-dev"
#endif
#include "cuda_cpu/letters_off.h"
#include <fftw3.h>
#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include "cuComplex.h"
#include "cuda_cpu/library.h"
#include "library_types.h"

#define CUFFT_VERSION   12000
#define CUFFT_VER_MAJOR 12
#define CUFFT_VER_MINOR 0
#define CUFFT_VER_PATCH 0
#define CUFFT_VER_BUILD 0

typedef enum cufftResult_t {
    CUFFT_SUCCESS = 0,
    CUFFT_INVALID_PLAN = 1,
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INVALID_TYPE = 3,
    CUFFT_INVALID_VALUE = 4,
    CUFFT_INTERNAL_ERROR = 5,
    CUFFT_EXEC_FAILED = 6,
    CUFFT_SETUP_FAILED = 7,
    CUFFT_INVALID_SIZE = 8,
    CUFFT_UNALIGNED_DATA = 9,
    CUFFT_INCOMPLETE_PARAMETER_LIST = 10, // this one, 12 and 15: until CUDA 12
    CUFFT_INVALID_DEVICE = 11,
    CUFFT_PARSE_ERROR = 12,
    CUFFT_NO_WORKSPACE = 13,
    CUFFT_NOT_IMPLEMENTED = 14,
    CUFFT_LICENSE_ERROR = 15,
    CUFFT_NOT_SUPPORTED = 16,
    CUFFT_MISSING_DEPENDENCY = 17,
    CUFFT_NVRTC_FAILURE = 18,
    CUFFT_NVJITLINK_FAILURE = 19,
    CUFFT_NVSHMEM_FAILURE = 20
} cufftResult;

typedef enum cufftType_t {
    CUFFT_C2C = 0x29,
    CUFFT_R2C = 0x2a,
    CUFFT_C2R = 0x2c,
    CUFFT_Z2Z = 0x69,
    CUFFT_D2Z = 0x6a,
    CUFFT_Z2D = 0x6c
} cufftType;

typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
typedef int cufftHandle;

#define CUFFT_FORWARD   -1
#define CUFFT_INVERSE   1
#define CUFFT_PLAN_NULL -1

// ---- how the calls work ----

namespace cuda_cpu::fft {

// FFTW's functions for one precision. All except execute need a lock: the planner is not thread-safe.
#define CUDA_CPU_FFTW(Name, prefix, T)                                                                       \
    struct Name {                                                                                            \
        typedef T Real;                                                                                      \
        typedef prefix##complex Pair;                                                                        \
        template <class N> using Number = std::conditional_t<std::is_same<N, T>::value, T, Pair>;            \
        typedef prefix##iodim64 Dim;                                                                         \
        typedef prefix##plan Plan;                                                                           \
        static Plan plan(int rank, const Dim *dims, const Dim *batch, Pair *in, Pair *out, int sign,         \
                         unsigned flags) {                                                                   \
            return prefix##plan_guru64_dft(rank, dims, 1, batch, in, out, sign, flags);                      \
        }                                                                                                    \
        static Plan plan(int rank, const Dim *dims, const Dim *batch, Real *in, Pair *out, int,              \
                         unsigned flags) {                                                                   \
            return prefix##plan_guru64_dft_r2c(rank, dims, 1, batch, in, out, flags);                        \
        }                                                                                                    \
        static Plan plan(int rank, const Dim *dims, const Dim *batch, Pair *in, Real *out, int,              \
                         unsigned flags) {                                                                   \
            return prefix##plan_guru64_dft_c2r(rank, dims, 1, batch, in, out, flags);                        \
        }                                                                                                    \
        static void execute(Plan p, Pair *in, Pair *out) { prefix##execute_dft(p, in, out); }                \
        static void execute(Plan p, Real *in, Pair *out) { prefix##execute_dft_r2c(p, in, out); }            \
        static void execute(Plan p, Pair *in, Real *out) { prefix##execute_dft_c2r(p, in, out); }            \
        static void destroy(Plan p) { prefix##destroy_plan(p); }                                             \
        static bool aligned(const void *p) { return prefix##alignment_of((T *)p) == 0; }                     \
    };
CUDA_CPU_FFTW(Single, fftwf_, float)
CUDA_CPU_FFTW(Double, fftw_, double)
Single precision(float), precision(cufftComplex); // of an array's elements
Double precision(double), precision(cufftDoubleComplex);

// Where element (i, j, k) of a batch's transform b is: b dist + ((i embed[1] + j) embed[2] + k) stride
struct Layout {
    long long embed[3], stride, dist;
};
struct Shape {
    int rank;
    long long n[3], batch;
    bool basic; // contiguous arrays; in place, rows of real numbers are padded for the complex ones
    Layout in, out;
};

// A cuFFT plan. An FFTW plan is for one direction (forward or inverse), in-place or out-of-place transforms,
// and aligned or unaligned arrays. `plans` holds one for each combination, made when it is first executed.
struct Plan {
    bool made = false;
    cufftType type = CUFFT_C2C;
    Shape shape = {};
    cudaStream_t stream = nullptr;
    std::map<int, std::shared_ptr<void>> plans;
};

struct Plans {
    std::mutex handles;
    // Recursive: a shared_ptr that cannot allocate memory calls its deleter, which locks the planner again.
    std::recursive_mutex planner;
    std::map<cufftHandle, std::shared_ptr<Plan>> all;
    cufftHandle next = 1;
};
inline Plans &plans() {
    static Plans &all = *new Plans; // never destroyed: graphs may outlive static objects
    return all;
}
inline std::shared_ptr<Plan> find(cufftHandle handle) {
    std::lock_guard<std::mutex> lock(plans().handles);
    const auto found = plans().all.find(handle);
    return found == plans().all.end() ? nullptr : found->second;
}

inline bool valid(cufftType type) {
    const cufftType all[] = {CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};
    return std::find(std::begin(all), std::end(all), type) != std::end(all);
}
CUDA_CPU_RETURN(bool, real_input, (cufftType type), type == CUFFT_R2C || type == CUFFT_D2Z)
CUDA_CPU_RETURN(bool, real_output, (cufftType type), type == CUFFT_C2R || type == CUFFT_Z2D)

// A contiguous layout; rows have `row` elements.
inline Layout contiguous(const Shape &shape, long long row) {
    Layout layout = {{1, 1, 1}, 1, 1};
    for (int d = 0; d < shape.rank; d++) {
        layout.embed[d] = d == shape.rank - 1 ? row : shape.n[d];
        layout.dist *= layout.embed[d];
    }
    return layout;
}
inline void set_basic_layout(Shape &shape, cufftType type, bool in_place) {
    const long long n = shape.n[shape.rank - 1], half = n / 2 + 1, reals = in_place ? 2 * half : n;
    shape.in = contiguous(shape, real_input(type) ? reals : real_output(type) ? half : n);
    shape.out = contiguous(shape, real_output(type) ? reals : real_input(type) ? half : n);
}

template <class Integer>
cufftResult make(Plan &plan, int rank, const Integer *n, const Integer *inembed, long long istride,
                 long long idist, const Integer *onembed, long long ostride, long long odist, cufftType type,
                 long long batch) {
    if (plan.made)
        return CUFFT_INVALID_PLAN;
    if (!n || rank < 1 || rank > 3)
        return CUFFT_INVALID_VALUE;
    if (!valid(type))
        return CUFFT_INVALID_TYPE;
    Shape shape = {rank, {1, 1, 1}, batch, !inembed || !onembed, {}, {}};
    for (int d = 0; d < rank; d++)
        if ((shape.n[d] = n[d]) < 1)
            return CUFFT_INVALID_SIZE;
    if (batch < 1)
        return CUFFT_INVALID_SIZE;
    if (!shape.basic) {
        shape.in = {{1, 1, 1}, istride, idist}, shape.out = {{1, 1, 1}, ostride, odist};
        for (int d = 0; d < rank; d++)
            shape.in.embed[d] = inembed[d], shape.out.embed[d] = onembed[d];
        for (const Layout &l : {shape.in, shape.out})
            for (int d = 1; d < rank; d++)
                if (l.embed[d] < 1)
                    return CUFFT_INVALID_VALUE;
        if (istride < 1 || ostride < 1 || (batch > 1 && (idist < 1 || odist < 1)))
            return CUFFT_INVALID_VALUE;
    }
    plan.made = true, plan.type = type, plan.shape = shape;
    return CUFFT_SUCCESS;
}

inline cufftResult make(Plan &plan, std::initializer_list<int> n, cufftType type, long long batch) {
    const int *const none = nullptr;
    return make(plan, (int)n.size(), n.begin(), none, 1, 0, none, 1, 0, type, batch);
}

// The plan of FFTW for these arrays. The planner does not touch them (FFTW_ESTIMATE).
template <class Fftw, class In, class Out>
std::shared_ptr<void> planned(Plan &plan, In *in, Out *out, int direction) {
    const bool in_place = (void *)in == (void *)out, aligned = Fftw::aligned(in) && Fftw::aligned(out);
    std::lock_guard<std::recursive_mutex> lock(plans().planner);
    std::shared_ptr<void> &found = plan.plans[(direction == CUFFT_INVERSE) | in_place << 1 | aligned << 2];
    if (!found) {
        Shape shape = plan.shape;
        if (shape.basic)
            set_basic_layout(shape, plan.type, in_place);
        typename Fftw::Dim dims[3], batch = {shape.batch, shape.in.dist, shape.out.dist};
        for (long long d = shape.rank - 1, i = shape.in.stride, o = shape.out.stride; d >= 0; d--) {
            dims[d] = {shape.n[d], i, o};
            i *= shape.in.embed[d], o *= shape.out.embed[d];
        }
        const bool overwrites = real_output(plan.type) && shape.rank > 1;
        typename Fftw::Plan p = Fftw::plan(shape.rank, dims, &batch, in, out, direction,
                                           FFTW_ESTIMATE | (aligned ? 0 : FFTW_UNALIGNED) |
                                               (overwrites || in_place ? 0 : FFTW_PRESERVE_INPUT));
        if (p)
            found = std::shared_ptr<void>((void *)p, [](void *p) {
                std::lock_guard<std::recursive_mutex> lock(plans().planner);
                Fftw::destroy((typename Fftw::Plan)p);
            });
    }
    return found;
}

// Runs a plan, or returns why not. A graph keeps the plan of FFTW after cufftDestroy.
template <class In, class Out>
cufftResult execute(const char *call, cufftHandle handle, cufftType type, In *in_array, Out *out_array,
                    int direction) {
    typedef decltype(precision(In())) Fftw;
    const auto in = (typename Fftw::template Number<In> *)in_array;
    const auto out = (typename Fftw::template Number<Out> *)out_array;
    const std::shared_ptr<Plan> plan = find(handle);
    if (!plan || !plan->made)
        return CUFFT_INVALID_PLAN;
    if (plan->type != type)
        return CUFFT_INVALID_TYPE;
    if (!in || !out || (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE))
        return CUFFT_INVALID_VALUE;
    const std::shared_ptr<void> p = planned<Fftw>(*plan, in, out, direction);
    if (!p)
        return CUFFT_NOT_SUPPORTED; // in place, with layouts that FFTW does not transform in place
    return library_call(call, plan->stream, [=] { Fftw::execute((typename Fftw::Plan)p.get(), in, out); }) ==
                   cudaSuccess
               ? CUFFT_SUCCESS
               : CUFFT_EXEC_FAILED;
}

} // namespace cuda_cpu::fft

// ---- plans ----

static inline cufftResult cufftCreate(cufftHandle *handle) {
    if (!handle)
        return CUFFT_INVALID_VALUE;
    *handle = CUFFT_PLAN_NULL;
    if (cudaFree(nullptr) != cudaSuccess) // no device
        return CUFFT_INTERNAL_ERROR;
    auto &plans = cuda_cpu::fft::plans();
    std::lock_guard<std::mutex> lock(plans.handles);
    plans.all[ *handle = plans.next++] = std::make_shared<cuda_cpu::fft::Plan>();
    return CUFFT_SUCCESS;
}
static inline cufftResult cufftDestroy(cufftHandle handle) {
    std::shared_ptr<cuda_cpu::fft::Plan> last; // destroyed after the lock is released
    auto &plans = cuda_cpu::fft::plans();
    std::lock_guard<std::mutex> lock(plans.handles);
    const auto found = plans.all.find(handle);
    if (found == plans.all.end())
        return CUFFT_INVALID_PLAN;
    last.swap(found->second);
    plans.all.erase(found);
    return CUFFT_SUCCESS;
}

// The functions for plans of one kind: for an empty plan, and with a new plan. There is no work area.
#define CUDA_CPU_PLAN(Name, PARAMETERS, ARGUMENTS)                                                           \
    static inline cufftResult cufftMakePlan##Name(cufftHandle plan, CUDA_CPU_LIST PARAMETERS,                \
                                                  size_t *size) {                                            \
        const std::shared_ptr<cuda_cpu::fft::Plan> p = cuda_cpu::fft::find(plan);                            \
        if (!p)                                                                                              \
            return CUFFT_INVALID_PLAN;                                                                       \
        if (size)                                                                                            \
            *size = 0;                                                                                       \
        return cuda_cpu::fft::make(*p, CUDA_CPU_LIST ARGUMENTS);                                             \
    }
#define CUDA_CPU_NEW_PLAN(Name, PARAMETERS, ARGUMENTS)                                                       \
    CUDA_CPU_PLAN(Name, PARAMETERS, ARGUMENTS)                                                               \
    static inline cufftResult cufftPlan##Name(cufftHandle *plan, CUDA_CPU_LIST PARAMETERS) {                 \
        cufftResult result = cufftCreate(plan);                                                              \
        if (result != CUFFT_SUCCESS)                                                                         \
            return result;                                                                                   \
        result = cuda_cpu::fft::make(*cuda_cpu::fft::find(*plan), CUDA_CPU_LIST ARGUMENTS);                  \
        if (result != CUFFT_SUCCESS) {                                                                       \
            cufftDestroy(*plan);                                                                             \
            *plan = CUFFT_PLAN_NULL;                                                                         \
        }                                                                                                    \
        return result;                                                                                       \
    }
CUDA_CPU_NEW_PLAN(1d, (int nx, cufftType type, int batch), ({nx}, type, batch))
CUDA_CPU_NEW_PLAN(2d, (int nx, int ny, cufftType type), ({nx, ny}, type, 1))
CUDA_CPU_NEW_PLAN(3d, (int nx, int ny, int nz, cufftType type), ({nx, ny, nz}, type, 1))
CUDA_CPU_NEW_PLAN(Many,
                  (int rank, int *n, int *inembed, int istride, int idist, int *onembed, int ostride,
                   int odist, cufftType type, int batch),
                  (rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch))
CUDA_CPU_PLAN(Many64,
              (int rank, long long *n, long long *inembed, long long istride, long long idist,
               long long *onembed, long long ostride, long long odist, cufftType type, long long batch),
              (rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch))

CUDA_CPU_RETURN(cufftResult, cufftSetAutoAllocation, (cufftHandle plan, int),
                cuda_cpu::fft::find(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN)
CUDA_CPU_RETURN(cufftResult, cufftSetWorkArea, (cufftHandle plan, void *),
                cuda_cpu::fft::find(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN)
static inline cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
    const std::shared_ptr<cuda_cpu::fft::Plan> p = cuda_cpu::fft::find(plan);
    if (!p)
        return CUFFT_INVALID_PLAN;
    p->stream = stream;
    return CUFFT_SUCCESS;
}

// ---- transforms ----

#define CUDA_CPU_TRANSFORM(Name, In, Out, direction, ...)                                                    \
    static inline cufftResult cufftExec##Name(cufftHandle plan, In *in, Out *out __VA_ARGS__) {              \
        return cuda_cpu::fft::execute(__func__, plan, CUFFT_##Name, in, out, direction);                     \
    }
CUDA_CPU_TRANSFORM(R2C, cufftReal, cufftComplex, CUFFT_FORWARD)
CUDA_CPU_TRANSFORM(C2R, cufftComplex, cufftReal, CUFFT_INVERSE)
CUDA_CPU_TRANSFORM(D2Z, cufftDoubleReal, cufftDoubleComplex, CUFFT_FORWARD)
CUDA_CPU_TRANSFORM(Z2D, cufftDoubleComplex, cufftDoubleReal, CUFFT_INVERSE)
CUDA_CPU_TRANSFORM(C2C, cufftComplex, cufftComplex, sign, , int sign)
CUDA_CPU_TRANSFORM(Z2Z, cufftDoubleComplex, cufftDoubleComplex, sign, , int sign)
#include "cuda_cpu/letters_on.h"
