# Debian packages and a tarball, for `make packages`: each component of WeirInstall.cmake is a package.
set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_VENDOR Weir)
# Of those who hand the packages on: to whom their users write, and where they read more. Weir itself has no address.
set(WEIR_MAINTAINER "The authors of Weir <weir@localhost>" CACHE STRING "maintainer of the packages: NAME <ADDRESS>")
set(WEIR_HOMEPAGE "" CACHE STRING "homepage of the packages: a URL; empty: none")
set(CPACK_PACKAGE_CONTACT "${WEIR_MAINTAINER}")
if(WEIR_HOMEPAGE)
  set(CPACK_PACKAGE_HOMEPAGE_URL "${WEIR_HOMEPAGE}")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "RDMA under the programs people already run")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL nic tools server lib dev python ${modules})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_FILE_NAME weir-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})  # of the tarball

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(this_version "(= ${PROJECT_VERSION}-1)")

# weir_package(component PACKAGE summary [DEPENDS ...] [RECOMMENDS ...] [SUGGESTS ...] [CONTROL files...])
macro(weir_package component package summary)
  cmake_parse_arguments(ARG "" "DEPENDS;RECOMMENDS;SUGGESTS" "CONTROL" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}")
  foreach(field DEPENDS RECOMMENDS SUGGESTS)
    if(ARG_${field})
      set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${ARG_${field}}")
    endif()
  endforeach()
  if(ARG_CONTROL)
    set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${ARG_CONTROL}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_STRICT_PERMISSION ON)
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
    COMPONENT ${component})
endmacro()
weir_package(nic weir-nic "Software RDMA NIC for unmodified verbs programs\nweir run puts Weir's libibverbs and librdmacm under a program: no RDMA hardware, no kernel\nmodule, no root."
  SUGGESTS "perftest, weir")
weir_package(tools weir "Planner, simulator and clients of Weir\nPlans and simulates lossless networks, calls RPC servers, talks to weir-server and measures it."
  DEPENDS "weir-nic ${this_version}" SUGGESTS "weir-modules, weir-server, gnuplot-nox")
weir_package(server weir-server "Redis-compatible server over TCP, unix sockets, TLS and RDMA\nIts data is in memory, and in snapshots of Redis's format."
  DEPENDS "weir-nic ${this_version}" SUGGESTS "weir"
  CONTROL ${packages}/server/conffiles ${packages}/server/postinst
    ${packages}/server/prerm ${packages}/server/postrm)
weir_package(lib libweir0 "Calls and arrays between programs over RDMA: shared libraries\nlibweir_rpc, libweir_tensor, and a network plugin for NCCL."
  DEPENDS "weir-nic ${this_version}")
weir_package(dev libweir-dev "Calls, streams and arrays over RDMA: for C and C++ programs\nHeaders, static libraries, find_package(weir) and pkg-config."
  DEPENDS "libweir0 ${this_version}, libasio-dev, libibverbs-dev, librdmacm-dev, libssl-dev, libzstd-dev, liblz4-dev")
weir_package(python python3-weir "Calls and arrays between programs over RDMA: Python modules\nweir_rpc and weir_tensor."
  DEPENDS "libweir0 ${this_version}, python3, python3-msgpack" SUGGESTS "python3-numpy"
  CONTROL ${packages}/python/prerm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
if(modules)
  weir_package(modules weir-modules "Telemetry over gNMI and sweeps over MPI for weir sim\nWhat weir sim and weir collector load when they are asked for it."
    DEPENDS "weir ${this_version}")
endif()
include(CPack)
