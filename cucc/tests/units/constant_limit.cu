// SPDX-License-Identifier: MIT
// cucc only: a program with more than 64 KiB of __constant__ variables, which nvcc refuses, ends at its first
// call of the runtime. The other unit tests are programs within the limit.
#include <cuda_runtime.h>
#include "../unit.h"

#ifdef __CU2CPP__
__constant__ char first[65536];
__constant__ char one_too_many = 1;

TEST(too_many_constants_end_the_program) {
    EXPECT(first != &one_too_many);
    const unit_result r = in_child([] { cudaFree(NULL); });
#ifdef __SANITIZE_ADDRESS__ // its red zones make variables longer, so there is no limit
    EXPECT(r.status == 0);
#else
    ends_with(r, {"cuda on the CPU: the __constant__ variables take 65", " bytes, a device has 65536\n"});
#endif
}
#endif
