# The functions that make the targets of the project: gainlens_library and gainlens_test.

find_program(GAINLENS_CCACHE ccache)
if(GAINLENS_CCACHE)
  # The sloppiness lets ccache work together with a precompiled header (with -fpch-preprocess below). With its folder
  # as the base, a second clone of the project finds what the first one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${GAINLENS_CCACHE})
endif()

# Sources of a library are compiled eight at a time, which takes a third of the time of one at a time. Tools that want a
# compile command for each source (clang-tidy, clangd) need a build without this, such as the presets dev and tidy.
option(GAINLENS_UNITY "Compile the sources of a library eight at a time" OFF)

add_library(gainlens_options INTERFACE)
target_include_directories(gainlens_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_compile_options(gainlens_options INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers -Werror
  -ffp-contract=off)  # the same arithmetic on every machine: no fused multiply-add unless a kernel asks for it
if(NOT GAINLENS_UNITY)  # there, a local name may be that of another source
  target_compile_options(gainlens_options INTERFACE -Wshadow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(gainlens_options INTERFACE -fpch-preprocess
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)  # messages of our own mistakes name src/..., on every machine
endif()
if(GAINLENS_SANITIZE)
  target_compile_options(gainlens_options INTERFACE
    -fsanitize=${GAINLENS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(gainlens_options INTERFACE -fsanitize=${GAINLENS_SANITIZE})
endif()

# GCC 12 sees overlaps and overflows in copies of std::string that cannot happen (fixed in GCC 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(GAINLENS_NO_FALSE_OVERLAPS -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
      -Wno-stringop-overread)
endif()

# Tests call compiled libraries and are themselves short. Half of the time to build everything is theirs, and a quarter
# of that is optimisation that no test needs.
set(GAINLENS_TEST_OPTIMISATION $<$<CONFIG:Release>:-O1>)

# Of command lines, pages, terminal texts, configurations and files of results, which compute next to nothing: eight
# sources of the command line take 25 s of a processor to compile with it, and 46 s with -O3.
set(GAINLENS_WORDS_OPTIMISATION $<$<CONFIG:Release>:-O1>)

# Of folders whose time is spent in the libraries that they call (kernels, libtorch): eight sources of src/models take
# 14 s of a processor to compile with it, and 25 s with -O3.
set(GAINLENS_CALLS_OPTIMISATION $<$<CONFIG:Release>:-O1>)

# gainlens_library(NAME [TORCH] SOURCES file... [ALONE regex] [DEPENDS target...] [PRIVATE_DEPENDS target...])
# makes gainlens_NAME with the alias gainlens::NAME; TORCH targets share one precompiled header. Sources that match
# ALONE are compiled one at a time: several of them have local functions of the same names, or compile themselves once
# for each instruction set.
function(gainlens_library name)
  cmake_parse_arguments(arg "TORCH" "ALONE" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  if(arg_SOURCES)
    add_library(gainlens_${name} STATIC ${arg_SOURCES})
    file(RELATIVE_PATH place ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    if(NOT place MATCHES "^(bench|tests)")  # small, and their local names clash
      set_target_properties(gainlens_${name} PROPERTIES UNITY_BUILD ${GAINLENS_UNITY} UNITY_BUILD_BATCH_SIZE 8)
    endif()
    if(arg_ALONE)
      list(FILTER arg_SOURCES INCLUDE REGEX ${arg_ALONE})
      set_source_files_properties(${arg_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    target_link_libraries(gainlens_${name}
      PUBLIC $<BUILD_INTERFACE:gainlens_options> ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
    if(arg_TORCH)
      target_link_libraries(gainlens_${name} PUBLIC gainlens_torch)
      target_precompile_headers(gainlens_${name} REUSE_FROM gainlens_pch_torch)
    else()
      target_precompile_headers(gainlens_${name} REUSE_FROM gainlens_pch)
    endif()
  else()
    add_library(gainlens_${name} INTERFACE)
    target_link_libraries(gainlens_${name} INTERFACE $<BUILD_INTERFACE:gainlens_options> ${arg_DEPENDS})
  endif()
  add_library(gainlens::${name} ALIAS gainlens_${name})
endfunction()

# Tests have two tiers. `scripts/test` builds and runs those by which a user trusts a build: the numbers, and the
# commands on every golden. `scripts/test --all` adds those with the label "thorough", whose programs are not part of
# the target "all" but of "thorough_tests": what the program says, pages, faults, options, every dtype.
add_custom_target(thorough_tests)
function(gainlens_thorough target)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(thorough_tests ${target})
endfunction()

# gainlens_test(NAME [TORCH] [THOROUGH] SOURCES file... [COST seconds] [THOROUGH_SUITES suite...] [DEPENDS target...])
# makes gainlens_test_NAME and registers each of its suites (GainlensSuites.cmake). Sources X_test.cpp are compiled
# eight at a time: what is local to one of them stands in a namespace X_test. COST: what its longest suites take,
# roughly. CTest starts with the longest ones, so that none runs alone at the end. THOROUGH: the program is of the
# second tier; THOROUGH_SUITES: these suites of a program of the first tier are.
function(gainlens_test name)
  cmake_parse_arguments(arg "TORCH;THOROUGH" "COST" "SOURCES;THOROUGH_SUITES;DEPENDS" ${ARGN})
  if(NOT arg_COST)
    set(arg_COST 1)
  endif()
  add_executable(gainlens_test_${name} ${arg_SOURCES})
  if(arg_THOROUGH)
    gainlens_thorough(gainlens_test_${name})
    set(arg_THOROUGH_SUITES .)  # a regular expression that all names match
  endif()
  set_target_properties(gainlens_test_${name} PROPERTIES UNITY_BUILD ${GAINLENS_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  list(FILTER arg_SOURCES EXCLUDE REGEX _test[.]cpp$)
  set_source_files_properties(${arg_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_compile_options(gainlens_test_${name} PRIVATE ${GAINLENS_NO_FALSE_OVERLAPS} ${GAINLENS_TEST_OPTIMISATION})
  target_link_libraries(gainlens_test_${name} PRIVATE
    gainlens_options ${arg_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_include_directories(gainlens_test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # The folder of shared test data lies beside the project; GAINLENS_SHARED_DATA in the environment names another.
  target_compile_definitions(gainlens_test_${name} PRIVATE GAINLENS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(arg_TORCH)
    target_link_libraries(gainlens_test_${name} PRIVATE gainlens_torch)
    target_precompile_headers(gainlens_test_${name} REUSE_FROM gainlens_pch_test_torch)
  else()
    target_precompile_headers(gainlens_test_${name} REUSE_FROM gainlens_pch_test)
  endif()
  # The shared header was compiled with -fPIC. An executable is compiled with -fPIE by default and could not use it.
  set_target_properties(gainlens_test_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(gainlens_test_${name} PRIVATE -fPIC)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/gainlens_test_${name}_suites.cmake)
  file(GENERATE OUTPUT ${file} CONTENT "set(program \"$<TARGET_FILE:gainlens_test_${name}>\")
set(prefix ${name})
set(thorough \"${arg_THOROUGH_SUITES}\")
set(properties COST ${arg_COST} TIMEOUT 600 ENVIRONMENT OMP_NUM_THREADS=1)  # tests run in parallel, one core each
include(${PROJECT_SOURCE_DIR}/cmake/GainlensSuites.cmake)
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()
