// SPDX-License-Identifier: MIT
// Programs with device_ptr, but no device_vector, use device memory in algorithms too (streams_are_eager).
#pragma once
#include_next <thrust/device_ptr.h>
#include <thrust/mr/device_memory_resource.h>
#include <thrust/sequence.h> // Programs get it from headers of the CUDA system without including it.
