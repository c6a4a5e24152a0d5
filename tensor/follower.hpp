// Each next version of a name, for one who reads them all (Peer::follow).
//
// Destinations for the next versions of a name are at the hub before there are any: a version is written to
// the oldest as soon as it is published, also while this program is busy with the one before, and next()
// finds it there. With `ahead` of them, a busy program misses no version of the next `ahead` - 1; later ones
// are skipped, and the newest is what comes next: a follower never hears `superseded`.
//
// Versions rise. When the hub goes next() says peer_gone once, and the following one begins with what the
// next hub has. One thread at a time; it may outlive the Peer, whose connection it keeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensor/fetch.hpp"

namespace weir::tensor {

class PeerCore;

class Follower {
 public:
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // What a fetch gives; timed_out leaves the destinations where they are.
  Result<Fetched> next(std::chrono::nanoseconds timeout);

 private:
  friend class Peer;
  Follower(std::shared_ptr<PeerCore> core, std::string name, std::uint64_t newer_than,
           std::uint64_t generation, std::uint32_t ahead);
  void post_ahead();
  // The lowest version that came; nothing if none did, or the first error.
  std::optional<Result<Fetched>> take();

  const std::shared_ptr<PeerCore> core_;
  const std::string name_;
  std::uint64_t newer_than_, generation_;
  const std::uint32_t ahead_;
  std::vector<std::shared_ptr<Fetch>> posted_;
};

}  // namespace weir::tensor
