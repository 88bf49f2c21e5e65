// SPDX-License-Identifier: MIT
// __device__, __constant__ and __managed__ variables. The translator puts them into linker sections, where
// they are contiguous. The sections hold the values of one device at a time and are swapped when another
// device is used. Managed variables are common to all devices; variables that are const never change. Both
// are not swapped.
#include "stream.h"

#include <dlfcn.h>
#include <fstream>
#include <link.h>

// The linker defines these symbols at both ends of a section. They are weak, so null in a program without
// such variables, and not const: load() writes to the section, and a const object could keep its value.
#define SECTION(name)                                                                                        \
    extern "C" char __start_##name[] __attribute__((weak, visibility("hidden")));                            \
    extern "C" char __stop_##name[] __attribute__((weak, visibility("hidden")));
SECTION(cuda_device)
SECTION(cuda_device_ro)
SECTION(cuda_constant)
SECTION(cuda_constant_ro)
SECTION(cuda_managed)

namespace cuda_cpu {

// All sections, and the memory that per_device_variable() has added. Constructors of the program's variables
// may add memory before this file's variables are initialised, so the list is made at the first call.
std::vector<SymbolSection> &symbol_sections() {
    static auto &all = *new std::vector<SymbolSection>{
        {__start_cuda_device, __stop_cuda_device, true, false, true},
        {__start_cuda_device_ro, __stop_cuda_device_ro, false, false, false},
        {__start_cuda_constant, __stop_cuda_constant, true, true, true},
        {__start_cuda_constant_ro, __stop_cuda_constant_ro, false, true, false},
        {__start_cuda_managed, __stop_cuda_managed, false, false, true},
    };
    return all;
}

namespace {

size_t size_of(const SymbolSection &s) {
    return (size_t)(s.end - s.begin);
}

// Copies a whole section, including the red zones that AddressSanitizer puts between the variables.
// The sanitizer checks calls of memcpy, so this is a loop in a function without instrumentation.
// The empty asm statement keeps the compiler from turning the loop into a call of memcpy.
__attribute__((no_sanitize("address", "thread"))) void copy_section(char *to, const char *from,
                                                                    size_t bytes) {
    typedef uint64_t __attribute__((may_alias, aligned(1))) Word;
    size_t i = 0;
    for (; i + sizeof(Word) <= bytes; i += sizeof(Word)) {
        *(Word *)(to + i) = *(const Word *)(from + i);
        asm volatile("" : : : "memory");
    }
    for (; i < bytes; ++i) {
        to[i] = from[i];
        asm volatile("" : : : "memory");
    }
}

using Image = std::unique_ptr<char[]>; // a copy of all sections whose values differ per device

size_t image_size() {
    size_t bytes = 0;
    for (const SymbolSection &s : symbol_sections())
        bytes += s.per_device ? size_of(s) : 0;
    return bytes;
}

// Copies the values of these sections into the image, or from it.
void copy_image(Image &image, bool save) {
    if (!image)
        image.reset(new char[image_size()]);
    char *in_image = image.get();
    for (const SymbolSection &s : symbol_sections())
        if (s.per_device) {
            copy_section(save ? in_image : s.begin, save ? s.begin : in_image, size_of(s));
            in_image += size_of(s);
        }
}

// Protected by launch_lock.
struct Values {
    Image initial;             // the values at program start
    Image images[max_devices]; // saved values of the devices that are not loaded; null: the initial values
    int in_place = -1;
};

ONLY(values, Values)

// Checks a copy of `bytes` at `offset` of a variable. `size` 0 is unknown: the section is the limit.
cudaError_t check_symbol(const char *call, const void *symbol, size_t size, size_t bytes, size_t offset) {
    const SymbolSection *const section = symbol_section(symbol);
    FAIL_IF(!section, cudaErrorInvalidSymbol,
            "%p is not a __device__ or __constant__ variable; pass the variable itself, not its address",
            symbol);
    const size_t limit = size ? size : (size_t)(section->end - (const char *)symbol);
    FAIL_IF(bytes && (bytes > limit || offset > limit - bytes), cudaErrorInvalidValue,
            "%zu bytes at offset %zu do not fit in a variable of %zu bytes", bytes, offset, limit);
    return cudaSuccess;
}

} // namespace

void TicketLock::lock() {
    const uint64_t mine = next++;
    if (serving == mine)
        return;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return serving == mine; });
}

void TicketLock::unlock() {
    const uint64_t free = ++serving;
    if (next == free)
        return;
    std::lock_guard<std::mutex> lock(mutex); // the next holder waits already, or will read the new `serving`
    changed.notify_all();
}

ONLY(launch_lock, TicketLock)

void symbols_for_device(int device) {
    Values &v = values();
    if (v.in_place == device)
        return;
    if (image_size() > 0) {
        if (v.in_place < 0) {
            copy_image(v.initial, true);
        } else {
            copy_image(v.images[v.in_place], true);
            copy_image(v.images[device] ? v.images[device] : v.initial, false);
            v.images[device].reset();
        }
    }
    v.in_place = device;
}

void reset_symbols_of(int device) {
    std::lock_guard<TicketLock> lock(launch_lock());
    Values &v = values();
    v.images[device].reset();
    if (v.in_place == device && v.initial)
        copy_image(v.initial, false);
}

const SymbolSection *symbol_section(const void *address) {
    for (const SymbolSection &s : symbol_sections())
        if ((const char *)address >= s.begin && (const char *)address < s.end)
            return &s;
    return nullptr;
}

void per_device_variable(void *variable, size_t bytes) {
    symbol_sections().push_back({(char *)variable, (char *)variable + bytes, true, false, true});
}

#ifndef __wasm__
// Finds a variable in the symbol table of the program's file: dlsym() needs -rdynamic.
static void *in_symbol_table(const char *name, size_t *bytes) {
    std::ifstream program("/proc/self/exe", std::ios::binary);
    const std::vector<char> file{std::istreambuf_iterator<char>(program), {}};
    if (file.size() < sizeof(ElfW(Ehdr)))
        return nullptr;
    const auto *const header = (const ElfW(Ehdr) *)file.data();
    const auto *const sections = (const ElfW(Shdr) *)(file.data() + header->e_shoff);
    for (const auto *s = sections; s < sections + header->e_shnum; ++s) {
        const auto *const symbols = (const ElfW(Sym) *)(file.data() + s->sh_offset);
        for (size_t i = 0; s->sh_type == SHT_SYMTAB && i < s->sh_size / sizeof *symbols; ++i)
            if (ELF64_ST_BIND(symbols[i].st_info) == STB_GLOBAL &&
                strcmp(file.data() + sections[s->sh_link].sh_offset + symbols[i].st_name, name) == 0) {
                *bytes = symbols[i].st_size;
                return (char *)_r_debug.r_map->l_addr + symbols[i].st_value;
            }
    }
    return nullptr;
}

void *find_variable(const char *name, size_t *bytes, void *library) {
    Dl_info info;
    const ElfW(Sym) *symbol = nullptr;
    void *const address = dlsym(library, name);
    if (!address && !library) {
        void *const found = in_symbol_table(name, bytes);
        return found && symbol_section(found) ? found : nullptr;
    }
    if (!address || !symbol_section(address) || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
        !symbol)
        return nullptr;
    *bytes = symbol->st_size;
    return address;
}
#endif

// Ends the program when its __constant__ variables are too large, which nvcc refuses at link time.
void check_constant_limit() {
#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer's red zones make every variable larger
    size_t bytes = 0;
    for (const SymbolSection &s : symbol_sections())
        bytes += s.constant ? size_of(s) : 0;
    if (bytes > 65536)
        end_program("the __constant__ variables take %zu bytes, a device has 65536", bytes);
#endif
}

cudaError_t copy_symbol(const char *call, bool to_symbol, const void *symbol, size_t size, const void *other,
                        size_t count, size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                        bool asynchronous) {
    BEGIN_IN(stream);
    TRY(check_symbol(call, symbol, size, count, offset));
    const cudaMemcpyKind host_kind = to_symbol ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    FAIL_IF(kind != host_kind && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault,
            cudaErrorInvalidMemcpyDirection,
            "the direction %d does not %s at a device, as %s, cudaMemcpyDeviceToDevice and "
            "cudaMemcpyDefault do",
            (int)kind, to_symbol ? "end" : "start",
            to_symbol ? "cudaMemcpyHostToDevice" : "cudaMemcpyDeviceToHost");
    if (count == 0)
        return cudaSuccess;
    FAIL_IF(to_symbol && !symbol_section(symbol)->writable, cudaErrorInvalidSymbol,
            "the variable is const, so the compiler may have used its value already");
    TRY(check_range(call, to_symbol ? "source" : "destination", other, count,
                    kind == host_kind                  ? Accessor::host
                    : kind == cudaMemcpyDeviceToDevice ? Accessor::device
                                                       : Accessor::either));
    char *const inside = (char *)const_cast<void *>(symbol) + offset;
    void *const outside = const_cast<void *>(other);
    return transfer(
        call, to_symbol ? byte_copy(inside, outside, count, kind) : byte_copy(outside, inside, count, kind),
        stream, asynchronous);
}

cudaError_t symbol_size(size_t *bytes, const void *symbol, size_t size) {
    BEGIN_AS("cudaGetSymbolSize", bytes);
    TRY(check_symbol(call, symbol, size, 0, 0));
    FAIL_IF(!size, cudaErrorInvalidSymbol, "the type of the variable does not tell its size");
    return store(bytes, size);
}

} // namespace cuda_cpu

AND_ASYNC(cudaMemcpyToSymbol,
          (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind kind),
          copy_symbol(__func__, true, symbol, 0, from, bytes, offset, kind, stream, asynchronous))
AND_ASYNC(cudaMemcpyFromSymbol,
          (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
          copy_symbol(__func__, false, symbol, 0, to, bytes, offset, kind, stream, asynchronous))

// One address for all devices: in a copy the current device's variable, in a kernel the launching device's.
cudaError_t cudaGetSymbolAddress(void **device_pointer, const void *symbol) {
    BEGIN(device_pointer);
    TRY(check_symbol(call, symbol, 0, 0, 0));
    return store(device_pointer, const_cast<void *>(symbol));
}
