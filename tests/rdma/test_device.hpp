// The RDMA device of the interop tests: Weir's software NIC from the build tree, or the system's on a machine
// with an RDMA device (tests/vm). WEIR_RDMA_PROVIDER and WEIR_TEST_RDMA_ADDRESS override it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "rdma/provider.hpp"
#include "rdma/verbs/cm.hpp"

namespace weir::rdma::testing_support {

inline std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

inline const Provider& test_provider() {
  static const Provider provider = [] {
    ProviderOptions options;
    options.choice = parse_provider_choice(from_environment("WEIR_RDMA_PROVIDER")).value();
    options.library_path = from_environment("LD_LIBRARY_PATH");
    Result<Provider> loaded = load_provider(options);
    if (!loaded) throw std::runtime_error(loaded.error().what);
    return *loaded;
  }();
  return provider;
}

// An address of the device, with port 0.
inline Endpoint test_address() {
  const std::string address = from_environment("WEIR_TEST_RDMA_ADDRESS");
  return {asio::ip::make_address(address.empty() ? "127.0.0.1" : address), 0};
}

}  // namespace weir::rdma::testing_support
