// SPDX-License-Identifier: MIT
// Objects that the whole runtime shares, and those of each host thread
#pragma once
#include "call.h"

#include <pthread.h>

namespace cuda_cpu {

// The only object of this type, never destroyed: host threads may use it while the process exits. It is not
// in memory of malloc(), so that it can be made when there is none left.
template <class T> T &only() {
    alignas(T) static char memory[sizeof(T)];
    static T &object = *new (memory) T;
    return object;
}
#define ONLY(name, ...)                                                                                      \
    __VA_ARGS__ &name() {                                                                                    \
        return only<__VA_ARGS__>();                                                                          \
    }

// The objects of one kind that the program has made and not destroyed
template <class T> struct LiveObjects {
    std::mutex mutex;
    std::set<T *> all;

    T *add(T *object) {
        std::lock_guard lock(mutex);
        return *all.insert(object).first;
    }
    bool has(const T *object) {
        std::lock_guard lock(mutex);
        return all.count(const_cast<T *>(object));
    }
    bool take(T *object) {
        std::lock_guard lock(mutex);
        return all.erase(object);
    }
    void delete_those_of(int device) {
        std::lock_guard lock(mutex);
        for (auto i = all.begin(); i != all.end();) {
            T *const object = *i;
            i = object->device == device ? all.erase(i) : std::next(i);
            if (object->device == device)
                delete object;
        }
    }
};
template <class T> LiveObjects<T> &live() {
    return only<LiveObjects<T>>();
}

// An object of each host thread, made when the thread first needs it and deleted when the thread ends. Not a
// thread_local object with a destructor: glibc aborts if there is no memory to register that.
template <class T> class PerThread {
  public:
    PerThread() {
        pthread_key_create(&key, [](void *object) { delete static_cast<T *>(object); });
    }
    T &mine() {
        static thread_local T *object = nullptr; // there is one PerThread for each type
        if (!object) {
            object = new T;
            pthread_setspecific(key, object);
        }
        return *object;
    }

  private:
    pthread_key_t key;
};

} // namespace cuda_cpu
