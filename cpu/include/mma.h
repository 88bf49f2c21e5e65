// SPDX-License-Identifier: MIT
#error "mma.h: the tensor cores' matrix functions (nvcuda::wmma) are not supported by the CPU back end"
