# What `make install` and the Debian packages bring, by component. A component is a package:
#
#   nic      weir-nic      weir, weir-fabric, and the drop-in libraries in lib/weir
#   tools    weir          weir-plan, weir-sim, weir-rpc and the like; weir-cli, weir-benchmark
#   modules  weir-modules  what of weir-sim and weir-collector needs gRPC or Open MPI
#   server   weir-server   with its systemd unit and a configuration; weir-check
#   lib      libweir0      the C libraries, and NCCL's plugin
#   dev      libweir-dev   headers, C++ libraries, find_package(weir), pkg-config
#   python   python3-weir  weir_rpc, weir_tensor
#   nccl     (in none)     the names under which NCCL takes the plugin unasked
#
# All targets are OPTIONAL: after `make nic` an installation brings the NIC, after `make programs` everything.
# installable: the target that builds all of it, and no test.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # ninja install builds nothing
add_custom_target(installable)

# The drop-in libraries go where no loader finds them unasked: `weir run` and rdma/provider.cpp know the place.
foreach(library weir_ibverbs weir_rdmacm weir_view weir_look weir_heap weir_check_verbs weir_rspreload weir_preload weir_twin_inside)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION lib/weir COMPONENT nic OPTIONAL)
    add_dependencies(installable ${library})
  endif()
endforeach()
install(TARGETS weir weir-fabric COMPONENT nic OPTIONAL)
set(tools weir-plan weir-sim weir-collector weir-rpc weir-tensor weir-cli weir-benchmark)
install(TARGETS ${tools} COMPONENT tools OPTIONAL)
install(TARGETS weir-server weir-check COMPONENT server OPTIONAL)
add_dependencies(installable weir weir-fabric ${tools} weir-server weir-check)
set(modules "")
foreach(module weir_mpi weir_telemetry)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION lib/weir COMPONENT modules OPTIONAL)
    add_dependencies(installable ${module})
    set(modules modules)
  endif()
endforeach()
foreach(library weir_rpc_c weir_tensor_c)
  install(TARGETS ${library} LIBRARY DESTINATION lib COMPONENT lib NAMELINK_COMPONENT dev OPTIONAL)
endforeach()
install(TARGETS weir_nccl_plugin LIBRARY DESTINATION lib COMPONENT lib OPTIONAL)
add_dependencies(installable weir_rpc_c weir_tensor_c weir_nccl_plugin)
install(FILES $<TARGET_FILE_DIR:weir_nccl_plugin>/libnccl-net.so $<TARGET_FILE_DIR:weir_nccl_plugin>/librccl-net.so
  DESTINATION lib COMPONENT nccl OPTIONAL)

# Manual pages and completions, with the program that each is of. bash and fish look in the file of a program's name.
function(weir_install_pages component section)
  foreach(page ${ARGN})
    install(FILES ${PROJECT_SOURCE_DIR}/docs/man/${page}.${section}
      DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
  endforeach()
endfunction()
weir_install_pages(nic 1 weir weir-run weir-trace weir-fabric weir-faults weir-devices weir-sockets weir-stat)
weir_install_pages(tools 1 weir-plan weir-sim weir-collector weir-rpc weir-tensor weir-cli weir-benchmark)
weir_install_pages(server 1 weir-server weir-check)
weir_install_pages(lib 7 weir-nccl)
foreach(pair nic=weir nic=weir-fabric tools=weir-plan tools=weir-sim tools=weir-collector tools=weir-rpc tools=weir-tensor tools=weir-cli tools=weir-benchmark server=weir-server server=weir-check)
  string(REGEX MATCH "(.*)=(.*)" pair ${pair})
  install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/weir.bash RENAME ${CMAKE_MATCH_2}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT ${CMAKE_MATCH_1})
  install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/weir.fish RENAME ${CMAKE_MATCH_2}.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT ${CMAKE_MATCH_1})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/cli/completion/_weir DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
  COMPONENT nic)

# The server's configuration is in /etc where the prefix is /usr, as in a package, and everywhere an example. In /etc it may hold
# a password: only root reads it, and systemd hands it to the service (LoadCredential).
set(packages ${PROJECT_SOURCE_DIR}/cmake/packages)
install(FILES ${packages}/weir-server.service DESTINATION lib/systemd/system COMPONENT server)
install(FILES ${packages}/weir-server.conf ${packages}/weir-server-dashboard.json DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/weir-server/examples COMPONENT server)
install(CODE "
  if(CMAKE_INSTALL_PREFIX MATCHES \"/usr$\")
    file(INSTALL \"${packages}/weir-server.conf\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/../etc/weir\"
      PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ)
  endif()" COMPONENT server)

# C++: headers below include/weir, in folders as here, so that their includes of each other hold.
set(cpp_libraries weir_asio weir_asio_ssl weir_hash weir_waiting weir_transport weir_transport_tls weir_transport_dial weir_metrics weir_rdma weir_rpc weir_tensor)
foreach(library ${cpp_libraries})
  string(REPLACE "weir_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  add_dependencies(installable ${library})
endforeach()
install(TARGETS ${cpp_libraries} EXPORT weir ARCHIVE DESTINATION lib COMPONENT dev OPTIONAL
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_INCLUDEDIR}/weir)
install(EXPORT weir NAMESPACE weir:: FILE weir-targets.cmake DESTINATION lib/cmake/weir COMPONENT dev)
foreach(folder hash waiting transport rdma rpc tensor)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir COMPONENT dev
    FILES_MATCHING PATTERN "*.hpp" PATTERN "c" EXCLUDE PATTERN "go" EXCLUDE PATTERN "python" EXCLUDE
    PATTERN "examples" EXCLUDE)
endforeach()
configure_package_config_file(${packages}/weir-config.cmake.in weir-config.cmake INSTALL_DESTINATION lib/cmake/weir
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(weir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weir-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/weir-config-version.cmake
  DESTINATION lib/cmake/weir COMPONENT dev)
foreach(name weir-rdma weir-rpc-cpp weir-tensor-cpp)
  configure_file(${packages}/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION lib/pkgconfig COMPONENT dev)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/rpc/c/weir_rpc.h ${PROJECT_SOURCE_DIR}/tensor/c/weir_tensor.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/rpc/c/weir-rpc.pc ${PROJECT_BINARY_DIR}/tensor/c/weir-tensor.pc
  DESTINATION lib/pkgconfig COMPONENT dev)

# Python: Debian's own interpreter looks in one folder for packages, and in another, of its version, for what the
# administrator installs.
install(CODE "
  set(folder lib/python${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR}/dist-packages)
  if(CMAKE_INSTALL_PREFIX MATCHES \"/usr$\")
    set(folder lib/python3/dist-packages)
  endif()
  file(INSTALL \"${PROJECT_SOURCE_DIR}/rpc/python/weir_rpc\" \"${PROJECT_SOURCE_DIR}/tensor/python/weir_tensor\"
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/\${folder}\" FILES_MATCHING PATTERN \"*.py\" PATTERN \"py.typed\"
    PATTERN __pycache__ EXCLUDE)" COMPONENT python)

include(WeirPackages)
