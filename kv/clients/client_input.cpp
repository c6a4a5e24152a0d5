#include "kv/clients/client_input.hpp"

#include <algorithm>
#include <cstring>

namespace weir::kv {

namespace {
// Requests rarely need more; larger buffers are freed as soon as their request is over.
constexpr std::size_t kept_capacity = 64u << 10;
}  // namespace

void ClientInput::begin(std::string_view fresh) {
  if (!pending_.empty()) pending_.append(fresh);
  left_ = pending_.empty() ? fresh : std::string_view(pending_);
  in_round_ = true;
  if (waits_ == Waits::for_turn) waits_ = Waits::no;
}

void ClientInput::end(Keep keep) {
  std::size_t kept = keep == Keep::nothing ? 0 : left_.size();
  if (keep == Keep::unfinished) kept = std::min(kept, parser_.kept());
  if (pending_.empty()) {
    pending_.assign(left_.substr(0, kept));
  } else {
    pending_.erase(0, pending_.size() - left_.size());
    pending_.resize(kept);
    if (pending_.capacity() > kept_capacity && pending_.size() < pending_.capacity() / 4)
      pending_.shrink_to_fit();
  }
  left_ = {};
  in_round_ = false;
}

void ClientInput::take_wanted(std::string_view& bytes) {
  for (std::span<char> place = parser_.wanted(); !place.empty() && !bytes.empty(); place = parser_.wanted()) {
    const std::size_t taken = std::min(place.size(), bytes.size());
    std::memcpy(place.data(), bytes.data(), taken);
    parser_.filled(taken);
    bytes.remove_prefix(taken);
  }
}

}  // namespace weir::kv
