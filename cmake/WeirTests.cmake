# weir_test(NAME SOURCES ... [LINK targets...] [LABEL unit|golden|fuzz|interop|bench|slow] [TIMEOUT seconds]
#           [NO_SANITIZERS] [NO_TSAN] [SANITIZED])
#   A GoogleTest program; each TEST in it is a CTest test. Unit tests are compiled and run once, in the preset asan; `make test-all`
#   runs them optimised and under ThreadSanitizer, too. NO_TSAN for what has one thread only (it saves time, nothing else).
#   NO_SANITIZERS: it cannot run under them (its label becomes unit-optimised), so the preset release has it.
#   SANITIZED: an interop test whose both ends are Weir's own code; the sanitizers take it, too (its label becomes
#   interop-sanitized).
#   Built by the targets unit_tests (all but NO_SANITIZERS) and threaded_tests (those that TSan is for).
#
# weir_fuzz_target(NAME SOURCES ... [LINK targets...])
#   A libFuzzer target (the sources define LLVMFuzzerTestOneInput). With WEIR_FUZZ=ON it is a fuzzer, else a CTest
#   test, label fuzz, that replays tests/fuzz/corpus/NAME/.
include(GoogleTest)
find_package(GTest REQUIRED)
# Once for every folder: each call starts the interpreter a few times.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(WEIR_RUN_IF_CHANGED ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/run-if-changed.py)

# The preset release is what users get, and the tests that run other programs on it: its unit tests are built when asked for.
option(WEIR_UNIT_TESTS_IN_ALL "build the unit tests with everything else, not only by the target unit_tests" ON)

add_custom_target(unit_tests)
add_custom_target(threaded_tests)
add_custom_target(fuzz_targets)

# To compile the tests takes longer than to run them, so they are optimised less than what they test (GCC
# saves nearly nothing more without any).
if(NOT WEIR_FUZZ)
  set(WEIR_TEST_OPTIMISATION $<$<CONFIG:RelWithDebInfo>:-O$<IF:$<CXX_COMPILER_ID:Clang>,0,1>> ${WEIR_BEFORE_THE_C_LIBRARY})
endif()

# GoogleTest's headers are half of what a small test takes to compile, and Asio's most of the rest: compiled once for all
# tests, and once more for those that link Asio.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cpp CONTENT "")
function(weir_test_headers name link)
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cpp)
  target_link_libraries(${name} PRIVATE ${link} GTest::gmock weir_warnings)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIE ${WEIR_TEST_OPTIMISATION})  # as the programs that use it
  weir_precompile(${name} <gmock/gmock.h> <gtest/gtest.h> <array> <cstdint> <string> <string_view> <vector> ${ARGN})
endfunction()
weir_test_headers(weir_test_headers "")
weir_test_headers(weir_asio_test_headers weir_asio <asio/awaitable.hpp> <asio/co_spawn.hpp> <asio/io_context.hpp>
  <asio/ip/tcp.hpp> <asio/posix/stream_descriptor.hpp> <asio/steady_timer.hpp> <asio/use_awaitable.hpp>)

# Whether what is linked brings Asio's definitions along. Each library is looked at once: many paths lead to the lower
# ones, and following each of them took a minute of the configuration.
function(weir_links_asio result)
  set(${result} FALSE PARENT_SCOPE)
  set(seen "")
  set(ahead ${ARGN})
  while(ahead)
    list(POP_FRONT ahead library)
    if(library STREQUAL weir_asio)
      set(${result} TRUE PARENT_SCOPE)
      return()
    endif()
    if(library IN_LIST seen OR NOT TARGET ${library})
      continue()
    endif()
    list(APPEND seen ${library})
    get_target_property(further ${library} INTERFACE_LINK_LIBRARIES)
    if(further)
      list(APPEND ahead ${further})
    endif()
  endwhile()
endfunction()

# Tells CTest the tests of a GoogleTest program: each alone, in a process of its own. Under a sanitizer, where a process takes
# longer to start than most tests to run, each suite. EXCEPT: a pattern of tests to leave out.
function(weir_discover_tests name)
  cmake_parse_arguments(ARG "" "PREFIX;EXCEPT;LABEL;TIMEOUT;ENVIRONMENT" "" ${ARGN})
  if(NOT WEIR_SANITIZE)
    set(environment "")
    if(ARG_ENVIRONMENT)
      set(environment ENVIRONMENT "${ARG_ENVIRONMENT}")
    endif()
    gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" TEST_FILTER "-${ARG_EXCEPT}" NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} ${environment})
    return()
  endif()
  math(EXPR timeout "5 * ${ARG_TIMEOUT}")
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${ARG_PREFIX}${name}_suites)
  add_custom_command(TARGET ${name} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${name}> -D PREFIX=${ARG_PREFIX} -D EXCEPT=${ARG_EXCEPT} -D LABELS=${ARG_LABEL} -D TIMEOUT=${timeout}
            -D ENVIRONMENT=${ARG_ENVIRONMENT} -D REPORTS=${CMAKE_BINARY_DIR}/suites -D OUT=${list}_built.cmake
            -P ${PROJECT_SOURCE_DIR}/cmake/TestsBySuite.cmake)
  file(WRITE ${list}.cmake "include(${list}_built.cmake OPTIONAL RESULT_VARIABLE built)\n"
    "if(NOT built)\n  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${list}.cmake)
endfunction()

function(weir_unit_test_program name label)
  add_dependencies(unit_tests ${name})
  if(NOT WEIR_UNIT_TESTS_IN_ALL AND NOT label MATCHES "interop|optimised")
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

function(weir_test name)
  cmake_parse_arguments(ARG "NO_SANITIZERS;NO_TSAN;SANITIZED" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(ARG_SANITIZED)
    set(ARG_LABEL ${ARG_LABEL}-sanitized)
  endif()
  if(ARG_NO_SANITIZERS AND ARG_LABEL STREQUAL "unit")
    set(ARG_LABEL unit-optimised)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main weir_warnings)
  weir_links_asio(asio ${ARG_LINK})
  if(asio)
    target_precompile_headers(${name} REUSE_FROM weir_asio_test_headers)
  else()
    target_precompile_headers(${name} REUSE_FROM weir_test_headers)
  endif()
  weir_let_ccache_see_precompiled(${name})
  weir_discover_tests(${name} LABEL ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(NOT ARG_NO_SANITIZERS AND ARG_LABEL MATCHES "unit|golden|fuzz|sanitized")
    weir_unit_test_program(${name} ${ARG_LABEL})
    if(NOT ARG_NO_TSAN AND (NOT WEIR_TESTS_NO_TSAN OR ARG_SANITIZED))
      add_dependencies(threaded_tests ${name})
    endif()
  endif()
endfunction()

function(weir_fuzz_target name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(WEIR_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    add_dependencies(fuzz_targets ${name})
  else()
    if(NOT TARGET weir_fuzz_replay)
      add_library(weir_fuzz_replay OBJECT ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
      target_link_libraries(weir_fuzz_replay PRIVATE weir_warnings)
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE weir_fuzz_replay)
    add_test(NAME fuzz.${name} COMMAND ${name} ${corpus})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
    weir_unit_test_program(${name} fuzz)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK} weir_warnings)
endfunction()
