#include "rpc/link/out_queue.hpp"

#include <algorithm>
#include <utility>

#include "rpc/transport/transport.hpp"

namespace weir::rpc {

void OutQueue::attach(Buffer attachment, std::uint64_t owner) {
  if (attachment.empty()) return;
  attached_bytes_ += attachment.size();
  attachments_.push_back({encoded_.size(), std::move(attachment), owner});
}

void OutQueue::lend(std::size_t position, std::span<const std::byte> bytes) {
  attached_bytes_ += bytes.size();
  attachments_.push_back({position, Buffer::borrowed(bytes), 0, true});
}

void OutQueue::own(std::uint64_t owner) {
  for (Attachment& attachment : attachments_)
    if (attachment.owner == owner) own(attachment);
}

void OutQueue::own_lent() {
  for (Attachment& attachment : attachments_)
    if (std::exchange(attachment.lent, false)) own(attachment);
}

void OutQueue::own(Attachment& attachment) {
  const std::size_t sent = &attachment == &attachments_.front() ? std::exchange(attachment_sent_, 0) : 0;
  Bytes unsent;
  unsent.append(std::as_const(attachment.buffer).span().subspan(sent));
  attachment.buffer = unsent.take();
}

std::size_t OutQueue::gather(std::span<asio::const_buffer> pieces) const {
  constexpr std::size_t longest = large_piece_bytes / 2;
  std::size_t count = 0, at = sent_, skip = attachment_sent_;
  const auto add_encoded = [&](std::size_t until) {
    while (at < until && count < pieces.size()) {
      const std::size_t part = std::min(until - at, longest);
      pieces[count++] = {encoded_.data() + at, part};
      at += part;
    }
  };
  for (const Attachment& attachment : attachments_) {
    add_encoded(attachment.position);
    if (count == pieces.size()) return count;
    pieces[count++] = {attachment.buffer.data() + skip, attachment.buffer.size() - skip};
    skip = 0;
  }
  add_encoded(encoded_.size());
  return count;
}

void OutQueue::consume(std::size_t bytes) {
  while (bytes > 0) {
    const std::size_t until = attachments_.empty() ? encoded_.size() : attachments_.front().position;
    const std::size_t plain = std::min(bytes, until - sent_);
    sent_ += plain;
    bytes -= plain;
    if (bytes == 0 || attachments_.empty()) break;
    const std::size_t part = std::min(bytes, attachments_.front().buffer.size() - attachment_sent_);
    attachment_sent_ += part;
    attached_bytes_ -= part;
    bytes -= part;
    if (attachment_sent_ < attachments_.front().buffer.size()) break;
    attachments_.pop_front();
    attachment_sent_ = 0;
  }
  if (empty()) {
    clear();
  } else if (sent_ >= keep_capacity && sent_ >= encoded_.size() / 2) {
    encoded_.erase_front(sent_);
    for (Attachment& attachment : attachments_) attachment.position -= sent_;
    sent_ = 0;
  }
}

void OutQueue::clear() {
  attachments_.clear();
  attached_bytes_ = attachment_sent_ = sent_ = 0;
  encoded_.clear();
  encoded_.shrink(keep_capacity);
}

}  // namespace weir::rpc
