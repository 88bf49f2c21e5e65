#!/bin/sh
# SPDX-License-Identifier: MIT
# The optional libraries: which of them this machine has, and what is switched off without them.
#   libs.sh probe BACKEND FILE    writes the libraries to FILE, for make. Libraries that an earlier run
#                                 found are not tested again; missing ones are
#   libs.sh report BACKEND FILE [GOAL…]   a line for each library that BACKEND can use and that is missing, and for each
#                                 program that is therefore not built; no programs if every goal is a single program
#   libs.sh doctor                a line for each library, found or missing, and its package
# CC, CXX, HOSTCC and NVCC are the compilers; MPICC is the C compiler of MPI, default mpicc. HAVE_PNG=0 in the
# environment switches libpng off; the other libraries have such variables too.
set -eu
cd "${0%/*}/.."

# name | used by | what is switched off without it | Debian package | linker flags | language | a test program that
# needs the header and the library. The linker flags `mpicc` are those that mpicc prints. Used by: common, a back end, programs of a
# back end (with `Needs: libs=name`), or programs of both. Language: c and c++ of CC and CXX; cpp is C++ for the host that nvcc
# compiles, which takes a quarter of the time of a .cu.
table() {
    cat <<'END'
PNG|common|PNG pictures (libpng)|libpng-dev|-lpng|c|#include <png.h>\nint main(void) { return !png_access_version_number(); }
WEBP|common|animations as WebP (libwebp)|libwebp-dev|-lwebpmux -lwebp|c|#include <webp/encode.h>\n#include <webp/mux.h>\nint main(void) { WebPMux *mux = WebPMuxNew(); return !mux + WebPGetEncoderVersion(); }
GLUT|common|windows (freeglut, OpenGL)|freeglut3-dev|-lglut -lGL|c|#include <GL/freeglut.h>\nint main(void) { glutMainLoopEvent(); return !glGetString(GL_VERSION); }
GL|common|CUDA with OpenGL (OpenGL, EGL)|libegl-dev|-lEGL -lGL|c|#define GL_GLEXT_PROTOTYPES\n#include <EGL/egl.h>\n#include <EGL/eglext.h>\n#include <GL/gl.h>\n#include <GL/glext.h>\nint main(void) { glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0); return !eglGetDisplay(0); }
MPI|programs|MPI (mpicc on PATH; on Fedora after: module load mpi)|libopenmpi-dev|mpicc|c|#include <mpi.h>\nint main(int argc, char **argv) { return MPI_Init(&argc, &argv); }
VULKAN|programs|CUDA with Vulkan (Vulkan 1.2)|libvulkan-dev|-lvulkan|c|#include <vulkan/vulkan.h>\nint main(void) { return vkWaitSemaphores(0, 0, 0); }
CUB|gpu|CUB, beside our own kernels in the ladders|cuda-cccl of the CUDA toolkit||cpp|#include <cub/version.cuh>\nint main() { return CUB_VERSION == 0; }
CUBLAS|gpu|cuBLAS, beside our own kernels in the ladders|libcublas-dev of the CUDA toolkit|-lcublas|cpp|#include <cublas_v2.h>\nint main() { cublasHandle_t handle; return cublasCreate(&handle); }
CUSPARSE|gpu programs|cuSPARSE|libcusparse-dev of the CUDA toolkit|-lcusparse|cpp|#include <cusparse.h>\nint main() { cusparseHandle_t handle; return cusparseCreate(&handle); }
CUSOLVER|gpu programs|cuSOLVER|libcusolver-dev of the CUDA toolkit|-lcusolver|cpp|#include <cusolverDn.h>\nint main() { cusolverDnHandle_t handle; return cusolverDnCreate(&handle); }
CUFFT|gpu programs|cuFFT|libcufft-dev of the CUDA toolkit|-lcufft|cpp|#include <cufft.h>\nint main() { cufftHandle plan; return cufftCreate(&plan); }
THRUST|gpu programs|Thrust|cuda-cccl of the CUDA toolkit||cpp|#include <thrust/version.h>\nint main() { return THRUST_VERSION == 0; }
OPENCL|gpu programs|OpenCL|ocl-icd-opencl-dev|-lOpenCL|cpp|#define CL_TARGET_OPENCL_VERSION 200\n#include <CL/cl.h>\nint main() { return clGetPlatformIDs(0, 0, 0); }
CURAND|gpu programs|cuRAND|libcurand-dev of the CUDA toolkit|-lcurand|cpp|#include <curand.h>\nint main() { curandGenerator_t generator; return curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT); }
NPP|gpu programs|NPP|libnpp-dev of the CUDA toolkit|-lnppif -lnppc|cpp|#include <nppi_filtering_functions.h>\nvoid *volatile function = (void *)nppiFilterBoxBorder_8u_C1R_Ctx;\nint main() { return function == 0; }
NCCL|gpu|NCCL, beside MPI in the programs for several processes|libnccl-dev of NVIDIA's repository|-lnccl|cpp|#include <nccl.h>\nint main() { ncclUniqueId id; return ncclGetUniqueId(&id); }
BOOST_CONTEXT|cpu|fast switches between threads that meet at a barrier (Boost.Context)|libboost-context-dev|-lboost_context|c++|#include <boost/context/detail/fcontext.hpp>\nint main() { return !boost::context::detail::make_fcontext(0, 0, 0); }
CUBLAS|cpu programs|cuBLAS (by OpenBLAS)|libopenblas-dev|-lopenblas|c|#include <cblas.h>\nint main(void) { return cblas_sasum(0, 0, 1) != 0; }
CUSPARSE|cpu programs|cuSPARSE (loops of its own)|gcc||c|int main(void) { return 0; }
CUSOLVER|cpu programs|cuSOLVER (by OpenBLAS)|libopenblas-dev|-lopenblas|c|int dgesvd_(void), ssyevd_(void);\nint main(void) { return (dgesvd_ != 0) + (ssyevd_ != 0); }
CUFFT|cpu programs|cuFFT (by FFTW)|libfftw3-dev|-lfftw3f -lfftw3|c|#include <fftw3.h>\nint main(void) { fftwf_cleanup(); fftw_cleanup(); return 0; }
THRUST|cpu programs|Thrust (on the CPU)|libthrust-dev||c++|#include <thrust/tuple.h>\nint main() { return thrust::get<0>(thrust::make_tuple(0)); }
OPENCL|cpu programs|OpenCL|ocl-icd-opencl-dev|-lOpenCL|c|#define CL_TARGET_OPENCL_VERSION 200\n#include <CL/cl.h>\nint main(void) { return clGetPlatformIDs(0, 0, 0); }
CURAND|cpu programs|cuRAND (part of the back end)|gcc||c|int main(void) { return 0; }
END
}

: "${CC:=cc}" "${CXX:=g++}" "${HOSTCC:=cc}" "${NVCC:=}"

how() { # package: prints how to install it; names with blanks are not packages of the distribution
    case $1 in *' '*) echo "install $1" ;; *) scripts/setup.sh --how "$1" ;; esac
}

there() { # command with arguments, its purpose, package: fails when the command is missing
    command -v "${1%% *}" >/dev/null || { echo "no $2: $1: $(how "$3")" >&2; exit 1; }
}

# The flags that mpicc adds to those of the C compiler, in the forms that nvcc accepts too. `mpicc -show` prints its command with
# Open MPI and with MPICH.
mpi_flags() { # compile or link
    command=$(${MPICC:-mpicc} -show 2>/dev/null) || return 0
    flags= raw=
    for word in $command; do
        case $1,$word in
        compile,-I* | compile,-D* | link,-L* | link,-l*) flags="$flags $word" ;;
        link,-Wl,-rpath,*) flags="$flags -Xlinker -rpath -Xlinker ${word#-Wl,-rpath,}" ;;
        link,-Wl,-rpath) raw=1 ;;
        link,-Wl,*) [ -z "$raw" ] || flags="$flags -Xlinker -rpath -Xlinker ${word#-Wl,}"; raw= ;;
        esac
    done
    echo "$flags"
}

probe() { # used by, language, link flags, source
    dir=$(mktemp -d)
    # The CPU back end has headers that Thrust includes (cuda/std), so Thrust is tested together with them.
    case $1 in 'cpu programs') include=-Icpu/include ;; *) include= ;; esac
    shift
    case $2 in mpicc) include="$include $(mpi_flags compile)" link_flags=$(mpi_flags link) ;; *) link_flags=$2 ;; esac
    case $1 in c++) compiler=$CXX ;; cpp) compiler=$NVCC ;; *) compiler=$CC ;; esac
    printf '%b\n' "$3" >"$dir/probe.$1"
    # Unquoted, because both may contain several words
    if [ -n "$compiler" ] && $compiler $include "$dir/probe.$1" $link_flags -o "$dir/a.out" >/dev/null 2>&1; then found=1; else found=0; fi
    rm -r "$dir"
}

wanted() { # used by, back end
    case $1 in common | programs | "$2" | "$2 programs") return 0 ;; *) return 1 ;; esac
}

asked() { eval "printf %s \"\${HAVE_$1-}\""; }

cached() { # name, file: whether an earlier run found it with these compilers
    [ -f "$2" ] && [ "$(sed -n 1p "$2")" = "# $CC, $CXX" ] && grep -q "^HAVE_$1 ?= 1\$" "$2"
}

write() { # back end, file
    echo "# $CC, $CXX"
    flags= libs= has= off=
    while IFS='|' read -r name who what package link language source; do
        wanted "$who" "$1" || continue
        if [ -n "$(asked "$name")" ]; then
            found=$(asked "$name")
        elif cached "$name" "$2"; then
            found=1
        else
            probe "$who" "$language" "$link" "$source"
        fi
        echo "HAVE_$name ?= $found"
        if [ "$link" = mpicc ]; then
            echo "MPI_FLAGS := $(mpi_flags compile)"
            link=$(mpi_flags link)
        fi
        echo "${name}_LIBS := $link"
        case $who in *programs) ;; *) flags="$flags \$(if \$(filter 1,\$(HAVE_$name)),-DHAVE_$name)" ;; esac
        lower=$(echo "$name" | tr A-Z a-z)
        if [ "$found" = 1 ]; then
            has="$has $lower"
        elif [ "$(asked "$name")" = 0 ]; then
            off="$off$lower: switched off by HAVE_$name=0
"
        else
            off="$off$lower, $what: $(how "$package")
"
        fi
        # The unit test of the stand-in for a library has the library's name.
        case $found,$who in
        1,'cpu programs') echo "LIBS_tests/cpu/$lower := \$(${name}_LIBS)" ;;
        *,'cpu programs') echo "MISSING_TESTS += tests/cpu/$lower" ;;
        esac
        case $who in *programs) ;; *) libs="$libs \$(if \$(filter 1,\$(HAVE_$name)),$link)" ;; esac
    done
    echo "HAVE_FLAGS :=$flags"
    echo "HAVE_LIBS :=$libs"
    scripts/programs.sh --needs | while IFS=: read -r program needs; do
        own= lacks=
        for need in $(echo "$needs" | tr , ' '); do
            case " $has " in
            *" $need "*) own="$own \$($(echo "$need" | tr a-z A-Z)_LIBS)" ;;
            *)
                echo "SKIPPED += $program # needs $need"
                why=$(printf %s "$off" | grep "^$need[:,]" || echo "$need, which no library of this back end provides")
                lacks="$lacks${lacks:+; }$why"
                ;;
            esac
        done
        [ -z "$lacks" ] || echo "LACKS_$program := $lacks"
        case ,$needs, in *,mpi,*) echo "MPI_PROGRAMS += $program" ;; esac
        echo "LIBS_$program :=$own"
    done
}

case ${1-} in
probe)
    there "$CXX" 'C++ compiler' g++
    there "$CC" 'C compiler' gcc
    [ "$2" = gpu ] || there "$HOSTCC" 'C compiler for this machine (HOSTCC)' gcc
    mkdir -p "${3%/*}"
    # Another make may run at the same time, so the file is written under a name of its own and renamed.
    new=$3.$$
    table | write "$2" "$3" >"$new"
    if cmp -s "$new" "$3"; then rm "$new"; else mv "$new" "$3"; fi
    ;;
report)
    table | while IFS='|' read -r name who what package rest; do
        wanted "$who" "$2" || continue
        if [ "$(asked "$name")" = 0 ]; then
            echo "off: $what: switched off by HAVE_$name=0"
        elif ! grep -q "^HAVE_$name ?= 1\$" "$3"; then
            echo "off: $what: $(how "$package")"
        fi
    done
    config=$3
    shift 3
    for goal in "${@:-all}"; do
        case $goal in
        */*) ;;
        *) sed -n 's/^SKIPPED += \(.*\) # /off: \1: /p' "$config" && break ;;
        esac
    done
    ;;
doctor)
    table | while IFS='|' read -r name who what package link language source; do
        probe "$who" "$language" "$link" "$source"
        if [ "$found" = 1 ]; then echo "found    $what"; else echo "missing  $what: $(how "$package")"; fi
    done
    ;;
*)
    sed -n 's/^# \{0,1\}//; 3,10p' "$0" >&2
    exit 64
    ;;
esac
