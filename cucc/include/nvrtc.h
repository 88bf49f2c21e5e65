// SPDX-License-Identifier: MIT
#error "nvrtc.h: compiling kernels at run time (NVRTC) is not supported by the CPU back end"
