# Every library the project stands on. A missing one is named with the Debian package that has it.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)              # libfmt-dev
find_package(nlohmann_json REQUIRED)    # nlohmann-json3-dev
find_package(OpenSSL REQUIRED)          # libssl-dev: sha256
find_package(ZLIB REQUIRED)             # zlib1g-dev
find_package(CLI11 REQUIRED)            # libcli11-dev
find_package(Boost REQUIRED)            # libboost-dev: Boost.Math, headers only
find_package(HDF5 REQUIRED COMPONENTS C HL)  # libhdf5-dev
find_package(ICU REQUIRED COMPONENTS uc)     # libicu-dev: Unicode normalisation
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)          # libpcre2-dev
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)  # libsentencepiece-dev
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)                # libhwy-dev
if(GAINLENS_TESTS)
  find_package(GTest REQUIRED)          # libgtest-dev libgmock-dev
  include(GoogleTest)
endif()

add_library(gainlens_hdf5 INTERFACE)
target_include_directories(gainlens_hdf5 SYSTEM INTERFACE ${HDF5_INCLUDE_DIRS})
target_link_libraries(gainlens_hdf5 INTERFACE ${HDF5_LIBRARIES} ${HDF5_HL_LIBRARIES})

# libtorch as targets of our own: the wheel's own package file demands a CUDA toolkit even for CPU use.
if(NOT GAINLENS_TORCH_ROOT)
  file(GLOB _torch_in_venv ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(_torch_in_venv)
    list(GET _torch_in_venv 0 _torch_root)
    set(GAINLENS_TORCH_ROOT ${_torch_root} CACHE PATH "" FORCE)
  endif()
endif()
find_library(GAINLENS_TORCH_CPU_LIBRARY torch_cpu PATHS ${GAINLENS_TORCH_ROOT}/lib NO_DEFAULT_PATH)
find_library(GAINLENS_C10_LIBRARY c10 PATHS ${GAINLENS_TORCH_ROOT}/lib NO_DEFAULT_PATH)
if(NOT GAINLENS_TORCH_CPU_LIBRARY OR NOT GAINLENS_C10_LIBRARY)
  message(FATAL_ERROR "libtorch not found under GAINLENS_TORCH_ROOT='${GAINLENS_TORCH_ROOT}' (no lib/libtorch_cpu.so, lib/libc10.so); "
                      "run scripts/build, which fetches it into .venv, or give -DGAINLENS_TORCH_ROOT=/path/to/torch")
endif()
add_library(gainlens_torch INTERFACE)
target_include_directories(gainlens_torch SYSTEM INTERFACE
  ${GAINLENS_TORCH_ROOT}/include ${GAINLENS_TORCH_ROOT}/include/torch/csrc/api/include)
target_link_libraries(gainlens_torch INTERFACE ${GAINLENS_TORCH_CPU_LIBRARY} ${GAINLENS_C10_LIBRARY} OpenMP::OpenMP_CXX Threads::Threads)
# libtorch's include folder holds an fmt of its own, newer than the system's library: header-only, it needs no library.
target_compile_definitions(gainlens_torch INTERFACE FMT_HEADER_ONLY)
target_compile_options(gainlens_torch INTERFACE -fopenmp)  # without it at::parallel_for runs serially without a word

# One precompiled header for every target that sees libtorch.
file(WRITE ${PROJECT_BINARY_DIR}/gainlens_pch.cpp "// host of the shared precompiled header\n")
add_library(gainlens_pch STATIC ${PROJECT_BINARY_DIR}/gainlens_pch.cpp)
target_link_libraries(gainlens_pch PUBLIC gainlens_options gainlens_torch)
target_precompile_headers(gainlens_pch PRIVATE
  <ATen/ATen.h> <ATen/Parallel.h> <c10/core/InferenceMode.h> <c10/util/Logging.h>
  <algorithm> <cmath> <filesystem> <functional> <map> <memory> <optional> <span> <string> <string_view> <vector>)
