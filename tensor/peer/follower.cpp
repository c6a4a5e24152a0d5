#include "tensor/peer/follower.hpp"

#include <algorithm>
#include <utility>

#include "tensor/peer/peer_core.hpp"

namespace weir::tensor {

Follower::Follower(std::shared_ptr<PeerCore> core, std::string name, std::uint64_t newer_than,
                   std::uint64_t generation, std::uint32_t ahead)
    : core_(std::move(core)),
      name_(std::move(name)),
      newer_than_(newer_than),
      generation_(generation),
      ahead_(ahead) {}

Follower::~Follower() {
  for (std::shared_ptr<Fetch>& each : posted_)
    if (!each->done) core_->drop(std::move(each));
}

// Before the first version only one request is posted: without the metadata a request has no destination, so
// each one would cost a second round trip.
void Follower::post_ahead() {
  const std::size_t wanted = generation_ != 0 ? ahead_ : 1;
  while (posted_.size() < wanted) {
    auto fetch = std::make_shared<Fetch>();
    fetch->name = name_;
    fetch->newer_than = newer_than_;
    fetch->generation = generation_;
    fetch->wait = fetch->follow = true;
    core_->start(fetch);
    posted_.push_back(std::move(fetch));
  }
}

std::optional<Result<Fetched>> Follower::take() {
  // A newer version exists, which is all a follower cares about: drop the failed request and post another.
  std::erase_if(posted_, [](const auto& each) {
    return each->done.load(std::memory_order_acquire) && each->failed &&
           each->failed->code == Errc::superseded;
  });
  std::optional<Error> failed;
  auto lowest = posted_.end();
  for (auto each = posted_.begin(); each != posted_.end(); ++each) {
    Fetch& fetch = **each;
    if (!fetch.done.load(std::memory_order_acquire)) continue;
    if (fetch.failed)
      failed = fetch.failed;
    else if (lowest == posted_.end() || fetch.fetched.version < (*lowest)->fetched.version)
      lowest = each;
  }
  if (lowest != posted_.end()) {
    Fetched fetched = std::move((*lowest)->fetched);
    posted_.erase(lowest);
    // A hub with another generation numbers its versions anew, so whatever it has counts as new.
    if (fetched.generation == generation_ && fetched.version <= newer_than_) return take();
    newer_than_ = fetched.version;
    generation_ = fetched.generation;
    return fetched;
  }
  if (!failed) return std::nullopt;
  // When a hub goes, all requests fail together; report that once.
  std::erase_if(posted_, [](const auto& each) { return each->done && each->failed.has_value(); });
  return std::unexpected(*failed);
}

Result<Fetched> Follower::next(std::chrono::nanoseconds timeout) {
  if (name_.empty() || name_.size() > most_name_bytes)
    return fail(Errc::bad_array, "a name has 1 to 1024 bytes");
  const auto deadline = CallerDriven::after(timeout);
  while (true) {
    post_ahead();
    // Check once more after the deadline: a version that has already arrived is still returned.
    const bool some = core_->wait_any(posted_, deadline);
    if (std::optional<Result<Fetched>> taken = take()) return std::move(*taken);
    if (!some) return fail(Errc::timed_out, "'" + name_ + "' has no newer version yet");
  }
}

}  // namespace weir::tensor
