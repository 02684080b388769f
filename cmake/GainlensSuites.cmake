# Read by CTest when it starts: adds one test for each suite of a GoogleTest program, named <prefix>.<suite>. A program
# that uses libtorch takes a third of a second to start, so one process for each test case would spend most of the time
# on that. The caller sets: program, prefix, properties (a list).
if(NOT EXISTS ${program})
  add_test(${prefix}_NOT_BUILT ${program})
  return()
endif()
set(list "${program}.suites")
if(NOT EXISTS ${list} OR ${program} IS_NEWER_THAN ${list})
  execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_FILE ${list} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    file(REMOVE ${list})
    message(FATAL_ERROR "${program} --gtest_list_tests failed (${status})")
  endif()
endif()
file(STRINGS ${list} suites REGEX "^[A-Za-z_][^ ]*\\.")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "\\..*" "" suite "${suite}")  # after the point of a typed suite stands its type
  add_test(${prefix}.${suite} ${program} --gtest_filter=${suite}.*)
  set_tests_properties(${prefix}.${suite} PROPERTIES ${properties})
endforeach()
