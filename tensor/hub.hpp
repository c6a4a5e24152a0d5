// A hub: arrays under names, for peers to fetch.
//
//   auto hub = Hub::listen("rdma://0.0.0.0:7800", provider);
//   (*hub)->publish("layer1.w", array, keep_alive);
//
// publish() copies nothing: the array stays where it is, and must not change until its version has been
// superseded and has no readers left; then `owner` is released. Version numbers count up from 1 for each
// name. A hub has a generation, so that a restarted hub is never mistaken for the one before.
//
// Threads: every function may be called from any thread. A thread of the hub's own serves its peers, and may
// be the one that releases an `owner`. Errors: typed, listed at each function. Peers: a misbehaving peer can
// end only its own connection (docs/threat-model.md).
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
#include "tensor/arrays/metadata.hpp"
#include "tensor/arrays/tensor_view.hpp"
#include "tensor/hub/catalogue.hpp"
#include "tensor/hub/hub_session.hpp"
#include "tensor/hub/leases.hpp"
#include "tensor/hub/push_rules.hpp"
#include "tensor/link/admission.hpp"
#include "tensor/link/tls_settings.hpp"
#include "tensor/say.hpp"

namespace weir::tensor {

struct HubSettings {
  std::uint32_t keep =
      2;  // superseded versions of a name that slow readers may hold; older ones get Superseded
  std::uint32_t max_connections = 1024;
  std::size_t most_names = 1 << 20;
  AccessSettings access = {};                                      // whom it serves; its own host by default
  TlsSettings tls = {};                                            // for tls:// addresses
  PushSettings push = {};                                          // what peers may push; nothing by default
  std::function<void(std::string_view line)> say = say_on_stderr;  // told if it serves by TCP only
};

// A version as the hub's own program sees it. Read-only: peers may be reading the same memory.
struct Held {
  std::uint64_t version = 0;
  std::shared_ptr<const Metadata> metadata;
  std::span<const std::byte> data;
  std::shared_ptr<const void> memory;  // owns `data`
};

class Hub {
 public:
  // `address` is rdma://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, or several separated by commas;
  // rdma://HOST:PORT?fallback=tcp listens for both at one port. Port 0 picks a free one. TCP works even if
  // `provider` is an error. bad_address, device, unreachable (the address is in use).
  static Result<std::unique_ptr<Hub>> listen(std::string_view address,
                                             const rdma::Result<rdma::Provider>& provider,
                                             const HubSettings& settings = {});
  ~Hub();  // closes all connections
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::string address() const;  // "rdma://0.0.0.0:7800", with the ports that were chosen
  std::uint64_t generation() const;

  // Returns the new version's number. `owner` is held as long as the memory is needed. bad_array, too_much.
  Result<std::uint64_t> publish(std::string_view name, const TensorView& array,
                                std::shared_ptr<const void> owner);
  // Publishes one version of all tensors: a reader gets all or none. Small tensors are copied together.
  Result<std::uint64_t> publish_tree(std::string_view name, std::span<const TensorView> tensors,
                                     std::shared_ptr<const void> owner);
  bool withdraw(std::string_view name);

  // Publishes a version that ends by itself: when settings.readers have said that they are done with it
  // (Peer::done), or when its time is over and they have not. The lease tells which of these it was, with the
  // readers' words. Afterwards nobody is sent the version, and `owner` is released. As publish(); bad_array
  // too for no readers.
  Result<std::shared_ptr<const Lease>> lend(std::string_view name, const TensorView& array,
                                            std::shared_ptr<const void> owner, const LeaseSettings& settings);
  Result<std::shared_ptr<const Lease>> lend_tree(std::string_view name, std::span<const TensorView> tensors,
                                                 std::shared_ptr<const void> owner,
                                                 const LeaseSettings& settings);

  // The newest version of a name, published here or pushed, if it is newer than `newer_than`; waits for one.
  // Data that lie in one piece, as pushed ones do, are not copied. not_published, timed_out, too_much.
  Result<Held> get(std::string_view name, std::uint64_t newer_than = 0,
                   std::chrono::nanoseconds timeout = {});

  std::vector<CatalogueEntry> list() const;
  HubStats stats() const;  // runs on the hub's thread and waits for it
  std::uint64_t live_bytes() const;
  MemoryTiers memory() const;  // where the live bytes lie; reads /proc/self/maps

 private:
  class Core;
  explicit Hub(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace weir::tensor
