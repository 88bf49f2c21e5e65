// SPDX-License-Identifier: MIT
// Arrays of one, two and three dimensions, with layers, cube faces and mipmaps, and their copies.
#include "stream.h"
#include "texture.h"

namespace cuda_cpu {
namespace {

cudaError_t check_extent(const char *call, const cudaExtent &e, unsigned flags) {
    const cudaDeviceProp &d = properties(current_device());
    const bool cube = flags & cudaArrayCubemap, layers = flags & cudaArrayLayered;
    size_t most[3] = {0, 0, 0};
    const auto limit = [&](int x, int y, int z) { most[0] = x, most[1] = y, most[2] = z; };
    if (cube && layers)
        limit(d.maxTextureCubemapLayered[0], d.maxTextureCubemapLayered[0],
              6 * d.maxTextureCubemapLayered[1]);
    else if (cube)
        limit(d.maxTextureCubemap, d.maxTextureCubemap, 6);
    else if (layers && e.height)
        limit(d.maxTexture2DLayered[0], d.maxTexture2DLayered[1], d.maxTexture2DLayered[2]);
    else if (layers)
        limit(d.maxTexture1DLayered[0], 0, d.maxTexture1DLayered[1]);
    else if (e.depth)
        limit(d.maxTexture3D[0], d.maxTexture3D[1], d.maxTexture3D[2]);
    else if (e.height)
        limit(d.maxTexture2D[0], d.maxTexture2D[1], 0);
    else
        limit(d.maxTexture1D, 0, 0);
    if (e.width == 0 || e.width > most[0] || e.height > most[1] || e.depth > most[2]) {
        FAIL_IF(e.depth == 0 && !layers && !cube, cudaErrorInvalidValue,
                "%zu x %zu texels, must be 1 to %zu x 0 to %zu", e.width, e.height, most[0],
                e.height ? most[1] : (size_t)d.maxTexture2D[1]);
        return fail(cudaErrorInvalidValue, "%s: %zu x %zu x %zu texels, the limits are %zu x %zu x %zu", call,
                    e.width, e.height, e.depth, most[0], most[1], most[2]);
    }
    FAIL_IF(layers && e.depth == 0, cudaErrorInvalidValue,
            "a layered array needs its number of layers as depth");
    FAIL_IF(!layers && !cube && e.depth && !e.height, cudaErrorInvalidValue,
            "an array with a depth needs a height");
    FAIL_IF(cube && (e.width != e.height || e.depth == 0 || e.depth % 6 || (!layers && e.depth != 6)),
            cudaErrorInvalidValue,
            "%zu x %zu x %zu texels: the faces of a cubemap are square, and its depth is 6 (6 for "
            "each layer)",
            e.width, e.height, e.depth);
    return cudaSuccess;
}

cudaError_t check_new_array(const char *call, const cudaChannelFormatDesc &desc, const cudaExtent &extent,
                            unsigned flags) {
    if (!texel_bytes(desc))
        return bad_format(call, desc);
    FAIL_IF(flags & ~(unsigned)(cudaArraySurfaceLoadStore | cudaArrayTextureGather | cudaArrayLayered |
                                cudaArrayCubemap),
            cudaErrorInvalidValue, "0x%x is not a valid combination of flags", flags);
    return check_extent(call, extent, flags);
}

cudaArray make_array(const cudaChannelFormatDesc &desc, const cudaExtent &e, unsigned flags) {
    return {nullptr,          desc,   e.width, e.height, e.depth, e.width * texel_bytes(desc), flags,
            current_device(), nullptr};
}

// ---- copies ----

CopySide corner(const cudaArray *array, size_t x, size_t y) {
    return {array, nullptr, 0, 0, x, y, 0};
}

// Copies consecutive bytes of an array, from (x, y) on, also across the ends of rows.
cudaError_t copy_bytes(const char *call, bool to_array, cudaArray_const_t array, size_t x, size_t y,
                       const void *other, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                       bool asynchronous) {
    BEGIN_IN();
    TRY(check_array(call, array));
    const size_t first = y * array->row_bytes + x, all = array->slice_bytes();
    FAIL_IF(x > array->row_bytes || first > all || bytes > all - first, cudaErrorInvalidValue,
            "%zu bytes at byte %zu, the array has %zu bytes", bytes, first, all);
    const CopySide inside = pitched(array->data + first, bytes, 1);
    const CopySide outside = pitched(other, bytes, 1);
    FAIL_IF(kind != cudaMemcpyDefault &&
                (kind == cudaMemcpyHostToHost || (kind == cudaMemcpyHostToDevice && !to_array) ||
                 (kind == cudaMemcpyDeviceToHost && to_array)),
            cudaErrorInvalidMemcpyDirection,
            "the %s is an array, which is on the device, so the direction must be %s, "
            "cudaMemcpyDeviceToDevice or cudaMemcpyDefault",
            to_array ? "destination" : "source",
            to_array ? "cudaMemcpyHostToDevice" : "cudaMemcpyDeviceToHost");
    return transfer(call, {to_array ? inside : outside, to_array ? outside : inside, bytes, 1, 1, kind},
                    stream, asynchronous);
}

cudaError_t copy_rows(const char *call, const cudaArray *array, const Transfer &t, cudaStream_t stream,
                      bool asynchronous) {
    BEGIN_IN();
    TRY(check_array(call, array));
    return transfer(call, t, stream, asynchronous);
}

} // namespace

size_t live_arrays() {
    return live<cudaArray>().all.size(); // also the levels of mipmapped arrays
}

size_t texel_bytes(const cudaChannelFormatDesc &d) {
    const int bits[] = {d.x, d.y, d.z, d.w};
    const int n = d.w ? 4 : d.z ? 3 : d.y ? 2 : 1;
    const bool known = d.x == 32 || d.x == 16 || (d.x == 8 && d.f != cudaChannelFormatKindFloat);
    if (!known || n == 3 || (unsigned)d.f > cudaChannelFormatKindFloat)
        return 0;
    for (int i = 0; i < n; ++i)
        if (bits[i] != d.x)
            return 0;
    return (size_t)(n * d.x / 8);
}

cudaError_t bad_format(const char *call, const cudaChannelFormatDesc &d) {
    return fail(cudaErrorInvalidChannelDescriptor,
                "%s: texels of %d, %d, %d and %d bits of kind %d are not supported, only 1, 2 or 4 "
                "components of 8, 16 or 32 bits each, floats of 16 or 32",
                call, d.x, d.y, d.z, d.w, (int)d.f);
}

#define CHECK(check, Array, what)                                                                            \
    cudaError_t check(const char *call, const Array *array) {                                                \
        FAIL_IF(!live<Array>().has(array), cudaErrorInvalidResourceHandle,                                   \
                "%p is not " what ", or was freed already", (const void *)array);                            \
        return cudaSuccess;                                                                                  \
    }
CHECK(check_array, cudaArray, "an array")
CHECK(check_mipmapped_array, cudaMipmappedArray, "a mipmapped array")
#undef CHECK

static cudaError_t new_array(const char *call, cudaArray_t *array, const cudaChannelFormatDesc *desc,
                             cudaExtent extent, unsigned flags) {
    BEGIN_IN();
    FAIL_IF(!array || !desc, cudaErrorInvalidValue, "array or format is NULL");
    TRY(check_new_array(call, *desc, extent, flags));
    cudaArray made = make_array(*desc, extent, flags);
    void *data;
    TRY(allocate(call, &data, made.slice_bytes() * made.slices(), MemoryKind::device, 0));
    made.data = (char *)data;
    return store(array, live<cudaArray>().add(new cudaArray(made)));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width,
                            size_t height, unsigned flags) {
    return new_array(__func__, array, desc, {width, height, 0}, flags);
}

FORWARD(cudaMalloc3DArray,
        (cudaArray_t * array, const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned flags),
        new_array(__func__, array, desc, extent, flags))

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const cudaChannelFormatDesc *desc,
                                     cudaExtent extent, unsigned levels, unsigned flags) {
    BEGIN();
    FAIL_IF(!array || !desc, cudaErrorInvalidValue, "array or format is NULL");
    TRY(check_new_array(call, *desc, extent, flags));
    const bool layers = flags & (cudaArrayLayered | cudaArrayCubemap); // same number at each level
    unsigned most = 1;
    for (size_t n = std::max({extent.width, extent.height, layers ? 0 : extent.depth}); n > 1; n /= 2)
        ++most;
    levels = std::clamp(levels, 1u, most);
    cudaMipmappedArray made = {nullptr, {}, levels, current_device()};
    size_t bytes = 0;
    const auto smaller = [](size_t n, unsigned level) { return n ? std::max<size_t>(n >> level, 1) : 0; };
    for (unsigned l = 0; l < levels; ++l) {
        const cudaExtent e = {smaller(extent.width, l), smaller(extent.height, l),
                              layers ? extent.depth : smaller(extent.depth, l)};
        made.levels[l] = new cudaArray(make_array(*desc, e, flags));
        bytes += made.levels[l]->slice_bytes() * made.levels[l]->slices();
    }
    void *data;
    if (const cudaError_t error = allocate(call, &data, bytes, MemoryKind::device, 0)) {
        std::for_each(made.levels, made.levels + levels, [](cudaArray *level) { delete level; });
        return error;
    }
    made.data = (char *)data;
    *array = live<cudaMipmappedArray>().add(new cudaMipmappedArray(made));
    char *at = made.data;
    for (unsigned l = 0; l < levels; ++l) {
        cudaArray &level = *made.levels[l];
        level.data = at;
        level.levels_of = *array;
        at += level.slice_bytes() * level.slices();
        live<cudaArray>().add(&level);
    }
    return cudaSuccess;
}

} // namespace cuda_cpu

cudaError_t cuda_cpu::transfer_of(const char *call, const cudaMemcpy3DParms &p, Transfer &t) {
    const auto one_of_two = [&](const char *role, const cudaArray *array, const void *pointer) {
        FAIL_IF(!array == !pointer, cudaErrorInvalidValue,
                "the %s must be either an array or memory, it is %s", role, array ? "both" : "neither");
        return array ? check_array(call, array) : cudaSuccess;
    };
    TRY(one_of_two("source", p.srcArray, p.srcPtr.ptr));
    TRY(one_of_two("destination", p.dstArray, p.dstPtr.ptr));
    const cudaArray *const array = p.srcArray ? p.srcArray : p.dstArray;
    const size_t element = array ? texel_bytes(array->desc) : 1;
    FAIL_IF(p.srcArray && p.dstArray && texel_bytes(p.dstArray->desc) != element, cudaErrorInvalidValue,
            "the texels of the arrays have %zu and %zu bytes", element, texel_bytes(p.dstArray->desc));
    const auto end = [&](const cudaArray *a, const cudaPitchedPtr &m, const cudaPos &at) {
        return CopySide{a, (char *)m.ptr, m.pitch, m.ysize, a ? at.x * element : at.x, at.y, at.z};
    };
    t = {end(p.dstArray, p.dstPtr, p.dstPos),
         end(p.srcArray, p.srcPtr, p.srcPos),
         p.extent.width * element,
         p.extent.height,
         p.extent.depth,
         p.kind};
    return cudaSuccess;
}

static cudaError_t copy_3d(const char *call, const cudaMemcpy3DParms *params, cudaStream_t stream,
                           bool asynchronous) {
    BEGIN_IN(params);
    Transfer t;
    TRY(transfer_of(call, *params, t));
    return transfer(call, t, stream, asynchronous);
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    BEGIN();
    if (!array)
        return cudaSuccess;
    TRY(check_array(call, array));
    FAIL_IF(array->levels_of, cudaErrorInvalidValue, "the array is a level of a mipmapped array");
    finish_device(-1);
    live<cudaArray>().take(array);
    const cudaError_t error = free_device(call, array->data);
    delete array;
    return error;
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
    BEGIN();
    if (!array)
        return cudaSuccess;
    TRY(check_mipmapped_array(call, array));
    finish_device(-1);
    live<cudaMipmappedArray>().take(array);
    for (unsigned l = 0; l < array->count; ++l) {
        live<cudaArray>().take(array->levels[l]);
        delete array->levels[l];
    }
    const cudaError_t error = free_device(call, array->data);
    delete array;
    return error;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_t of, unsigned level) {
    BEGIN(array);
    TRY(check_mipmapped_array(call, of));
    FAIL_IF(level >= of->count, cudaErrorInvalidValue, "there is no level %u, only 0 to %u", level,
            of->count - 1);
    return store(array, of->levels[level]);
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_const_t array) {
    BEGIN(desc);
    TRY(check_array(call, array));
    return store(desc, array->desc);
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned *flags,
                             cudaArray_t array) {
    BEGIN();
    TRY(check_array(call, array));
    store(desc, array->desc);
    if (extent)
        *extent = {array->width, array->height, array->depth};
    return store(flags, array->flags);
}

AND_ASYNC(cudaMemcpy3D, (const cudaMemcpy3DParms *params), copy_3d(__func__, params, stream, asynchronous))
AND_ASYNC(cudaMemcpy2DToArray,
          (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t rows,
           cudaMemcpyKind kind),
          copy_rows(__func__, to, {corner(to, x, y), pitched(from, pitch, rows), width, rows, 1, kind},
                    stream, asynchronous))
AND_ASYNC(cudaMemcpy2DFromArray,
          (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t rows,
           cudaMemcpyKind kind),
          copy_rows(__func__, from, {pitched(to, pitch, rows), corner(from, x, y), width, rows, 1, kind},
                    stream, asynchronous))

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                     size_t from_x, size_t from_y, size_t width, size_t rows,
                                     cudaMemcpyKind kind) {
    TRY(check_array(__func__, from));
    return copy_rows(__func__, to,
                     {corner(to, to_x, to_y), corner(from, from_x, from_y), width, rows, 1, kind}, nullptr,
                     false);
}

AND_ASYNC(cudaMemcpyToArray,
          (cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes, cudaMemcpyKind kind),
          copy_bytes(__func__, true, to, x, y, from, bytes, kind, stream, asynchronous))
AND_ASYNC(cudaMemcpyFromArray,
          (void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes, cudaMemcpyKind kind),
          copy_bytes(__func__, false, from, x, y, to, bytes, kind, stream, asynchronous))
