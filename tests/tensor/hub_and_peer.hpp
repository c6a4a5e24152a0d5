// A hub, a peer, and arrays in which every byte identifies its version and place.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensor/hub.hpp"
#include "tensor/peer.hpp"
#include "tests/rdma/test_device.hpp"

namespace weir::tensor::testing_support {

using rdma::testing_support::test_provider;

inline constexpr DType uint8{1, 8, 1};
inline constexpr DType uint64{1, 64, 1};

inline std::unique_ptr<Hub> make_hub(const HubSettings& settings = {}) {
  const std::string host = rdma::testing_support::test_address().address().to_string();
  auto hub = Hub::listen("rdma://" + host + ":0", test_provider(), settings);
  if (!hub) throw std::runtime_error(hub.error().what);
  return std::move(*hub);
}

inline std::unique_ptr<Peer> make_peer(const Hub& hub, const PeerSettings& settings = {}) {
  auto peer = Peer::connect(hub.address(), test_provider(), settings);
  if (!peer) throw std::runtime_error(peer.error().what);
  return std::move(*peer);
}

using Numbers = std::shared_ptr<std::vector<std::uint64_t>>;

// An array whose elements are all `value`.
inline Numbers numbers(std::size_t count, std::uint64_t value) {
  return std::make_shared<std::vector<std::uint64_t>>(count, value);
}

inline TensorView view_of(const Numbers& array, std::string name = {}) {
  return {std::move(name), uint64, {array->size()}, array->data()};
}

inline std::uint64_t publish(Hub& hub, std::string_view name, const Numbers& array) {
  const auto version = hub.publish(name, view_of(array), array);
  if (!version) throw std::runtime_error(version.error().what);
  return *version;
}

// The fetched bytes as numbers.
inline std::vector<std::uint64_t> values(const Fetched& fetched) {
  std::vector<std::uint64_t> all(fetched.data.size() / 8);
  if (!all.empty()) std::memcpy(all.data(), fetched.data.data(), all.size() * 8);
  return all;
}

template <class T>
T must(Result<T> result) {
  if (!result)
    throw std::runtime_error(std::string(name_of(result.error().code)) + ": " + result.error().what);
  return std::move(*result);
}

}  // namespace weir::tensor::testing_support
