# weir_library(NAME SOURCES ... [LINK targets...] [PRIVATE_LINK targets...])
#   A static library of this folder's layer.
#
# weir_precompile(NAME headers...)
#   Headers that most files of a target include, compiled once. Most of the time to compile a file goes into them.
#
# weir_unity(NAME [DATA_PATH])
#   With WEIR_UNITY=ON the target's files are compiled in batches, so their anonymous namespaces share their names.
#   DATA_PATH: what each RDMA operation goes through; with WEIR_UNITY=APPLICATIONS it is compiled
#   as it was measured, file by file.

add_library(weir_warnings INTERFACE)
target_compile_options(weir_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
# GCC 12's -Wrestrict sees overlaps where a short literal and a string are put together (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(weir_warnings INTERFACE -Wno-restrict)
endif()
# With clang, libstdc++ 12's stable_sort warns of a function of its own (get_temporary_buffer).
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weir_warnings INTERFACE -Wno-deprecated-declarations)
endif()
if(WEIR_WERROR)
  target_compile_options(weir_warnings INTERFACE -Werror)
endif()

function(weir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK} $<BUILD_INTERFACE:weir_warnings>)
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
  cmake_parse_arguments(ARG "DATA_PATH" "" "" ${ARGN})
  if(WEIR_UNITY AND NOT (ARG_DATA_PATH AND WEIR_UNITY STREQUAL APPLICATIONS))
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    # A file's anonymous namespace is no header's, though it is included here; and the larger a file, the more overflows
    # GCC 12 sees in std::string where there are none (its bug 105651).
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage -Wno-stringop-overflow>)
  endif()
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
