# weir_asio, weir_asio_ssl: Debian's Asio, compiled once instead of into every file that includes it (a fifth of such a
# file's compile time under AddressSanitizer).
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)

add_library(weir_asio STATIC ${CMAKE_CURRENT_LIST_DIR}/asio.cpp)
# ASIO_HAS_STD_ALIGNED_ALLOC: Asio 1.22 looks for aligned_alloc by a macro of libstdc++ that is not there yet in a file
# whose first include is Asio's. Such a file would free with operator delete what others got from aligned_alloc.
target_compile_definitions(weir_asio PUBLIC
  ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_SEPARATE_COMPILATION ASIO_HAS_STD_ALIGNED_ALLOC=1)
target_compile_features(weir_asio PUBLIC cxx_std_23)  # for programs that find_package(weir)
target_link_libraries(weir_asio PUBLIC Threads::Threads)

add_library(weir_asio_ssl STATIC ${CMAKE_CURRENT_LIST_DIR}/asio_ssl.cpp)
target_link_libraries(weir_asio_ssl PUBLIC weir_asio OpenSSL::SSL)
