# weir_grpc: gRPC without TLS, for those who have it and protoc with its plugin (PROTOC, GRPC_CPP_PLUGIN); no target otherwise.
# pkg_check_modules() would ask pkg-config for each kind of flag alone, sixteen times. gRPC's answer goes through a hundred files of
# Abseil each time, which was the longest part of the configuration.
include_guard(GLOBAL)
find_package(PkgConfig REQUIRED)
find_program(PROTOC protoc)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --cflags --libs grpc++_unsecure
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed OR NOT PROTOC OR NOT GRPC_CPP_PLUGIN)
  message(STATUS "No gRPC (libgrpc++-dev, protobuf-compiler-grpc): grpc_echo_bench, weir sim --telemetry and weir collector are not built")
  return()
endif()
separate_arguments(flags UNIX_COMMAND "${flags}")
set(libraries ${flags})
list(FILTER libraries INCLUDE REGEX "^-[lLW]")
list(REMOVE_ITEM flags ${libraries})
list(REMOVE_DUPLICATES libraries)
add_library(weir_grpc INTERFACE)
target_compile_options(weir_grpc INTERFACE ${flags})
target_link_libraries(weir_grpc INTERFACE ${libraries})
# pkg-config names all of Abseil; what is not used must not be loaded.
target_link_options(weir_grpc INTERFACE LINKER:--as-needed)
