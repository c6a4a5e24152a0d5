# Libraries that another release of Debian or Ubuntu has under another name (libfmt9, libfmt10) become part of the programs,
# so that packages built on Debian 12 install on later releases. What stays shared keeps its name: OpenSSL, jemalloc, libedit.

# fmt::fmt: Debian's fmt, compiled here, because its package has no archive.
find_path(WEIR_FMT_INCLUDE fmt/format-inl.h REQUIRED)
add_library(weir_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
add_library(fmt::fmt ALIAS weir_fmt)

# weir_link_archives(TARGET): links the archive beside each shared library of an imported target, and of all that it needs.
function(weir_link_archives target)
  get_target_property(seen ${target} WEIR_ARCHIVE)
  if(seen)
    return()
  endif()
  set_target_properties(${target} PROPERTIES WEIR_ARCHIVE ON)
  foreach(property IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE IMPORTED_LOCATION)
    get_target_property(shared ${target} ${property})
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${shared}")
    if(shared AND EXISTS ${archive})
      set_target_properties(${target} PROPERTIES ${property} ${archive})
    endif()
  endforeach()
  get_target_property(needed ${target} INTERFACE_LINK_LIBRARIES)
  foreach(other IN LISTS needed)
    if(TARGET ${other})
      weir_link_archives(${other})
    endif()
  endforeach()
endfunction()
