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
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/provider.hpp"
#include "tensor/fetch.hpp"
#include "tensor/follower.hpp"
#include "tensor/listing.hpp"
#include "tensor/peer_session.hpp"
#include "tensor/peer_settings.hpp"
#include "tensor/tensor_view.hpp"

namespace weir::tensor {

struct FetchOptions {
  std::uint64_t newer_than = 0;
  std::uint64_t generation = 0;  // of the hub that newer_than is of; 0: whichever is there
  // How long to wait for such a version; nothing: not at all for one that is not there, 30 s for one that is.
  std::optional<std::chrono::nanoseconds> timeout = {};
  std::optional<Out> out = {};
};

// One of several that are wanted at once.
struct Wanted {
  std::string name;
  FetchOptions options = {};
};

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

  // Several at once, each with an outcome of its own, in the order of `wanted`: as many requests as fit share
  // a message, and none waits for the answer to another. They need not be of one moment, as those of a tree.
  std::vector<Result<Fetched>> fetch_many(std::vector<Wanted> wanted);

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
  explicit Peer(std::shared_ptr<PeerCore> core);
  std::shared_ptr<PeerCore> core_;
};

}  // namespace weir::tensor
