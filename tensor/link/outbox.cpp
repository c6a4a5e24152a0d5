#include "tensor/link/outbox.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {

std::span<Outgoing::Part> Outgoing::take(std::span<Part> room, std::size_t most_bytes) {
  const std::span<const Source::Piece> pieces = transfer_.source->pieces();
  std::size_t used = 0, bytes = 0;
  while (used < room.size() && bytes < most_bytes && piece_ < pieces.size()) {
    const Source::Piece rest = pieces[piece_].subspan(in_piece_);
    const std::size_t share = std::min(rest.size(), most_bytes - bytes);
    room[used++] = {rest.first(share), piece_};
    bytes += share;
    in_piece_ += share;
    if (share < rest.size()) break;
    ++piece_;
    in_piece_ = 0;
  }
  sent_ += bytes;
  return room.first(used);
}

std::string_view Outbox::put(const wire::Message& message) {
  if (messages_ >= most_messages) return "the peer lets more than 1024 answers wait";
  ++messages_;
  std::vector<std::byte> bytes = wire::encode(message);
  if (!frames_.empty() && frames_.back().bytes.size() + bytes.size() <= wire::message_bytes) {
    Frame& last = frames_.back();
    last.bytes.insert(last.bytes.end(), bytes.begin(), bytes.end());
    ++last.messages;
  } else {
    frames_.push_back({std::move(bytes)});
  }
  return {};
}

void Outbox::frame_is_out() {
  messages_ -= frames_.front().messages;
  frames_.pop_front();
}

std::string_view Outbox::put(Transfer transfer) {
  if (transfers_.size() >= most_transfers) return "the peer asks for more transfers than it has slots";
  transfers_.emplace_back(std::move(transfer));
  return {};
}

void Outbox::clear() {
  frames_.clear();
  messages_ = 0;
  transfers_.clear();
}

}  // namespace weir::tensor
