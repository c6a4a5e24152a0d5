// A reader of a hub's arrays, and a writer where the hub lets it.
//
//   auto peer = Peer::connect("rdma://10.0.0.1:7800", provider);
//   auto w = (*peer)->fetch("layer1.w");                        // newest version, in memory of the peer's
//   (*peer)->fetch("layer1.w", {.newer_than = w->version, .timeout = 1s, .out = Out{...}});   // in yours
//
// What a fetch gives is one version, whole: never parts of two, never one of a hub that is gone. When the hub
// goes, fetches under way fail with peer_gone and its generation, and the next one connects anew.
//
// Threads: any thread, several at once; the threads that wait do the work, and one peer has no thread of its
// own. Ownership: `out` belongs to the peer from the call to its return. After an error what is in it is
// unspecified. What a fetch without `out` gave outlives the peer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/provider.hpp"
#include "tensor/catalogue.hpp"
#include "tensor/fetch.hpp"
#include "tensor/peer_session.hpp"
#include "tensor/say.hpp"
#include "tensor/tensor_view.hpp"

namespace weir::tensor {

struct PeerSettings {
  PeerLimits limits = {};
  std::size_t spare_bytes = std::size_t{256} << 20;  // memory of fetches that is kept to be used again
  std::chrono::milliseconds connect_timeout{5000};
  std::function<void(std::string_view line)> say = say_on_stderr;  // that it fell back to TCP, and why
};

struct FetchOptions {
  std::uint64_t newer_than = 0;
  std::uint64_t generation = 0;  // of the hub that newer_than is of; 0: whichever is there
  // How long to wait for such a version; nothing: not at all for one that is not there, 30 s for one that is.
  std::optional<std::chrono::nanoseconds> timeout = {};
  std::optional<Out> out = {};
};

class Follower;

class Peer {
 public:
  // To rdma://HOST:PORT, tcp://HOST:PORT, or rdma://HOST:PORT?fallback=tcp: TCP where RDMA does not answer
  // within half of connect_timeout, which is said. Waits until it is connected. A provider that is an error
  // is enough for TCP. bad_address, unreachable, device, protocol.
  static Result<std::unique_ptr<Peer>> connect(std::string_view address,
                                               const rdma::Result<rdma::Provider>& provider,
                                               const PeerSettings& settings = {});
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // not_published, superseded, shape_mismatch, peer_gone, timed_out, unreachable, too_much.
  Result<Fetched> fetch(std::string_view name, FetchOptions options = {});

  // A new version of `name` at the hub, as if it had published it; its number. The memory is the caller's
  // again when this returns. After an error that is not the hub's answer (peer_gone, timed_out) it may be
  // there or not. refused, too_much, bad_array, peer_gone, timed_out, unreachable.
  Result<std::uint64_t> push(std::string_view name, const TensorView& array,
                             std::chrono::nanoseconds timeout = std::chrono::seconds(30));
  Result<std::uint64_t> push_tree(std::string_view name, std::span<const TensorView> tensors,
                                  std::chrono::nanoseconds timeout = std::chrono::seconds(30));

  // What the hub has; of at most 65536 names.
  Result<std::vector<CatalogueEntry>> list();

  // In two steps, for several at a time: start, then wait for each.
  std::shared_ptr<Fetch> start(std::string_view name, FetchOptions options = {});
  Result<Fetched> wait(const std::shared_ptr<Fetch>& fetch, std::chrono::nanoseconds timeout);

  // Each next version of a name, without a request for each: see Follower.
  std::unique_ptr<Follower> follow(std::string_view name, std::uint64_t newer_than = 0,
                                   std::uint64_t generation = 0, std::uint32_t ahead = 2);

  std::uint64_t generation() const;  // of the hub; 0 while not connected
  PeerStats stats() const;

 private:
  friend class Follower;
  class Core;
  explicit Peer(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

// Destinations for the next versions of a name are at the hub before there are any: a version is written to
// the oldest as soon as it is published, also while this program is busy with the one before, and next()
// finds it there. With `ahead` of them, a busy program misses no version of the next `ahead` - 1; later ones
// are skipped, and the newest is what comes next: a follower never hears `superseded`.
//
// Versions rise. When the hub goes next() says peer_gone once, and the following one begins with what the
// next hub has. One thread at a time; it may outlive the Peer, whose connection it keeps.
class Follower {
 public:
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // What a fetch gives; timed_out leaves the destinations where they are.
  Result<Fetched> next(std::chrono::nanoseconds timeout);

 private:
  friend class Peer;
  Follower(std::shared_ptr<Peer::Core> core, std::string name, std::uint64_t newer_than,
           std::uint64_t generation, std::uint32_t ahead);
  void post_ahead();
  // The lowest version that came; nothing if none did, or the first error.
  std::optional<Result<Fetched>> take();

  const std::shared_ptr<Peer::Core> core_;
  const std::string name_;
  std::uint64_t newer_than_, generation_;
  const std::uint32_t ahead_;
  std::vector<std::shared_ptr<Fetch>> posted_;
};

}  // namespace weir::tensor
