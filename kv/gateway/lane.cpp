#include "kv/gateway/lane.hpp"

namespace weir::kv::cluster {

void Lane::finish(std::uint64_t number, std::string_view reply) {
  if (abandoned()) return;
  usual_bytes_ = std::max(reply.size(), usual_bytes_ - usual_bytes_ / 16);
  if (number != first_) {
    Place& place = places_[number - first_];
    place.here = true;
    if (!place.muted) place.reply = reply;
    return;
  }
  if (!places_.front().muted) leave_(reply);
  places_.pop_front();
  ++first_;
  while (!places_.empty() && places_.front().here) {
    if (!places_.front().muted) leave_(places_.front().reply);
    places_.pop_front();
    ++first_;
  }
}

}  // namespace weir::kv::cluster
