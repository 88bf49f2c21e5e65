// SPDX-License-Identifier: MIT
// CUB: operations on arrays in device memory. The temporary storage is only overwritten. Its size depends on
// the operation, so that the size that another operation needs may be too small.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>
#include "cub_types.h"
#include "letters_off.h"

namespace cub {

template <class F> __global__ void cu_serial(F f) {
    f();
}

// Runs f as a kernel. With null as the storage, only sets `bytes`; smaller storage is an error.
template <class F> cudaError_t cu_run(void *storage, size_t &bytes, cudaStream_t stream, F f) {
    const size_t required = sizeof(F);
    if (!storage) {
        bytes = required;
        return cudaSuccess;
    }
    if (bytes < required)
        return cudaErrorInvalidValue;
    if (const cudaError_t error = cudaMemsetAsync(storage, 0xff, required, stream))
        return error;
    cu_serial<<<1, 1, 0, stream>>>(f);
    return cudaPeekAtLastError();
}

typedef long long cu_size;
#define CUDA_CPU_CUB_STORAGE void *storage, size_t &bytes
#define CUDA_CPU_CUB_STREAM  cudaStream_t stream = nullptr, bool = false

template <class It> using cu_value = typename std::iterator_traits<It>::value_type;
template <class Out, class In> struct cu_output { // the value type; output iterators may have none
    typedef std::conditional_t<std::is_void_v<cu_value<Out>>, cu_value<In>, cu_value<Out>> type;
};

// Combines at least one value, pairwise to keep rounding errors small.
template <class T, class It, class Op> T cu_combine(It in, cu_size first, cu_size end, Op &op) {
    if (end - first > 16) {
        const cu_size middle = first + (end - first) / 2;
        T left = cu_combine<T>(in, first, middle, op), right = cu_combine<T>(in, middle, end, op);
        return op(left, right);
    }
    T all = in[first];
    for (cu_size i = first + 1; i < end; ++i) {
        cu_value<It> item = in[i];
        all = op(all, item);
    }
    return all;
}
template <class T, class It, class Op> T cu_combine(It in, cu_size first, cu_size end, Op &op, T initial) {
    if (first >= end)
        return initial;
    T all = cu_combine<T>(in, first, end, op);
    return op(initial, all);
}
// The best of n numbered values; {1, worst} if there are none
template <class It, class Op>
KeyValuePair<int, cu_value<It>> cu_best(It in, cu_size n, Op op, cu_value<It> worst) {
    KeyValuePair<int, cu_value<It>> best{1, worst};
    for (cu_size i = 0; i < n; ++i)
        best = i == 0 ? decltype(best){0, in[0]} : op(best, decltype(best){(int)i, in[i]});
    return best;
}

// ---- reductions ----

// TYPES, SIZE and ARGUMENTS are lists in parentheses: what a form has for the number of items.
#define CUDA_CPU_CUB_REDUCTION(NAME, initial, TYPES, SIZE, ARGUMENTS)                                        \
    template <class In, class Out CUDA_CPU_LIST TYPES>                                                       \
    static cudaError_t NAME(CUDA_CPU_CUB_STORAGE, In in, Out out, CUDA_CPU_LIST SIZE, CUDA_CPU_CUB_STREAM) { \
        return Reduce(storage, bytes, in, out, CUDA_CPU_LIST ARGUMENTS, cub::NAME(), initial, stream);       \
    }
#define CUDA_CPU_CUB_REDUCTIONS(...)                                                                         \
    CUDA_CPU_CUB_REDUCTION(Sum, (typename cu_output<Out, In>::type{}), __VA_ARGS__)                          \
    CUDA_CPU_CUB_REDUCTION(Min, Traits<cu_value<In>>::Max(), __VA_ARGS__)                                    \
    CUDA_CPU_CUB_REDUCTION(Max, Traits<cu_value<In>>::Lowest(), __VA_ARGS__)

struct DeviceReduce {
    template <class In, class Out, class Op, class T>
    static cudaError_t Reduce(CUDA_CPU_CUB_STORAGE, In in, Out out, cu_size n, Op op, T initial,
                              CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable { *out = cu_combine<T>(in, 0, n, op, initial); });
    }
    template <class In, class Out, class Op, class Transform, class T>
    static cudaError_t TransformReduce(CUDA_CPU_CUB_STORAGE, In in, Out out, cu_size n, Op op,
                                       Transform transform, T initial, CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            T sum = initial;
            for (cu_size i = 0; i < n; ++i)
                sum = op(sum, transform(in[i]));
            *out = sum;
        });
    }
    CUDA_CPU_CUB_REDUCTIONS((), (cu_size n), (n))
#define CUDA_CPU_CUB_ARG_REDUCTION(NAME, worst)                                                              \
    template <class In, class Out>                                                                           \
    static cudaError_t NAME(CUDA_CPU_CUB_STORAGE, In in, Out out, cu_size n, CUDA_CPU_CUB_STREAM) {          \
        return cu_run(storage, bytes, stream, [=] { *out = cu_best(in, n, cub::NAME(), worst); });           \
    }
    CUDA_CPU_CUB_ARG_REDUCTION(ArgMin, Traits<cu_value<In>>::Max())
    CUDA_CPU_CUB_ARG_REDUCTION(ArgMax, Traits<cu_value<In>>::Lowest())
    template <class Keys, class Unique, class Values, class Out, class Count, class Op>
    static cudaError_t ReduceByKey(CUDA_CPU_CUB_STORAGE, Keys keys, Unique unique, Values values, Out out,
                                   Count count, Op op, cu_size n, CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            cu_size runs = 0;
            for (cu_size i = 0, end; i < n; i = end, ++runs) {
                const cu_value<Keys> key = keys[i];
                for (end = i + 1; end < n && keys[end] == key;)
                    ++end;
                unique[runs] = key;
                out[runs] = cu_combine<cu_value<Values>>(values, i, end, op);
            }
            *count = (int)runs;
        });
    }
};

struct DeviceSegmentedReduce {
    template <class In, class Out, class Begin, class End, class Op, class T>
    static cudaError_t Reduce(CUDA_CPU_CUB_STORAGE, In in, Out out, cu_size segments, Begin begin, End end,
                              Op op, T initial, CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            for (cu_size i = 0; i < segments; ++i)
                out[i] = cu_combine<T>(in, begin[i], end[i], op, initial);
        });
    }
    CUDA_CPU_CUB_REDUCTIONS((, class Begin, class End), (cu_size segments, Begin begin, End end),
                            (segments, begin, end))
};

// ---- scans ----

// `out` may equal `in`.
struct DeviceScan {
    template <class In, class Out, class Op, class T>
    static cudaError_t ExclusiveScan(CUDA_CPU_CUB_STORAGE, In in, Out out, Op op, T initial, cu_size n,
                                     CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            T all = initial;
            for (cu_size i = 0; i < n; ++i) {
                cu_value<In> item = in[i];
                out[i] = all;
                all = op(all, item);
            }
        });
    }
    template <class In, class Out, class Op>
    static cudaError_t InclusiveScan(CUDA_CPU_CUB_STORAGE, In in, Out out, Op op, cu_size n,
                                     CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            typename cu_output<Out, In>::type all{};
            for (cu_size i = 0; i < n; ++i) {
                all = i == 0 ? decltype(all)(in[i]) : decltype(all)(op(all, in[i]));
                out[i] = all;
            }
        });
    }
#define CUDA_CPU_CUB_SUM(NAME, ...)                                                                          \
    template <class In, class Out>                                                                           \
    static cudaError_t NAME##Sum(CUDA_CPU_CUB_STORAGE, In in, Out out, cu_size n, CUDA_CPU_CUB_STREAM) {     \
        return NAME##Scan(storage, bytes, in, out, Sum(), ##__VA_ARGS__, n, stream);                         \
    }                                                                                                        \
    template <class It>                                                                                      \
    static cudaError_t NAME##Sum(CUDA_CPU_CUB_STORAGE, It data, cu_size n, CUDA_CPU_CUB_STREAM) {            \
        return NAME##Sum(storage, bytes, data, data, n, stream);                                             \
    }
    CUDA_CPU_CUB_SUM(Exclusive, typename cu_output<Out, In>::type{})
    CUDA_CPU_CUB_SUM(Inclusive)
};

// ---- selections ----

// A selection of the items for which op(item) is true
#define CUDA_CPU_CUB_IF                                                                                      \
    template <class In, class Out, class Count, class Op>                                                    \
    static cudaError_t If(CUDA_CPU_CUB_STORAGE, In in, Out out, Count count, cu_size n, Op op,               \
                          CUDA_CPU_CUB_STREAM) {                                                             \
        const TransformInputIterator<bool, Op, In> flags(in, op);                                            \
        return Flagged(storage, bytes, in, flags, out, count, n, stream);                                    \
    }

struct DeviceSelect {
    template <class In, class Flags, class Out, class Count>
    static cudaError_t Flagged(CUDA_CPU_CUB_STORAGE, In in, Flags flags, Out out, Count count, cu_size n,
                               CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            cu_size selected = 0;
            for (cu_size i = 0; i < n; ++i)
                if (flags[i])
                    out[selected++] = in[i];
            *count = (int)selected;
        });
    }
    template <class It, class Flags, class Count>
    static cudaError_t Flagged(CUDA_CPU_CUB_STORAGE, It data, Flags flags, Count count, cu_size n,
                               CUDA_CPU_CUB_STREAM) {
        return Flagged(storage, bytes, data, flags, data, count, n, stream);
    }
    CUDA_CPU_CUB_IF
    template <class It, class Count, class Op>
    static cudaError_t If(CUDA_CPU_CUB_STORAGE, It data, Count count, cu_size n, Op op, CUDA_CPU_CUB_STREAM) {
        return If(storage, bytes, data, data, count, n, op, stream);
    }
    template <class In, class Out, class Count>
    static cudaError_t Unique(CUDA_CPU_CUB_STORAGE, In in, Out out, Count count, cu_size n,
                              CUDA_CPU_CUB_STREAM) {
        const auto first = [](const auto &value, const auto &) { return value; };
        return DeviceReduce::ReduceByKey(storage, bytes, in, out, in, DiscardOutputIterator<>(), count, first,
                                         n, stream);
    }
};

// Writes the selected items in their order, then the others in reverse order.
struct DevicePartition {
    template <class In, class Flags, class Out, class Count>
    static cudaError_t Flagged(CUDA_CPU_CUB_STORAGE, In in, Flags flags, Out out, Count count, cu_size n,
                               CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            cu_size selected = 0, others = n;
            for (cu_size i = 0; i < n; ++i)
                out[flags[i] ? selected++ : --others] = in[i];
            *count = (int)selected;
        });
    }
    CUDA_CPU_CUB_IF
};

struct DeviceRunLengthEncode {
    template <class In, class Unique, class Lengths, class Count>
    static cudaError_t Encode(CUDA_CPU_CUB_STORAGE, In in, Unique unique, Lengths lengths, Count count,
                              cu_size n, CUDA_CPU_CUB_STREAM) {
        return DeviceReduce::ReduceByKey(storage, bytes, in, unique, ConstantInputIterator<int>(1), lengths,
                                         count, Sum(), n, stream);
    }
    template <class In, class Offsets, class Lengths, class Count>
    static cudaError_t NonTrivialRuns(CUDA_CPU_CUB_STORAGE, In in, Offsets offsets, Lengths lengths,
                                      Count count, cu_size n, CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=]() mutable {
            cu_size runs = 0;
            for (cu_size i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && in[end] == in[i];)
                    ++end;
                if (end - i > 1) {
                    offsets[runs] = (int)i;
                    lengths[runs++] = (int)(end - i);
                }
            }
            *count = (int)runs;
        });
    }
};

// ---- sorting ----

// Sorts keys, together with values if there are any. The sort is stable.
template <class K, class V>
cudaError_t cu_radix_sort(CUDA_CPU_CUB_STORAGE, const K *keys, K *keys_out, const V *values, V *values_out,
                          cu_size n, cu_by_bits<K> less, cudaStream_t stream) {
    return cu_run(storage, bytes, stream, [=] {
        constexpr bool pairs = !std::is_same_v<V, NullType>;
        const std::vector<K> old(keys, keys + n);
        const std::vector<V> old_values(values, values + (pairs ? n : 0));
        std::vector<cu_size> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](cu_size a, cu_size b) { return less(old[a], old[b]); });
        for (cu_size i = 0; i < n; ++i) {
            keys_out[i] = old[order[i]];
            if constexpr (pairs)
                values_out[i] = old_values[order[i]];
        }
    });
}
template <class K, class V>
cudaError_t cu_radix_sort(CUDA_CPU_CUB_STORAGE, DoubleBuffer<K> &keys, DoubleBuffer<V> &values, cu_size n,
                          cu_by_bits<K> less, cudaStream_t stream) {
    const cudaError_t error = cu_radix_sort(storage, bytes, keys.Current(), keys.Alternate(),
                                            values.Current(), values.Alternate(), n, less, stream);
    if (storage && !error) {
        keys.selector ^= 1;
        values.selector ^= 1;
    }
    return error;
}

struct DeviceRadixSort {
#define CUDA_CPU_CUB_BITS cu_size n, int begin = 0, int end = 8 * sizeof(K), CUDA_CPU_CUB_STREAM
#define CUDA_CPU_CUB_SORTS(KEYS, PAIRS, UP)                                                                  \
    template <class K>                                                                                       \
    static cudaError_t KEYS(CUDA_CPU_CUB_STORAGE, const K *in, K *out, CUDA_CPU_CUB_BITS) {                  \
        return cu_radix_sort(storage, bytes, in, out, (const NullType *)nullptr, (NullType *)nullptr, n,     \
                             cu_by_bits<K>{begin, end, UP}, stream);                                         \
    }                                                                                                        \
    template <class K>                                                                                       \
    static cudaError_t KEYS(CUDA_CPU_CUB_STORAGE, DoubleBuffer<K> &keys, CUDA_CPU_CUB_BITS) {                \
        DoubleBuffer<NullType> none;                                                                         \
        return cu_radix_sort(storage, bytes, keys, none, n, cu_by_bits<K>{begin, end, UP}, stream);          \
    }                                                                                                        \
    template <class K, class V>                                                                              \
    static cudaError_t PAIRS(CUDA_CPU_CUB_STORAGE, const K *in, K *out, const V *values, V *values_out,      \
                             CUDA_CPU_CUB_BITS) {                                                            \
        return cu_radix_sort(storage, bytes, in, out, values, values_out, n, cu_by_bits<K>{begin, end, UP},  \
                             stream);                                                                        \
    }                                                                                                        \
    template <class K, class V>                                                                              \
    static cudaError_t PAIRS(CUDA_CPU_CUB_STORAGE, DoubleBuffer<K> &keys, DoubleBuffer<V> &values,           \
                             CUDA_CPU_CUB_BITS) {                                                            \
        return cu_radix_sort(storage, bytes, keys, values, n, cu_by_bits<K>{begin, end, UP}, stream);        \
    }
    CUDA_CPU_CUB_SORTS(SortKeys, SortPairs, true)
    CUDA_CPU_CUB_SORTS(SortKeysDescending, SortPairsDescending, false)
};

// ---- histograms ----

struct DeviceHistogram {
    // levels - 1 bins of equal width, for samples s with lower <= s < upper.
    template <class In, class Counter, class Level>
    static cudaError_t HistogramEven(CUDA_CPU_CUB_STORAGE, In in, Counter *histogram, int levels, Level lower,
                                     Level upper, cu_size n, CUDA_CPU_CUB_STREAM) {
        return cu_run(storage, bytes, stream, [=] {
            std::fill(histogram, histogram + levels - 1, Counter(0));
            for (cu_size i = 0; i < n; ++i) {
                const cu_value<In> sample = in[i];
                if (!(sample < lower) && sample < upper) {
                    cu_size bin;
                    if constexpr (std::is_integral_v<cu_value<In>> && std::is_integral_v<Level>)
                        bin = (cu_size)((__int128)((cu_size)sample - (cu_size)lower) * (levels - 1) /
                                        ((cu_size)upper - (cu_size)lower));
                    else
                        bin = (cu_size)((sample - lower) * ((levels - 1) / (upper - lower)));
                    ++histogram[std::min<cu_size>(bin, levels - 2)];
                }
            }
        });
    }
};

} // namespace cub

#include "letters_on.h"
