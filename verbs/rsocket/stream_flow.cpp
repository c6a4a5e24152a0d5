#include "verbs/rsocket/stream_flow.hpp"

#include <algorithm>
#include <cassert>

namespace weir::rsocket {

StreamFlow::StreamFlow(std::uint32_t ring_bytes, std::uint16_t credits)
    : ring_bytes_(ring_bytes), credits_(credits), messages_(credits) {
  // The first half is given by the greeting.
  given_ = half();
  free_ = half();
  give_offset_ = half();
}

void StreamFlow::begin(const Greeting& peers) {
  target_ = peers.first_buffer;
  may_send_ = peers_credits_ = peers.credits;
  peers_entries_ = peers.buffer_list.length;
  peers_entry_ = 1 % peers_entries_;
}

std::uint32_t StreamFlow::sendable() const {
  return has_credit() ? std::min(target_.length, max_immediate_value) : 0;
}

StreamFlow::Place StreamFlow::take(std::uint32_t bytes) {
  assert(bytes > 0 && bytes <= sendable());
  const Place place{target_.address, target_.key};
  target_.address += bytes;
  target_.length -= bytes;
  ++sent_;
  return place;
}

void StreamFlow::give_buffer(const RemoteBuffer& buffer) {
  assert(wants_buffer() && buffer.length > 0);
  target_ = buffer;
  next_entry_ = (next_entry_ + 1) % buffer_list_entries;
}

StreamFlow::Arrival StreamFlow::arrived(const Immediate& immediate) {
  switch (immediate.op) {
    case Op::data:
      return data_arrived(immediate.value);
    case Op::credit: {
      const auto may_send = static_cast<std::uint16_t>(immediate.value);
      if (static_cast<std::uint16_t>(may_send - sent_) > peers_credits_) return Arrival::violation;
      may_send_ = may_send;
      return Arrival::credit;
    }
    case Op::iomap:
      ++read_messages_;  // it took a credit, and there is nothing to read
      return Arrival::iomap;
    case Op::control:
      switch (static_cast<Control>(immediate.value)) {
        case Control::disconnect:
          return Arrival::disconnect;
        case Control::keepalive:
          return Arrival::keepalive;
        case Control::shutdown:
          return Arrival::shutdown;
      }
      return Arrival::violation;
  }
  return Arrival::violation;
}

StreamFlow::Arrival StreamFlow::data_arrived(std::uint32_t bytes) {
  const std::uint32_t write_offset = (read_offset_ + unread_) % ring_bytes_;
  const std::uint32_t to_end_of_half = half() - write_offset % half();
  if (bytes == 0 || bytes > given_ || bytes > to_end_of_half) return Arrival::violation;
  if (message_count_ == messages_.size()) return Arrival::violation;
  messages_[(first_message_ + message_count_) % messages_.size()] = bytes;
  ++message_count_;
  given_ -= bytes;
  unread_ += bytes;
  return Arrival::data;
}

StreamFlow::Piece StreamFlow::piece(std::uint32_t skip) const {
  assert(skip < unread_);
  const std::uint32_t offset = (read_offset_ + skip) % ring_bytes_;
  return {offset, std::min(unread_ - skip, ring_bytes_ - offset)};
}

void StreamFlow::consume(std::uint32_t bytes) {
  assert(bytes <= unread_);
  unread_ -= bytes;
  free_ += bytes;
  read_offset_ = (read_offset_ + bytes) % ring_bytes_;
  while (bytes > 0) {
    std::uint32_t& message = messages_[first_message_];
    const std::uint32_t part = std::min(bytes, message);
    message -= part;
    bytes -= part;
    if (message > 0) break;
    first_message_ = (first_message_ + 1) % messages_.size();
    --message_count_;
    ++read_messages_;
  }
}

std::optional<StreamFlow::Grant> StreamFlow::grant() {
  const bool half_free = free_ >= half();
  const bool credits_low = static_cast<std::uint16_t>(read_messages_ - granted_at_) >= (credits_ + 1) / 2;
  if (!half_free && !credits_low) return std::nullopt;
  Grant grant{static_cast<std::uint16_t>(read_messages_ + credits_), std::nullopt};
  granted_at_ = read_messages_;
  if (half_free) {
    grant.buffer = Grant::Buffer{peers_entry_, give_offset_, half()};
    peers_entry_ = (peers_entry_ + 1) % peers_entries_;
    give_offset_ = (give_offset_ + half()) % ring_bytes_;
    free_ -= half();
    given_ += half();
  }
  return grant;
}

}  // namespace weir::rsocket
