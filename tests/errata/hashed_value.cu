// SPDX-License-Identifier: MIT
// A.2.2: a pointer to the value is hashed where the key is meant.
static size_t bucket_of(size_t key) {
    return key % 1024;
}

bool belongs(void *value, size_t bucket) {
    return bucket_of(value) == bucket;
}
