// A reader of a hub's arrays, and a writer where the hub allows pushes.
//
//   auto peer = Peer::connect("rdma://10.0.0.1:7800", provider);
//   auto w = (*peer)->fetch("layer1.w");                        // newest version, in memory of the peer's
//   (*peer)->fetch("layer1.w", {.newer_than = w->version, .timeout = 1s, .out = Out{...}});   // in yours
//
// A fetch gives one whole version: never a mix of two, never one of a hub that is gone. When the hub goes,
// fetches in progress fail with peer_gone and its generation; the next one connects again.
//
// Threads: any thread, several at once. The waiting threads do the work; a peer has no thread of its own.
// Ownership: `out` belongs to the peer from the call to its return, and after an error its contents are
// unspecified. The result of a fetch without `out` outlives the peer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/provider.hpp"
#include "tensor/arrays/listing.hpp"
#include "tensor/arrays/tensor_view.hpp"
#include "tensor/peer/fetch.hpp"
#include "tensor/peer/follower.hpp"
#include "tensor/peer/peer_session.hpp"
#include "tensor/peer/peer_settings.hpp"

namespace weir::tensor {

struct FetchOptions {
  std::uint64_t newer_than = 0;
  std::uint64_t generation = 0;  // the hub that newer_than refers to; 0: any hub
  // How long to wait for such a version. Nothing: do not wait for publication, and allow 30 s for the
  // transfer.
  std::optional<std::chrono::nanoseconds> timeout = {};
  std::optional<Out> out = {};
  // Only these rows of an array, one after another; `out` then has their shape. Empty: all of it. bad_array,
  // shape_mismatch and too_much as cut() says.
  std::vector<Rows> rows = {};
};

// One of several arrays to fetch at once.
struct Wanted {
  std::string name;
  FetchOptions options = {};
};

class Peer {
 public:
  // `address` is rdma://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, or rdma://HOST:PORT?fallback=tcp, which
  // uses TCP if RDMA does not answer within half of connect_timeout and reports that to `say`. Blocks until
  // it is connected. TCP works even if `provider` is an error. bad_address, unreachable, device, protocol.
  static Result<std::unique_ptr<Peer>> connect(std::string_view address,
                                               const rdma::Result<rdma::Provider>& provider,
                                               const PeerSettings& settings = {});
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // not_published, superseded, shape_mismatch, peer_gone, timed_out, unreachable, too_much.
  Result<Fetched> fetch(std::string_view name, FetchOptions options = {});

  // Fetches several arrays at once; results are in the order of `wanted`, each with its own outcome. Requests
  // share messages, and none waits for the answer to another. Unlike the tensors of a tree, the arrays need
  // not be from one moment.
  std::vector<Result<Fetched>> fetch_many(std::vector<Wanted> wanted);

  // Makes a new version of `name` at the hub, as if the hub had published it; returns its number. The memory
  // is the caller's again when this returns. After an error that the hub did not send (peer_gone, timed_out)
  // the version may or may not exist. refused, too_much, bad_array, peer_gone, timed_out, unreachable.
  Result<std::uint64_t> push(std::string_view name, const TensorView& array,
                             std::chrono::nanoseconds timeout = std::chrono::seconds(30));
  Result<std::uint64_t> push_tree(std::string_view name, std::span<const TensorView> tensors,
                                  std::chrono::nanoseconds timeout = std::chrono::seconds(30));

  // Adds to the newest version of `name` at the hub and makes the sum a new version; the first becomes a
  // version as it is. Returns its number. Sums of one name are made one after the other, none is lost, and
  // readers see whole ones. As push(); bad_array too if the elements are no numbers, shape_mismatch if those
  // there have another dtype or shape, superseded if somebody published meanwhile: then nothing was added.
  Result<std::uint64_t> add(std::string_view name, const TensorView& array,
                            std::chrono::nanoseconds timeout = std::chrono::seconds(30));
  Result<std::uint64_t> add_tree(std::string_view name, std::span<const TensorView> tensors,
                                 std::chrono::nanoseconds timeout = std::chrono::seconds(30));

  // Says to the hub that this reader is done with a version that was lent (Hub::lend), and leaves a word of
  // at most 1024 bytes for its publisher. superseded: it is not lent any more, so what was read since may
  // have changed. bad_array, refused, peer_gone, timed_out, unreachable.
  Result<void> done(std::string_view name, const Fetched& with, std::string_view word = {},
                    std::chrono::nanoseconds timeout = std::chrono::seconds(30));
  Result<void> done(std::string_view name, std::uint64_t version, std::uint64_t generation,
                    std::string_view word, std::chrono::nanoseconds timeout);

  // Lists what the hub has, at most 65536 names.
  Result<std::vector<CatalogueEntry>> list();

  // Fetches in two steps, to overlap several: start each, then wait for each.
  std::shared_ptr<Fetch> start(std::string_view name, FetchOptions options = {});
  Result<Fetched> wait(const std::shared_ptr<Fetch>& fetch, std::chrono::nanoseconds timeout);
  // Waits without giving up: false if it is still under way after `timeout`.
  bool wait_until_done(const std::shared_ptr<Fetch>& fetch, std::chrono::nanoseconds timeout);

  // A file descriptor for poll(), epoll or asyncio: readable when a fetch that was started, or a follower's
  // next version, is done. Read its 8 bytes first and look then, with wait_until_done() or next() and no
  // timeout: one signal may stand for several. It belongs to the peer, and is one for all. From the first
  // call on the peer has a thread, which does the work; threads that wait for a fetch then wait for it.
  // too_much: no descriptor or thread left.
  Result<int> descriptor();

  // Delivers each next version of a name without a request for each: see Follower.
  std::unique_ptr<Follower> follow(std::string_view name, std::uint64_t newer_than = 0,
                                   std::uint64_t generation = 0, std::uint32_t ahead = 2);

  std::uint64_t generation() const;  // the hub's; 0 while not connected
  PeerStats stats() const;

 private:
  explicit Peer(std::shared_ptr<PeerCore> core);
  Result<std::uint64_t> send(std::string_view name, std::span<const TensorView> tensors, bool add,
                             std::chrono::nanoseconds timeout);
  std::shared_ptr<PeerCore> core_;
};

}  // namespace weir::tensor
