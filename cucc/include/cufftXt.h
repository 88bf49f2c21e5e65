// SPDX-License-Identifier: MIT
// cuFFT with the types of the elements as arguments: float and double
#pragma once
#include "cufft.h"
#include "cuda_cpu/letters_off.h"

namespace cuda_cpu::fft {

// The kind of a transform of these elements; 0 if there is none
inline cufftType type_of(cudaDataType in, cudaDataType out, cudaDataType execution) {
    const struct {
        cudaDataType real, complex;
        cufftType both, forward, inverse;
    } precisions[] = {{CUDA_R_32F, CUDA_C_32F, CUFFT_C2C, CUFFT_R2C, CUFFT_C2R},
                      {CUDA_R_64F, CUDA_C_64F, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D}};
    for (const auto &p : precisions)
        if (execution == p.complex && (in == p.complex || (in == p.real && out == p.complex)))
            return in == p.real       ? p.forward
                   : out == p.real    ? p.inverse
                   : out == p.complex ? p.both
                                      : cufftType();
    return cufftType();
}

} // namespace cuda_cpu::fft

static inline cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed,
                                              long long istride, long long idist, cudaDataType in,
                                              long long *onembed, long long ostride, long long odist,
                                              cudaDataType out, long long batch, size_t *size,
                                              cudaDataType execution) {
    const cufftType type = cuda_cpu::fft::type_of(in, out, execution);
    return !type ? CUFFT_NOT_SUPPORTED
                 : cufftMakePlanMany64(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type,
                                       batch, size);
}

static inline cufftResult cufftXtExec(cufftHandle plan, void *in, void *out, int direction) {
    const std::shared_ptr<cuda_cpu::fft::Plan> p = cuda_cpu::fft::find(plan);
    if (!p)
        return CUFFT_INVALID_PLAN;
    switch (p->type) {
    case CUFFT_C2C:
        return cufftExecC2C(plan, (cufftComplex *)in, (cufftComplex *)out, direction);
    case CUFFT_R2C:
        return cufftExecR2C(plan, (cufftReal *)in, (cufftComplex *)out);
    case CUFFT_C2R:
        return cufftExecC2R(plan, (cufftComplex *)in, (cufftReal *)out);
    case CUFFT_Z2Z:
        return cufftExecZ2Z(plan, (cufftDoubleComplex *)in, (cufftDoubleComplex *)out, direction);
    case CUFFT_D2Z:
        return cufftExecD2Z(plan, (cufftDoubleReal *)in, (cufftDoubleComplex *)out);
    default:
        return cufftExecZ2D(plan, (cufftDoubleComplex *)in, (cufftDoubleReal *)out);
    }
}
#include "cuda_cpu/letters_on.h"
