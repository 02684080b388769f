# Every library that the project needs. The comments name the Debian packages; scripts/build installs them.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)              # libfmt-dev
find_package(nlohmann_json REQUIRED)    # nlohmann-json3-dev
find_package(OpenSSL REQUIRED)          # libssl-dev: sha256
find_package(ZLIB REQUIRED)             # zlib1g-dev
find_package(CLI11 REQUIRED)            # libcli11-dev
find_package(Boost REQUIRED)            # libboost-dev: Boost.Math and Boost.Random, headers only
find_package(HDF5 REQUIRED COMPONENTS C HL)  # libhdf5-dev
find_package(ICU REQUIRED COMPONENTS uc)     # libicu-dev: Unicode normalisation
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)          # libpcre2-dev
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)  # libsentencepiece-dev
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)                # libhwy-dev
if(GAINLENS_TESTS)
  find_package(GTest REQUIRED)          # libgtest-dev libgmock-dev
endif()

add_library(gainlens_hdf5 INTERFACE)
target_include_directories(gainlens_hdf5 SYSTEM INTERFACE "$<BUILD_INTERFACE:${HDF5_INCLUDE_DIRS}>")
target_link_libraries(gainlens_hdf5 INTERFACE "$<BUILD_INTERFACE:${HDF5_LIBRARIES};${HDF5_HL_LIBRARIES}>")

# A target for libtorch.
if(NOT GAINLENS_TORCH_ROOT)
  file(GLOB _torch_in_venv ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(_torch_in_venv)
    list(GET _torch_in_venv 0 _torch_root)
    set(GAINLENS_TORCH_ROOT ${_torch_root} CACHE PATH "" FORCE)
  endif()
endif()
include(GainlensFindTorch)
gainlens_find_torch("${GAINLENS_TORCH_ROOT}")
if(NOT GAINLENS_TORCH_LIBRARIES)
  message(FATAL_ERROR "libtorch not found under GAINLENS_TORCH_ROOT='${GAINLENS_TORCH_ROOT}' "
                      "(no lib/libtorch_cpu.so, lib/libc10.so); run scripts/build, which fetches it into .venv, "
                      "or give -DGAINLENS_TORCH_ROOT=/path/to/torch")
endif()
add_library(gainlens_torch INTERFACE)
target_include_directories(gainlens_torch SYSTEM INTERFACE "$<BUILD_INTERFACE:${GAINLENS_TORCH_INCLUDE_DIRS}>")
target_link_libraries(gainlens_torch INTERFACE
  "$<BUILD_INTERFACE:${GAINLENS_TORCH_LIBRARIES}>" OpenMP::OpenMP_CXX Threads::Threads)
# libtorch's include folder has its own fmt, newer than the system's library. Its compiled part is compiled once, where
# that can be done; used header-only it would be compiled with every source.
try_compile(GAINLENS_TORCH_FMT ${PROJECT_BINARY_DIR}/torch_fmt
  SOURCES ${PROJECT_SOURCE_DIR}/cmake/uses_torch_fmt.cpp ${PROJECT_SOURCE_DIR}/cmake/torch_fmt.cpp
  CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${GAINLENS_TORCH_INCLUDE_DIRS}"
  CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
if(GAINLENS_TORCH_FMT)
  add_library(gainlens_torch_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/torch_fmt.cpp)
  target_include_directories(gainlens_torch_fmt SYSTEM PRIVATE ${GAINLENS_TORCH_INCLUDE_DIRS})
  set_target_properties(gainlens_torch_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(gainlens_torch INTERFACE gainlens_torch_fmt)
else()
  target_compile_definitions(gainlens_torch INTERFACE FMT_HEADER_ONLY)
endif()
target_compile_options(gainlens_torch INTERFACE -fopenmp)  # without it at::parallel_for silently runs serially

# Precompiled headers: parsing libtorch, GoogleTest and JSON is most of a compilation. Each is shared by all targets of
# its kind (gainlens_library and gainlens_test choose).
set(_plain_headers
  <algorithm> <array> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory> <optional> <span> <string>
  <string_view> <utility> <vector> <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
set(_torch_headers <ATen/ATen.h> <ATen/Parallel.h> <c10/core/InferenceMode.h> <c10/util/Logging.h>)
set(_test_headers <gmock/gmock.h> <gtest/gtest.h>)
function(_gainlens_precompiled name)
  cmake_parse_arguments(arg "" "" "HEADERS;DEPENDS" ${ARGN})
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.cpp "// host of a shared precompiled header\n")
  add_library(${name} STATIC ${PROJECT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PUBLIC gainlens_options fmt::fmt nlohmann_json::nlohmann_json ${arg_DEPENDS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()
_gainlens_precompiled(gainlens_pch HEADERS ${_plain_headers})
_gainlens_precompiled(gainlens_pch_torch HEADERS ${_torch_headers} ${_plain_headers} DEPENDS gainlens_torch)
if(GAINLENS_TESTS)
  _gainlens_precompiled(gainlens_pch_test HEADERS ${_plain_headers} ${_test_headers} DEPENDS GTest::gmock)
  _gainlens_precompiled(gainlens_pch_test_torch HEADERS ${_torch_headers} ${_plain_headers} ${_test_headers}
                        DEPENDS gainlens_torch GTest::gmock)
  # Of a precompiled header and of what is compiled with it.
  target_compile_options(gainlens_pch_test PRIVATE ${GAINLENS_TEST_OPTIMISATION})
  target_compile_options(gainlens_pch_test_torch PRIVATE ${GAINLENS_TEST_OPTIMISATION})
endif()

# Training in several processes. libtorch contains gloo, but not its headers. No type of gloo is part of the layout of
# libtorch's classes, so headers of another version do, as long as they compile with those of libtorch.
find_path(GAINLENS_GLOO_INCLUDE_DIR gloo/rendezvous/store.h)  # libgloo-dev
set(GAINLENS_HAS_GLOO OFF)
if(GAINLENS_GLOO_INCLUDE_DIR)
  if(NOT "${GAINLENS_GLOO_INCLUDE_DIR};${GAINLENS_TORCH_ROOT}" STREQUAL "${GAINLENS_GLOO_CHECKED}")
    try_compile(_gloo_compiles ${PROJECT_BINARY_DIR}/gloo-check ${PROJECT_SOURCE_DIR}/cmake/gloo_check.cpp
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${GAINLENS_TORCH_INCLUDE_DIRS};${GAINLENS_GLOO_INCLUDE_DIR}"
      LINK_LIBRARIES ${GAINLENS_TORCH_LIBRARIES}
      CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
    set(GAINLENS_GLOO_CHECKED "${GAINLENS_GLOO_INCLUDE_DIR};${GAINLENS_TORCH_ROOT}" CACHE INTERNAL "")
    set(GAINLENS_GLOO_COMPILES ${_gloo_compiles} CACHE INTERNAL "")
  endif()
  set(GAINLENS_HAS_GLOO ${GAINLENS_GLOO_COMPILES})
endif()
if(NOT GAINLENS_HAS_GLOO)
  message(STATUS "gloo: no headers that fit libtorch (libgloo-dev); train recommend works in one process only")
endif()

# Parquet. Like libtorch, Arrow is taken from a Python wheel, which has its headers too: pyarrow. Its libraries have a
# version behind .so, so find_library() does not find them.
if(NOT GAINLENS_ARROW_ROOT)
  file(GLOB _arrow_in_venv ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/pyarrow)
  if(_arrow_in_venv)
    list(GET _arrow_in_venv 0 _arrow_root)
    set(GAINLENS_ARROW_ROOT ${_arrow_root} CACHE PATH "" FORCE)
  endif()
endif()
set(GAINLENS_HAS_ARROW OFF)
file(GLOB _arrow ${GAINLENS_ARROW_ROOT}/libarrow.so* ${GAINLENS_ARROW_ROOT}/lib/libarrow.so*)
file(GLOB _parquet ${GAINLENS_ARROW_ROOT}/libparquet.so* ${GAINLENS_ARROW_ROOT}/lib/libparquet.so*)
if(GAINLENS_ARROW_ROOT AND _arrow AND _parquet AND EXISTS ${GAINLENS_ARROW_ROOT}/include/parquet/file_reader.h)
  set(GAINLENS_HAS_ARROW ON)
  list(GET _arrow 0 _arrow)
  list(GET _parquet 0 _parquet)
  get_filename_component(GAINLENS_ARROW_LIBRARY_DIR ${_parquet} DIRECTORY)
  add_library(gainlens_arrow INTERFACE)
  target_include_directories(gainlens_arrow SYSTEM INTERFACE ${GAINLENS_ARROW_ROOT}/include)
  target_link_libraries(gainlens_arrow INTERFACE ${_parquet} ${_arrow})
else()
  message(STATUS "Arrow: not found under GAINLENS_ARROW_ROOT='${GAINLENS_ARROW_ROOT}'; Parquet files will not be read")
endif()
