# The CUDA part, off by default: nothing else needs a CUDA toolkit. A GPU is not needed to build it.
option(GAINLENS_CUDA "Build the fused CUDA kernel (needs nvcc)" OFF)
find_program(GAINLENS_NVCC nvcc PATHS /usr/local/cuda/bin)

if(GAINLENS_CUDA)
  if(NOT GAINLENS_NVCC)
    message(FATAL_ERROR "GAINLENS_CUDA is ON and nvcc was not found; "
                        "install the CUDA toolkit or give -DGAINLENS_NVCC=/path/to/nvcc")
  endif()
  set(CMAKE_CUDA_COMPILER ${GAINLENS_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES OFF)       # src/kernels/CMakeLists.txt sets them: this CMake does not know 90a
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # the one that libtorch uses
  if(GAINLENS_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${GAINLENS_CCACHE})
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)

  if(NOT GAINLENS_C10_CUDA_LIBRARY)
    message(FATAL_ERROR "GAINLENS_CUDA is ON and libtorch under '${GAINLENS_TORCH_ROOT}' has no lib/libc10_cuda.so; "
                        "it needs a CUDA build of libtorch")
  endif()
  add_library(gainlens_torch_cuda INTERFACE)
  target_link_libraries(gainlens_torch_cuda INTERFACE
    gainlens_torch $<BUILD_INTERFACE:${GAINLENS_C10_CUDA_LIBRARY}> CUDA::cudart)
endif()
