# SPDX-License-Identifier: MIT
# find_package(cucc), then enable_language(CUDA): cucc compiles the .cu files, unless another compiler was chosen. Targets of C and C++
# that call the runtime link cucc::cudart.
get_filename_component(CUCC_PREFIX ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
set(CUCC_EXECUTABLE ${CUCC_PREFIX}/bin/cucc)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER ${CUCC_EXECUTABLE})
endif()
if(NOT TARGET cucc::cudart)
    add_library(cucc::cudart INTERFACE IMPORTED)
    target_include_directories(cucc::cudart INTERFACE ${CUCC_PREFIX}/lib/cucc/include)
    target_link_directories(cucc::cudart INTERFACE ${CUCC_PREFIX}/lib/cucc/lib64)
    target_link_libraries(cucc::cudart INTERFACE cudart)
endif()
