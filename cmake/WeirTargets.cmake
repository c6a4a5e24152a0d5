# weir_library(NAME SOURCES ... [LINK targets...] [PRIVATE_LINK targets...])
#   A static library of this folder's layer.
#
# weir_test(NAME SOURCES ... [LINK targets...] [LABEL unit|golden|fuzz|interop|bench|slow] [TIMEOUT seconds]
#           [NO_SANITIZERS] [NO_TSAN] [SANITIZED])
#   A GoogleTest program; each TEST in it is a CTest test. `make test` builds it again with AddressSanitizer and
#   ThreadSanitizer, unless told not to: NO_TSAN for what has one thread only (it saves time, nothing else).
#   SANITIZED: an interop test whose both ends are Weir's own code; the sanitizers take it, too (its label becomes
#   interop-sanitized).
#   Built by the targets unit_tests (all but NO_SANITIZERS) and threaded_tests (those that TSan is for).
#
# weir_fuzz_target(NAME SOURCES ... [LINK targets...])
#   A libFuzzer target (the sources define LLVMFuzzerTestOneInput). With WEIR_FUZZ=ON it is a fuzzer, else a CTest
#   test, label fuzz, that replays tests/fuzz/corpus/NAME/.
#
# weir_precompile(NAME headers...)
#   Headers that most files of a target include, compiled once. Most of the time to compile a file goes into them.
#
# weir_unity(NAME)
#   With WEIR_UNITY=ON the target's files are compiled in batches, so their anonymous namespaces share their names.
include(GoogleTest)
find_package(GTest REQUIRED)

add_library(weir_warnings INTERFACE)
target_compile_options(weir_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
# GCC 12's -Wrestrict sees overlaps where a short literal and a string are put together (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(weir_warnings INTERFACE -Wno-restrict)
endif()
if(WEIR_WERROR)
  target_compile_options(weir_warnings INTERFACE -Werror)
endif()

add_custom_target(unit_tests)
add_custom_target(threaded_tests)
add_custom_target(fuzz_targets)

function(weir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK} weir_warnings)
endfunction()

# Without these two ccache cannot tell what a precompiled header holds, and caches nothing that uses one.
function(weir_let_ccache_see_precompiled name)
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                                         "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# What nearly every file includes.
set(WEIR_STANDARD_HEADERS <algorithm> <array> <atomic> <cstdint> <cstring> <expected> <functional> <map> <memory> <mutex>
    <optional> <span> <string> <string_view> <vector>)

function(weir_precompile name)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  weir_let_ccache_see_precompiled(${name})
endfunction()

function(weir_unity name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${WEIR_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# To compile the tests takes longer than to run them, so they are optimised less than what they test (GCC
# saves nearly nothing more without any).
if(NOT WEIR_FUZZ)
  set(WEIR_TEST_OPTIMISATION $<$<CONFIG:RelWithDebInfo>:-O$<IF:$<CXX_COMPILER_ID:Clang>,0,1>>)
endif()

# GoogleTest's headers are half of what a small test takes to compile: compiled once for all of them.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cpp CONTENT "")
add_library(weir_test_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cpp)
target_link_libraries(weir_test_headers PRIVATE GTest::gmock weir_warnings)
set_target_properties(weir_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(weir_test_headers PRIVATE -fPIE ${WEIR_TEST_OPTIMISATION})  # as the programs that use it
weir_precompile(weir_test_headers <gmock/gmock.h> <gtest/gtest.h> <array> <cstdint> <string> <string_view> <vector>)

function(weir_test name)
  cmake_parse_arguments(ARG "NO_SANITIZERS;NO_TSAN;SANITIZED" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(ARG_SANITIZED)
    set(ARG_LABEL ${ARG_LABEL}-sanitized)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main weir_warnings)
  target_precompile_headers(${name} REUSE_FROM weir_test_headers)
  weir_let_ccache_see_precompiled(${name})
  gtest_discover_tests(${name} NO_PRETTY_VALUES PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} DISCOVERY_TIMEOUT 60)
  if(NOT ARG_NO_SANITIZERS AND ARG_LABEL MATCHES "unit|golden|fuzz|sanitized")
    add_dependencies(unit_tests ${name})
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
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    add_test(NAME fuzz.${name} COMMAND ${name} ${corpus})
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
    add_dependencies(unit_tests ${name})
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK} weir_warnings)
endfunction()

# The layers by link targets: fails the configuration when a library of one folder links one of a folder that
# tools/layers.json does not allow it. Called once, after every folder was added.
function(weir_check_link_layers)
  file(READ ${PROJECT_SOURCE_DIR}/tools/layers.json json)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${PROJECT_SOURCE_DIR}/tools/layers.json)
  weir_targets_below(${PROJECT_SOURCE_DIR} targets)
  foreach(target IN LISTS targets)
    weir_layer_of(${target} layer)
    # verbs/ is reached through its C ABI (the imported or drop-in libibverbs), which any layer with verbs headers may
    # link; programs and tests put layers together, so only libraries are checked.
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY" OR "${layer}" STREQUAL "" OR layer MATCHES "^(tests|bench|cli)$")
      continue()
    endif()
    string(JSON allowed ERROR_VARIABLE unknown GET "${json}" layers ${layer} may_include)
    if(unknown)
      message(FATAL_ERROR "${target} lives in ${layer}/, which tools/layers.json does not know")
    endif()
    get_target_property(links ${target} LINK_LIBRARIES)
    foreach(link IN LISTS links)
      if(NOT TARGET ${link})
        continue()
      endif()
      get_target_property(imported ${link} IMPORTED)
      if(imported OR link STREQUAL "weir_warnings")
        continue()
      endif()
      get_target_property(link_type ${link} TYPE)
      weir_layer_of(${link} link_layer)
      if(link_layer STREQUAL layer OR "${link_layer}" STREQUAL "" OR allowed MATCHES "\"${link_layer}[/\"]" OR
         link_type STREQUAL "SHARED_LIBRARY")
        continue()
      endif()
      message(FATAL_ERROR "${target} (${layer}/) links ${link} (${link_layer}/): tools/layers.json forbids that")
    endforeach()
  endforeach()
endfunction()

function(weir_targets_below directory result)
  get_property(found DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(children DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(child IN LISTS children)
    weir_targets_below(${child} below)
    list(APPEND found ${below})
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

function(weir_layer_of target result)
  get_target_property(directory ${target} SOURCE_DIR)
  file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${directory})
  string(REGEX REPLACE "/.*" "" layer "${relative}")
  set(${result} ${layer} PARENT_SCOPE)
endfunction()
