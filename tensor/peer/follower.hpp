// Delivers each next version of a name to a caller that reads them all (Peer::follow).
//
// The follower posts requests with destinations ahead of publication. The hub writes a version to the oldest
// destination as soon as it is published, even while this program is busy with the previous version, and
// next() finds it there. With `ahead` destinations a busy program can fall `ahead` - 1 versions behind
// without missing one; beyond that, versions are skipped and next() returns the newest. A follower never gets
// Errc::superseded.
//
// Version numbers only rise. When the hub goes, next() returns peer_gone once; the call after that starts
// with whatever the next hub has. One thread at a time. It may outlive the Peer, whose connection it keeps
// open.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensor/peer/fetch.hpp"

namespace weir::tensor {

class PeerCore;

class Follower {
 public:
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Returns what a fetch returns; after timed_out the destinations stay posted.
  Result<Fetched> next(std::chrono::nanoseconds timeout);

 private:
  friend class Peer;
  Follower(std::shared_ptr<PeerCore> core, std::string name, std::uint64_t newer_than,
           std::uint64_t generation, std::uint32_t ahead);
  void post_ahead();
  // The lowest version that has arrived, or else the first error; nothing if no request has finished.
  std::optional<Result<Fetched>> take();

  const std::shared_ptr<PeerCore> core_;
  const std::string name_;
  std::uint64_t newer_than_, generation_;
  const std::uint32_t ahead_;
  std::vector<std::shared_ptr<Fetch>> posted_;
};

}  // namespace weir::tensor
