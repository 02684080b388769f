# gainlens_find_torch(ROOT) looks for libtorch in a folder with include/ and lib/. It sets in the caller:
#   GAINLENS_TORCH_LIBRARIES     the libraries; NOTFOUND if one of them is missing
#   GAINLENS_TORCH_INCLUDE_DIRS
#   GAINLENS_TORCH_VERSION       for example 2.11.0
#   GAINLENS_C10_CUDA_LIBRARY    NOTFOUND in a libtorch without CUDA
# Used by the build and by the installed package. libtorch's own package file is not used: it needs a CUDA toolkit even
# for CPU use.
function(gainlens_find_torch root)
  foreach(name torch_cpu c10 c10_cuda)
    find_library(${name} ${name} PATHS ${root}/lib NO_DEFAULT_PATH NO_CACHE)
  endforeach()
  set(GAINLENS_TORCH_LIBRARIES ${torch_cpu} ${c10} PARENT_SCOPE)
  if(NOT torch_cpu OR NOT c10)
    set(GAINLENS_TORCH_LIBRARIES NOTFOUND PARENT_SCOPE)
  endif()
  set(GAINLENS_C10_CUDA_LIBRARY ${c10_cuda} PARENT_SCOPE)
  set(GAINLENS_TORCH_INCLUDE_DIRS ${root}/include ${root}/include/torch/csrc/api/include PARENT_SCOPE)
  set(version "")
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)  # newer and older libtorch
    if(NOT version AND EXISTS ${root}/include/${header})
      file(STRINGS ${root}/include/${header} numbers REGEX "TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]")
      string(REGEX MATCHALL "[0-9]+" numbers "${numbers}")
      string(JOIN . version ${numbers})
    endif()
  endforeach()
  set(GAINLENS_TORCH_VERSION ${version} PARENT_SCOPE)
endfunction()
