// SPDX-License-Identifier: MIT
#error "cub/cub.cuh: CUB is written in PTX in part and is not supported by the CPU back end; Thrust's algorithms are"
