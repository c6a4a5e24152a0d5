#include "tensor/link/outbox.hpp"

#include <algorithm>
#include <utility>

namespace weir::tensor {

Outgoing::Outgoing(Transfer transfer)
    : transfer_(std::move(transfer)),
      pieces_(transfer_.source->pieces().size()),
      bytes_(transfer_.source->bytes()) {
  if (transfer_.extents.empty()) return;
  const std::span<const Source::Piece> pieces = transfer_.source->pieces();
  bytes_ = 0;
  for_each_part(transfer_.source->sizes(), transfer_.extents,
                [&](std::size_t piece, std::uint64_t offset, std::uint64_t bytes) {
                  cut_.push_back({pieces[piece].subspan(static_cast<std::size_t>(offset),
                                                        static_cast<std::size_t>(bytes)),
                                  piece});
                  bytes_ += bytes;
                });
  pieces_ = cut_.size();
}

Outgoing::Part Outgoing::piece(std::size_t which) const {
  return cut_.empty() ? Part{transfer_.source->pieces()[which], which} : cut_[which];
}

std::span<Outgoing::Part> Outgoing::take(std::span<Part> room, std::size_t most_bytes) {
  std::size_t used = 0, bytes = 0;
  while (used < room.size() && bytes < most_bytes && piece_ < pieces_) {
    const Part whole = piece(piece_);
    const Source::Piece rest = whole.bytes.subspan(in_piece_);
    const std::size_t share = std::min(rest.size(), most_bytes - bytes);
    room[used++] = {rest.first(share), whole.piece};
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
