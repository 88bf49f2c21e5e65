// SPDX-License-Identifier: MIT
#error "cub/cub.cuh: CUB has PTX in it, which the CPU back end does not support; Thrust's algorithms work"
