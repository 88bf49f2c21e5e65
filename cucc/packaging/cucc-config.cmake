# SPDX-License-Identifier: MIT
# find_package(cucc), then enable_language(CUDA): cucc compiles the .cu files, unless another compiler was chosen.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    get_filename_component(CMAKE_CUDA_COMPILER ${CMAKE_CURRENT_LIST_DIR}/../../../bin/cucc ABSOLUTE)
endif()
