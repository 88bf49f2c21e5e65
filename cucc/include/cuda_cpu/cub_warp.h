// SPDX-License-Identifier: MIT
// CUB: what all collective operations have in common, and those of a warp
#pragma once
#include "cub_types.h"
#include "letters_off.h"

namespace cub {

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS,
    BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
    BLOCK_LOAD_DIRECT,
    BLOCK_LOAD_STRIPED,
    BLOCK_LOAD_VECTORIZE,
    BLOCK_LOAD_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE,
    BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
    BLOCK_STORE_DIRECT,
    BLOCK_STORE_STRIPED,
    BLOCK_STORE_VECTORIZE,
    BLOCK_STORE_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE,
    BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
CUDA_CPU_RETURN(unsigned, LaneId, (), cuda_cpu::lane())
CUDA_CPU_RETURN(unsigned, WarpId, (), cuda_cpu::thread_rank() / 32)
CUDA_CPU_RETURN(int, RowMajorTid, (int, int, int), (int)cuda_cpu::thread_rank())

// Raw memory for the items, without constructors, so that it may be a member of a union.
template <class T, int N> struct cu_storage {
    alignas(T) char bytes[sizeof(T) * N];
    T &operator[](int i) { return reinterpret_cast<T *>(bytes)[i]; }
};
struct cu_no_storage {
    char unused;
};

// Base class of the collectives: their temporary storage, also if the program passes none, and their place
template <class Storage> class cu_collective {
  public:
    typedef Storage TempStorage;

  protected:
    Storage &s;
    cuda_cpu::Site site;
    const int rank = (int)cuda_cpu::thread_rank();

    explicit cu_collective(cuda_cpu::Site where)
        : s(::cuda_cpu::shared<Storage, ::cu_owner>([] {}, "storage of CUB")), site(where) {}
    cu_collective(Storage &storage, cuda_cpu::Site where) : s(storage), site(where) {}
    void barrier() const { __syncthreads(site.file, site.line); }
};
// The constructors of a collective
#define CUDA_CPU_CUB(NAME)                                                                                   \
  public:                                                                                                    \
    typedef typename NAME::cu_collective::TempStorage TempStorage;                                           \
    explicit NAME(CUDA_CPU_SITE) : NAME::cu_collective(CUDA_CPU_HERE) {}                                     \
    explicit NAME(TempStorage &storage, CUDA_CPU_SITE) : NAME::cu_collective(storage, CUDA_CPU_HERE) {}      \
                                                                                                             \
  private:                                                                                                   \
    using NAME::cu_collective::rank;                                                                         \
    using NAME::cu_collective::s;                                                                            \
    using NAME::cu_collective::barrier

// ---- reductions and scans of a warp ----

// A logical warp: W consecutive lanes.
template <class T, int W> class cu_warp {
  public:
    typedef cu_no_storage TempStorage;

  protected:
    cuda_cpu::Site site;
    const int first = (int)cuda_cpu::lane() / W * W, rank = (int)cuda_cpu::lane() % W;
    const unsigned mask = (unsigned)((1ull << W) - 1) << first;

    explicit cu_warp(cuda_cpu::Site where) : site(where) {}
    T from(const T &value, int r) const { // the value of the lane with rank r
        return cuda_cpu::shuffle(cuda_cpu::WarpOp::shuffle_index, mask, value, first + r, 32, site);
    }
};

// The first lane gets the result.
template <class T, int W = 32, int = 0> class WarpReduce : public cu_warp<T, W> {
    using cu_warp<T, W>::rank;

  public:
    explicit WarpReduce(cu_no_storage &, CUDA_CPU_SITE) : cu_warp<T, W>(CUDA_CPU_HERE) {}

    template <class Op> T Reduce(T item, Op op, int valid = W) {
        for (int step = 1; step < W; step *= 2) {
            T other = this->from(item, rank + step < W ? rank + step : rank);
            if (rank % (2 * step) == 0 && rank + step < valid)
                item = op(item, other);
        }
        return item;
    }
    T Sum(T item, int valid = W) { return Reduce(item, cub::Sum(), valid); }
};

template <class T, int W = 32, int = 0> class WarpScan : public cu_warp<T, W> {
    using cu_warp<T, W>::rank;

  public:
    explicit WarpScan(cu_no_storage &, CUDA_CPU_SITE) : cu_warp<T, W>(CUDA_CPU_HERE) {}

    // `aggregate` may be missing.
    template <class Op, class... Aggregate> void InclusiveScan(T in, T &out, Op op, Aggregate &...aggregate) {
        T all = in;
        for (int step = 1; step < W; step *= 2) {
            T other = this->from(all, rank < step ? rank : rank - step);
            if (rank >= step)
                all = op(other, all);
        }
        out = all;
        ((aggregate = this->from(out, W - 1)), ...);
    }
    template <class Op> void Scan(T in, T &inclusive, T &exclusive, T initial, Op op) {
        InclusiveScan(in, inclusive, op);
        T before = this->from(inclusive, rank == 0 ? 0 : rank - 1);
        inclusive = op(initial, inclusive);
        exclusive = rank == 0 ? initial : T(op(initial, before));
    }
    template <class Op> void Scan(T in, T &inclusive, T &exclusive, Op op) {
        InclusiveScan(in, inclusive, op);
        exclusive = this->from(inclusive, rank == 0 ? 0 : rank - 1);
    }
    template <class Op> void ExclusiveScan(T in, T &out, Op op) { // the first result is undefined
        T inclusive;
        Scan(in, inclusive, out, op);
    }
    template <class Op, class... Aggregate>
    void ExclusiveScan(T in, T &out, T initial, Op op, Aggregate &...aggregate) {
        InclusiveScan(in, out, op, aggregate...);
        T before = this->from(out, rank == 0 ? 0 : rank - 1);
        out = rank == 0 ? initial : T(op(initial, before));
    }
    template <class... Aggregate> void InclusiveSum(T in, T &out, Aggregate &...aggregate) {
        InclusiveScan(in, out, Sum(), aggregate...);
    }
    template <class... Aggregate> void ExclusiveSum(T in, T &out, Aggregate &...aggregate) {
        ExclusiveScan(in, out, T(), Sum(), aggregate...);
    }
    T Broadcast(T item, unsigned lane) { return this->from(item, (int)lane); }
};

} // namespace cub

#include "letters_on.h"
