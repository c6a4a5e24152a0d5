#include "rpc/link/open_frame.hpp"

#include <new>
#include <span>
#include <utility>

namespace weir::rpc {

static_assert(refer_from_bytes >= large_piece_bytes, "what is written in one piece is large");

namespace {

constexpr std::size_t keep_packed_bytes = 64 << 10;

// A frame with such a body gets a block of its own.
bool is_large(std::size_t body_bytes) { return body_bytes >= large_piece_bytes; }

// If there is no memory for the compressed body, the body is sent as it is.
bool got_smaller(Compression with, std::span<const std::byte> body, Bytes& to) {
  try {
    return compress(with, body, to);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

// Worth it only if it is sent at once. A body to be compressed must lie in one piece.
bool OpenFrame::may_refer(const BodySize& expected, bool at_once) const {
  return is_large(expected.referable) && !is_large(expected.bytes - expected.referable) &&
         pack_from_ == never && at_once;
}

std::size_t OpenFrame::begin(BodySize expected, Transport& transport, bool at_once) {
  apart_begun_ = refers_ = false;
  references_.clear();
  if (is_large(expected.bytes)) {
    const std::size_t bytes = frame_header_bytes + expected.bytes;
    Buffer block = transport.block(bytes);
    refers_ = block.empty() && may_refer(expected, at_once);
    apart_begun_ = !refers_;
    if (apart_begun_) {
      apart_ = Bytes(std::move(block));
      apart_.reserve(bytes);
    }
  }
  const std::size_t at = encoded().size();
  encoded().grow(frame_header_bytes);
  return at;
}

void OpenFrame::drop(std::size_t begin) {
  references_.clear();
  if (std::exchange(apart_begun_, false))
    apart_ = Bytes();
  else
    encoded().truncate(begin);
}

CompressionCounts OpenFrame::pack(std::size_t begin, FrameHeader& header) {
  const bool compressible =
      header.kind == FrameKind::request || header.kind == FrameKind::reply || header.kind == FrameKind::item;
  const std::size_t before = body_bytes(begin);
  if (before < pack_from_ || !compressible || refers()) return {};
  CompressionCounts counts;
  if (got_smaller(pack_with_, encoded().span().last(before), packed_)) {
    encoded().truncate(begin + frame_header_bytes);
    encoded().append(packed_.span());
    header.flags |= FrameFlag::compressed;
    counts = {1, before, packed_.size()};
  }
  packed_.clear();  // even if it did not get smaller
  packed_.shrink(keep_packed_bytes);
  return counts;
}

// A frame may turn out larger than announced or, compressed, smaller.
void OpenFrame::place(std::size_t begin, Transport& transport) {
  if (refers()) {
    for (const Reference& reference : references_) queue_.lend(reference.position, reference.bytes);
    return references_.clear();
  }
  const bool is_apart = std::exchange(apart_begun_, false);
  const std::span<const std::byte> frame = is_apart ? apart_.span() : queue_.encoded().span().subspan(begin);
  const bool belongs_apart = is_large(frame.size() - frame_header_bytes);
  if (is_apart && belongs_apart) return queue_.attach(apart_.take());
  if (is_apart) {
    queue_.encoded().append(frame);
    apart_ = Bytes();
  } else if (belongs_apart) {
    Bytes apart(transport.block(frame.size()));
    apart.append(frame);
    queue_.encoded().truncate(begin);
    queue_.attach(apart.take());
  }
}

}  // namespace weir::rpc
