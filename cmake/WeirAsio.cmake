# weir_asio, weir_asio_ssl: Debian's Asio, compiled once instead of into every file that includes it (a fifth of such a
# file's compile time under AddressSanitizer).
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)

add_library(weir_asio STATIC ${CMAKE_CURRENT_LIST_DIR}/asio.cpp)
# ASIO_HAS_STD_ALIGNED_ALLOC: Asio 1.22 looks for aligned_alloc by a macro of libstdc++ that is not there yet in a file
# whose first include is Asio's. Such a file would free with operator delete what others got from aligned_alloc.
target_compile_definitions(weir_asio PUBLIC
  ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_SEPARATE_COMPILATION ASIO_HAS_STD_ALIGNED_ALLOC=1)
# What rpc/asio_definitions.hpp compares with, in programs that find_package(weir) or pkg-config.
find_path(WEIR_ASIO_INCLUDE asio/version.hpp REQUIRED)
file(STRINGS ${WEIR_ASIO_INCLUDE}/asio/version.hpp asio_version REGEX "^#define ASIO_VERSION [0-9]+")
string(REGEX MATCH "[0-9]+" WEIR_ASIO_VERSION "${asio_version}")
if(NOT WEIR_ASIO_VERSION)
  message(FATAL_ERROR "${WEIR_ASIO_INCLUDE}/asio/version.hpp does not say which Asio it is of")
endif()
target_compile_definitions(weir_asio PUBLIC $<INSTALL_INTERFACE:WEIR_ASIO_VERSION=${WEIR_ASIO_VERSION}>)
target_compile_features(weir_asio PUBLIC cxx_std_23)  # for programs that find_package(weir)
target_link_libraries(weir_asio PUBLIC Threads::Threads)

add_library(weir_asio_ssl STATIC ${CMAKE_CURRENT_LIST_DIR}/asio_ssl.cpp)
target_link_libraries(weir_asio_ssl PUBLIC weir_asio OpenSSL::SSL)
