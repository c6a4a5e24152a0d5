// What weir_rpc_options holds, and how errors get to a C program.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "rdma/engine.hpp"
#include "rdma/provider.hpp"
#include "rpc/c/weir_rpc.h"
#include "rpc/client.hpp"
#include "rpc/server.hpp"

struct weir_rpc_options {
  weir::rpc::ConnectOptions connect;
  weir::rpc::ServerOptions serve;
  weir::rdma::ProviderOptions provider;
  std::string provider_name;
  std::string token;
  std::string compression;
  std::string http_origins, http_hosts;
};

namespace weir::rpc::c {

// Fills `to` if there is one; gives the number.
int report(weir_rpc_error* to, const Error& error);

// What `make` gives; no exception leaves for a C program: what the process lacks (descriptors, threads,
// memory) is an error.
template <class Make>
auto or_lack(Make make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& thrown) {
    return fail(Errc::overloaded, std::string("this process lacks what it takes: ") + thrown.what());
  }
}

// The RDMA engine of `io` for an address that needs one, null for the others. In the io_context's thread.
Result<rdma::Engine*> engine_for(asio::io_context& io, std::string_view address,
                                 const weir_rpc_options& options);

}  // namespace weir::rpc::c
