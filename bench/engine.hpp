// The engine of a benchmark's process, on the device that WEIR_RDMA_PROVIDER names.
#pragma once

#include <unistd.h>

#include <asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>

#include "rdma/engine.hpp"
#include "rdma/provider.hpp"

namespace weir::bench {

// Ends the process, which may be a forked one, if the engine cannot be opened.
inline rdma::Engine& open_engine(asio::io_context& io) {
  const char* wanted = std::getenv("WEIR_RDMA_PROVIDER");
  rdma::ProviderOptions options;
  options.choice = rdma::parse_provider_choice(wanted != nullptr ? wanted : "").value_or(options.choice);
  const auto provider = rdma::load_provider(options);
  if (!provider) {
    std::fprintf(stderr, "%s\n", provider.error().what.c_str());
    _exit(1);
  }
  const auto engine = rdma::Engine::open(io, *provider);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().what.c_str());
    _exit(1);
  }
  return **engine;
}

}  // namespace weir::bench
