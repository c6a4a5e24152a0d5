// Settings by name, and what all functions of the C ABI share: reporting errors and loading the provider.
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

// Fills in `to` unless it is null; returns the error's number.
int report(weir_tensor_error* to, const Error& error);

Result<void> set(weir_tensor_options& options, std::string_view name, std::string_view value);

Result<std::vector<TensorView>> views_of(const weir_tensor_array* arrays, std::size_t count, int as_tree);

// Copies a structure that begins with its size to a caller whose version of it may be shorter.
template <class Stats>
void hand_over(const Stats& from, Stats* to) {
  const std::size_t known = std::min(to->size, sizeof(Stats));
  if (known < sizeof to->size) return;
  std::memcpy(reinterpret_cast<std::byte*>(to) + sizeof to->size,
              reinterpret_cast<const std::byte*>(&from) + sizeof to->size, known - sizeof to->size);
}

// Loads the RDMA libraries, if the address needs them, from where the options, the environment or this
// library's own directory say.
rdma::Result<rdma::Provider> provider_for(const weir_tensor_options& options, std::string_view address);

// Runs `work` and reports exceptions (std::bad_alloc above all) as too_much.
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
