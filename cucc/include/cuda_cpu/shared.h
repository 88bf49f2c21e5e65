// SPDX-License-Identifier: MIT
// Variables in shared memory; a part of kernel.h
#pragma once

namespace cuda_cpu {

struct SharedEntry {
    uint64_t block; // the block_number for which the pointer is valid
    void *pointer;
};
extern __thread SharedEntry *shared_table; // of this worker thread; an entry for each __shared__ declaration
extern __thread uint64_t block_number;     // how many blocks this worker thread has started

// Returns the index of a new entry in shared_table, and adds the variable's size, in bytes, to *declared.
unsigned new_shared_slot(size_t size, size_t *declared);
// Allocates the current block's instance of a __shared__ variable. Ends the program outside of kernels, and
// when the block then has more shared memory than the launch permits. `name` is for messages.
void *allocate_shared(unsigned slot, size_t size, size_t align, const char *name);
// The current block's dynamic shared memory. Ends the program outside of kernels.
void *dynamic_shared_memory(const char *name);

// The index of a declaration's entry in shared_table. Each declaration, and each instance of a template, has
// its own. Tag distinguishes them: it is the type of a lambda that is written at the declaration.
template <class T, class Owner, class Tag> struct SharedSlot {
    static inline const unsigned index = new_shared_slot(sizeof(T), &Declared<Owner>::bytes);
};

// Returns the current block's instance of a __shared__ variable. The first thread of the block that executes
// the declaration allocates it. `align`: the alignment that the declaration specifies, in bytes.
template <class T, class Owner, class Tag>
inline T &shared(Tag, const char *name, size_t align = alignof(T)) {
    const unsigned slot = SharedSlot<T, Owner, Tag>::index;
    if (__builtin_expect(shared_table && shared_table[slot].block == block_number, 1))
        return *static_cast<T *>(shared_table[slot].pointer);
    return *static_cast<T *>(allocate_shared(slot, sizeof(T), align, name));
}

// Returns the current block's dynamic shared memory. T is an array of unknown bound, such as float[].
template <class T> inline T &dynamic_shared(const char *name) {
    return *static_cast<T *>(dynamic_shared_memory(name));
}

// `extern __shared__ T x[];`, an array of unknown bound, outside a function. Functions of namespaces that use
// x declare a reference. Elsewhere this object becomes a pointer to the block's dynamic shared memory.
template <class T> struct dynamic_array {
    using Element = std::remove_extent_t<T>;
    T *operator&() const { return &dynamic_shared<T>("extern __shared__ array"); }
    operator Element *() const { return *&*this; }
    template <class U> explicit operator U *() const { return (U *)*&*this; }
};

} // namespace cuda_cpu
