// A hub: arrays under names, for peers to fetch.
//
//   auto hub = Hub::listen("rdma://0.0.0.0:7800", provider);
//   (*hub)->publish("layer1.w", array, keep_alive);
//
// publish() copies nothing: the array stays where it is, and must not change until its version was superseded
// and no reader has it, which is when `owner` is let go of. A version number is for a name, from 1; a hub has
// a generation, so that one that was started again never passes for the one before.
//
// Threads: every function from any thread. The hub has a thread of its own that serves; `owner`s may be let
// go of there. Errors: typed, see each. Peers: what one sends can end its own connection only
// (docs/threat-model.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/provider.hpp"
#include "tensor/catalogue.hpp"
#include "tensor/hub_session.hpp"
#include "tensor/metadata.hpp"
#include "tensor/push_rules.hpp"
#include "tensor/say.hpp"
#include "tensor/tensor_view.hpp"

namespace weir::tensor {

struct HubSettings {
  std::uint32_t keep =
      2;  // superseded versions of a name that slow readers may hold on to; beyond: Superseded
  std::uint32_t max_connections = 1024;
  std::size_t most_names = 1 << 20;
  PushSettings push = {};                                          // what peers may push; by default nothing
  std::function<void(std::string_view line)> say = say_on_stderr;  // that it serves by TCP only, and why
};

// A version as the hub's own program sees it. Nobody may write there.
struct Held {
  std::uint64_t version = 0;
  std::shared_ptr<const Metadata> metadata;
  std::span<const std::byte> data;
  std::shared_ptr<const void> memory;  // keeps data
};

class Hub {
 public:
  // rdma://HOST:PORT, tcp://HOST:PORT, or several with commas; rdma://HOST:PORT?fallback=tcp is both at one
  // port. Port 0 takes a free one. A provider that is an error is enough for TCP. bad_address, device,
  // unreachable (the address is in use).
  static Result<std::unique_ptr<Hub>> listen(std::string_view address,
                                             const rdma::Result<rdma::Provider>& provider,
                                             const HubSettings& settings = {});
  ~Hub();  // ends all connections
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::string address() const;  // "rdma://0.0.0.0:7800", with the ports that were taken
  std::uint64_t generation() const;

  // The new version's number. `owner` keeps the memory as long as it is needed. bad_array, too_much.
  Result<std::uint64_t> publish(std::string_view name, const TensorView& array,
                                std::shared_ptr<const void> owner);
  // One version for all: a reader gets all of it or nothing. Tensors that are small are copied together.
  Result<std::uint64_t> publish_tree(std::string_view name, std::span<const TensorView> tensors,
                                     std::shared_ptr<const void> owner);
  bool withdraw(std::string_view name);

  // The newest version of a name, published here or pushed, if it is newer than `newer_than`; waits for one.
  // Not copied where it is one piece of memory, as pushed ones are. not_published, timed_out, too_much.
  Result<Held> get(std::string_view name, std::uint64_t newer_than = 0,
                   std::chrono::nanoseconds timeout = {});

  std::vector<CatalogueEntry> list() const;
  HubStats stats() const;  // asks the hub's thread
  std::uint64_t live_bytes() const;
  MemoryTiers memory() const;  // of those; reads /proc/self/maps

 private:
  class Core;
  explicit Hub(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace weir::tensor
