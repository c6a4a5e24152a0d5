// Refuses to compile a program that sees a different Asio from the one this library was compiled with.
//
// Some of Asio's macros change how its objects are laid out in memory and who frees them. A program that sets
// them differently from the library links, and crashes later. weir::rpc and weir-rpc-cpp pass the right
// macros to the programs that link them; an installed Weir also passes WEIR_ASIO_VERSION.
#pragma once

#include <asio/detail/config.hpp>
#include <asio/version.hpp>

#if !defined(ASIO_STANDALONE) || !defined(ASIO_NO_DEPRECATED) || !defined(ASIO_SEPARATE_COMPILATION) || \
    !defined(ASIO_HAS_STD_ALIGNED_ALLOC)
#error \
    "This file is compiled without the definitions of Asio that Weir was built with, so the program would crash. Link weir::rpc in CMake, or compile with $(pkg-config --cflags weir-rpc-cpp)."
#elif defined(ASIO_HEADER_ONLY) || defined(ASIO_ENABLE_BOOST) || defined(ASIO_DISABLE_THREADS) || \
    defined(ASIO_DISABLE_STD_ALIGNED_ALLOC) || defined(ASIO_ENABLE_HANDLER_TRACKING) ||           \
    defined(ASIO_CUSTOM_HANDLER_TRACKING) || defined(ASIO_USE_TS_EXECUTOR_AS_DEFAULT) ||          \
    defined(ASIO_NO_TS_EXECUTORS)
#error \
    "This file is compiled with a definition (ASIO_...) that Weir was not built with, so the program would crash. Leave it out where Weir's headers are used."
#elif defined(WEIR_ASIO_VERSION) && WEIR_ASIO_VERSION != ASIO_VERSION
#error \
    "Weir was built with another version of Asio than the one found here, so the program would crash. Use the Asio of the system that Weir was built for, or build Weir here."
#endif
