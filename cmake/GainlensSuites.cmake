# Read by CTest when it starts: adds one test for each suite of a GoogleTest program, named <prefix>.<suite>. A program
# that uses libtorch takes a third of a second to start, so one process for each test case would spend most of the time
# on that. The caller sets: program, prefix, properties (a list), and thorough (a list): regular expressions of the
# suites that have this label.
if(NOT EXISTS ${program})
  add_test(${prefix}_NOT_BUILT ${program})
  if(thorough STREQUAL ".")
    set_tests_properties(${prefix}_NOT_BUILT PROPERTIES LABELS thorough)
  endif()
  return()
endif()
set(list "${program}.suites")
if(NOT EXISTS ${list} OR ${program} IS_NEWER_THAN ${list})
  # Under another name until it is whole: one that was cut off would hide suites from then on.
  execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_FILE ${list}.new RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    file(REMOVE ${list}.new)
    message(FATAL_ERROR "${program} --gtest_list_tests failed (${status})")
  endif()
  file(RENAME ${list}.new ${list})
endif()
file(STRINGS ${list} suites REGEX "^[A-Za-z_][^ ]*\\.")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "\\..*" "" suite "${suite}")  # after the point of a typed suite stands its type
  add_test(${prefix}.${suite} ${program} --gtest_filter=${suite}.*)
  set_tests_properties(${prefix}.${suite} PROPERTIES ${properties})
  foreach(expression IN LISTS thorough)
    if(suite MATCHES ${expression})
      set_tests_properties(${prefix}.${suite} PROPERTIES LABELS thorough)
    endif()
  endforeach()
endforeach()
