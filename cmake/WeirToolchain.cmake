# Compiler, linker and sanitizer settings, the same for every target.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(WEIR_SANITIZE "" CACHE STRING "sanitizers to build with, as -fsanitize= takes them")
if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${WEIR_SANITIZE})
  if(WEIR_SANITIZE MATCHES "undefined")
    # Its check of object types opens a pipe to probe memory, and reports a fault when no descriptor is left: tests
    # that use up the descriptors would fail for nothing.
    add_compile_options(-fno-sanitize=vptr)
  endif()
endif()
# As Debian builds its own programs (dpkg-buildflags(1), with bindnow and pie), because strangers talk to ours. A sanitizer
# checks more. WEIR_BEFORE_THE_C_LIBRARY: options for files with functions that stand in front of the C library's, some of
# which its hardened headers define.
if(NOT WEIR_SANITIZE)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C CXX)
  add_link_options(LINKER:-z,relro LINKER:-z,now)
  if(CMAKE_BUILD_TYPE MATCHES "Rel")  # FORTIFY takes optimisation
    add_compile_options(-fstack-protector-strong -Wformat -Werror=format-security -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
    set(WEIR_BEFORE_THE_C_LIBRARY -U_FORTIFY_SOURCE)
  endif()
endif()
option(WEIR_COVERAGE "instrument for gcov" OFF)
if(WEIR_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
set(WEIR_UNITY OFF CACHE STRING
  "compile files of the larger libraries together: ON, OFF, APPLICATIONS (those above rdma/). Less time, but it hides what they fail to include")
option(WEIR_WERROR "warnings are errors" OFF)
option(WEIR_FUZZ "build the libFuzzer targets (clang only)" OFF)
if(WEIR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Asio 1.22 knows coroutines of clang only where <experimental/coroutine> is; libstdc++ has <coroutine>.
  add_compile_definitions(ASIO_HAS_CO_AWAIT=1)
endif()
