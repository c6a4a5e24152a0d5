# Writes CTest's list of the suites of one GoogleTest program, after that program was built:
#   cmake -D PROGRAM=... -D PREFIX=... -D EXCEPT=... -D LABELS=... -D TIMEOUT=... -D ENVIRONMENT=... -D REPORTS=... -D OUT=... -P TestsBySuite.cmake
# Each suite writes what became of its tests to a file in REPORTS, which tools/run-tests.py reads.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE list COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\." suites "\n${list}")  # a test's line begins with a space
set(script "")
get_filename_component(program ${PROGRAM} NAME)
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "\n|\\." "" suite "${suite}")
  set(name "${PREFIX}${program}.${suite}")
  string(REPLACE "/" "+" report "${name}")
  string(APPEND script "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*-${EXCEPT}]=])\n"
    "set_tests_properties([=[${name}]=] PROPERTIES LABELS [=[${LABELS}]=] TIMEOUT ${TIMEOUT}"
    " ENVIRONMENT [=[GTEST_OUTPUT=xml:${REPORTS}/${report}.xml;${ENVIRONMENT}]=])\n")
endforeach()
file(WRITE ${OUT} "${script}")
