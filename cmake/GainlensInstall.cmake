# What `cmake --install` puts below its prefix, besides the program: the libraries, their headers, and the package that
# find_package(gainlens) reads. examples/ shows how it is used, tests/install checks it. The internal targets are not
# installed: a user of the libraries gets none of our warnings, no -ffp-contract=off and no precompiled header.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_headers ${CMAKE_INSTALL_INCLUDEDIR}/gainlens)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/gainlens)

foreach(_name core formats runfile tokenizers kernels data hooks bft models generation sweep training experiment
        language recommend analyses reports)
  set_target_properties(gainlens_${_name} PROPERTIES EXPORT_NAME ${_name})
  target_compile_features(gainlens_${_name} INTERFACE cxx_std_20)
  install(TARGETS gainlens_${_name} EXPORT gainlens ARCHIVE INCLUDES DESTINATION ${_headers})
  get_target_property(_folder gainlens_${_name} SOURCE_DIR)
  install(DIRECTORY ${_folder}/ DESTINATION ${_headers}/${_name} FILES_MATCHING PATTERN "*.h"
          PATTERN check.h EXCLUDE)
endforeach()

# Second libraries of src/bft, src/models and src/recommend, whose headers are installed above: their parts without
# libtorch.
foreach(_name estimators experiment_results model_description recommender_description)
  set_target_properties(gainlens_${_name} PROPERTIES EXPORT_NAME ${_name})
  target_compile_features(gainlens_${_name} INTERFACE cxx_std_20)
  install(TARGETS gainlens_${_name} EXPORT gainlens ARCHIVE INCLUDES DESTINATION ${_headers})
endforeach()

if(TARGET gainlens_torch_fmt)
  set_target_properties(gainlens_torch_fmt PROPERTIES EXPORT_NAME torch_fmt)
  install(TARGETS gainlens_torch_fmt EXPORT gainlens ARCHIVE)
endif()

# Installed without paths. gainlensConfig.cmake.in gives them the paths of the user's machine.
set(_external torch hdf5)
if(GAINLENS_CUDA)
  list(APPEND _external torch_cuda)
endif()
foreach(_name ${_external})
  set_target_properties(gainlens_${_name} PROPERTIES EXPORT_NAME ${_name})
  install(TARGETS gainlens_${_name} EXPORT gainlens)
endforeach()
target_link_libraries(gainlens_runfile INTERFACE $<INSTALL_INTERFACE:gainlens_hdf5>)  # its headers include hdf5.h
if(GAINLENS_SANITIZE)  # such a library needs the runtime of the sanitizer
  target_link_options(gainlens_core INTERFACE $<INSTALL_INTERFACE:-fsanitize=${GAINLENS_SANITIZE}>)
endif()

configure_file(${PROJECT_SOURCE_DIR}/cmake/gainlensConfig.cmake.in ${PROJECT_BINARY_DIR}/gainlensConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gainlensConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT gainlens FILE gainlensTargets.cmake NAMESPACE gainlens:: DESTINATION ${_package})
install(FILES ${PROJECT_BINARY_DIR}/gainlensConfig.cmake ${PROJECT_BINARY_DIR}/gainlensConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/GainlensFindTorch.cmake DESTINATION ${_package})
