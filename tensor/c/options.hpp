// Settings by name, and what every function of the C ABI shares: errors out, the provider in.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/provider.hpp"
#include "tensor/c/weir_tensor.h"
#include "tensor/hub.hpp"
#include "tensor/peer.hpp"

struct weir_tensor_fetched {
  weir::tensor::Fetched what;
};

struct weir_tensor_options {
  weir::tensor::HubSettings hub;
  weir::tensor::PeerSettings peer;
  std::string provider_name;
  std::string library_dir;
};

namespace weir::tensor::c {

// Writes it where `to` is not null; its number.
int report(weir_tensor_error* to, const Error& error);

Result<void> set(weir_tensor_options& options, std::string_view name, std::string_view value);

Result<std::vector<TensorView>> views_of(const weir_tensor_array* arrays, std::size_t count, int as_tree);

// A structure that begins with its size, to a caller who may know less of it than we do.
template <class Stats>
void hand_over(const Stats& from, Stats* to) {
  const std::size_t known = std::min(to->size, sizeof(Stats));
  if (known < sizeof to->size) return;
  std::memcpy(reinterpret_cast<std::byte*>(to) + sizeof to->size,
              reinterpret_cast<const std::byte*>(&from) + sizeof to->size, known - sizeof to->size);
}

// Loads the libraries as the options, the environment and this library's place say, if the address needs any.
rdma::Result<rdma::Provider> provider_for(const weir_tensor_options& options, std::string_view address);

// What a function is to do, with what it throws as an error: memory that there is not is too_much.
template <class Work>
int guarded(weir_tensor_error* error, Work work) {
  try {
    const Result<void> done = work();
    return done ? 0 : report(error, done.error());
  } catch (const std::exception& thrown) {
    return report(error, Error{Errc::too_much, thrown.what(), 0});
  }
}

}  // namespace weir::tensor::c
