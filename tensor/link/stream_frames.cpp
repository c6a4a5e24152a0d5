#include "tensor/link/stream_frames.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tensor/arrays/little_endian.hpp"

namespace weir::tensor {
namespace frames {

std::array<std::byte, header_bytes> encode(const Header& header) {
  Writer out;
  out.number(static_cast<std::uint32_t>(header.kind)).number(header.index).number(header.bytes);
  const std::vector<std::byte> bytes = out.take();
  std::array<std::byte, header_bytes> array;
  std::ranges::copy(bytes, array.begin());
  return array;
}

Result<Header> parse_header(std::span<const std::byte, header_bytes> bytes) {
  Reader in(bytes);
  const auto kind = in.number<std::uint32_t>();
  Header header{static_cast<Kind>(kind), in.number<std::uint32_t>(), in.number<std::uint64_t>()};
  switch (header.kind) {
    case Kind::message:
      if (header.bytes > wire::message_bytes || header.index != 0)
        return fail(Errc::protocol, "a frame with a message of more than 4096 bytes");
      return header;
    case Kind::data:
      if (header.bytes > most_data_bytes) return fail(Errc::protocol, "a frame of more than 16 MiB");
      return header;
    case Kind::record:
      if (header.bytes != wire::record_bytes || header.index != 0)
        return fail(Errc::protocol, "a frame with a record of another length");
      return header;
  }
  return fail(Errc::protocol, "a frame of an unknown kind");
}

}  // namespace frames

namespace {
// Holds the longest frame that is not data, and what arrived behind it. A peer that says little gets the
// small one.
constexpr std::size_t first_buffer_bytes = std::size_t{5} << 10, buffer_bytes = std::size_t{64} << 10;
static_assert(first_buffer_bytes > frames::header_bytes + wire::message_bytes);
// Shorter data are copied out of the buffer instead of being received in place.
constexpr std::size_t least_direct_bytes = 8192;
}  // namespace

FrameReader::FrameReader(Sink& sink) : sink_(sink), buffer_(first_buffer_bytes) {}

bool FrameReader::broke(std::string why) {
  over_ = true;
  fault_ = std::move(why);
  return false;
}

std::span<std::byte> FrameReader::room() {
  if (over_) return {};
  direct_ = begin_ == end_ && data_.bytes >= least_direct_bytes;
  if (direct_) {
    const std::span<std::byte> room = sink_.room_for(data_.index, data_.bytes);
    over_ = room.empty();
    return room;
  }
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= std::exchange(begin_, 0);
  if (was_full_) buffer_.resize(buffer_bytes);
  return std::span(buffer_).subspan(end_);
}

bool FrameReader::came(std::size_t bytes) {
  if (over_) return false;
  if (!direct_) {
    end_ += bytes;
    was_full_ = was_full_ || end_ == buffer_.size();
    return take_frames();
  }
  data_.bytes -= bytes;
  sink_.filled(data_.index, bytes);
  return true;
}

bool FrameReader::take_frames() {
  while (true) {
    if (data_.bytes > 0 && begin_ < end_ && !place()) return false;
    const std::span<const std::byte> there = std::span(buffer_).subspan(begin_, end_ - begin_);
    if (data_.bytes > 0) return true;
    if (!greeted_) {
      if (there.size() < wire::greeting_bytes) return true;
      greeted_ = true;
      begin_ += wire::greeting_bytes;
      if (!sink_.on_greeting(there.first(wire::greeting_bytes))) return broke({});
      continue;
    }
    if (there.size() < frames::header_bytes) return true;
    const Result<frames::Header> header = frames::parse_header(there.first<frames::header_bytes>());
    if (!header) return broke(header.error().what);
    if (header->kind == frames::Kind::data) {
      begin_ += frames::header_bytes;
      data_ = *header;
      continue;
    }
    const auto bytes = static_cast<std::size_t>(header->bytes);
    if (there.size() < frames::header_bytes + bytes) return true;
    begin_ += frames::header_bytes + bytes;
    if (!take_whole(*header, there.subspan(frames::header_bytes, bytes))) return broke({});
  }
}

bool FrameReader::take_whole(const frames::Header& header, std::span<const std::byte> payload) {
  if (header.kind == frames::Kind::message) return sink_.on_message(payload);
  return sink_.on_record(wire::parse_record(payload.first<wire::record_bytes>()));
}

// Moves buffered data to their destination.
bool FrameReader::place() {
  const std::size_t there = std::min<std::uint64_t>(data_.bytes, end_ - begin_);
  const std::span<std::byte> room = sink_.room_for(data_.index, there);
  if (room.empty()) return broke({});
  const std::size_t bytes = std::min(there, room.size());
  std::memcpy(room.data(), buffer_.data() + begin_, bytes);
  begin_ += bytes;
  data_.bytes -= bytes;
  sink_.filled(data_.index, bytes);
  return true;
}

}  // namespace weir::tensor
