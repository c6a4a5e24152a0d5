#include "rpc/wire/frame.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace weir::rpc {

namespace {
static_assert(std::endian::native == std::endian::little, "the fields below are copied as they lie");

constexpr std::byte magic[2] = {std::byte{'W'}, std::byte{'r'}};

template <class Integer>
void put(std::byte* to, Integer value) {
  std::memcpy(to, &value, sizeof value);
}
template <class Integer>
Integer get(const std::byte* from) {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// How other protocols begin: connecting to the address of another service
// is a common mistake.
constexpr std::pair<std::string_view, std::string_view> strangers[] = {
    {"\x15\x03", "it speaks TLS: tls:// addresses do"},
    {"\x16\x03", "it speaks TLS: tls:// addresses do"},
    {"HTTP/", "it is an HTTP server"},
    {"GET ", "it is an HTTP client"},
    {"POST ", "it is an HTTP client"},
    {"PRI * HTTP/2", "it is an HTTP/2 client"},
    {"SSH-", "it speaks SSH"},
    {"-ERR ", "it is a Valkey or Redis server"},
    {"-DENIED ", "it is a Valkey or Redis server"},
    {"-NOAUTH ", "it is a Valkey or Redis server"},
    {"220", "it is a mail or FTP server"}};

// Checks as many bytes as there are. A stranger's message may be shorter than any frame and
// the last that it sends.
Result<void> begins_as_a_frame(std::span<const std::byte> bytes) {
  const std::size_t known = std::min(bytes.size(), std::size(magic));
  if (std::equal(magic, magic + known, bytes.begin())) return {};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto* who = std::ranges::find_if(
      strangers, [text](const auto& stranger) { return text.starts_with(stranger.first); });
  return fail(Errc::protocol,
              "the peer does not speak Weir's RPC: " +
                  (who != std::end(strangers) ? std::string(who->second) : "wrong first bytes of a frame"));
}
}  // namespace

void encode(const FrameHeader& header, std::byte* to) {
  to[0] = magic[0];
  to[1] = magic[1];
  to[2] = std::byte{frame_version};
  to[3] = static_cast<std::byte>(header.kind);
  put(to + 4, header.flags);
  put(to + 6, header.status);
  put(to + 8, header.id);
  put(to + 16, header.method);
  put(to + 24, header.timeout_us | header.credit | header.compressions);  // a frame has only one of them
  put(to + 28, header.body_bytes);
  put(to + 32, header.attachment_bytes);
  put(to + 36, std::uint32_t{header.codec});
}

Result<FrameHeader> parse_header(std::span<const std::byte, frame_header_bytes> bytes) {
  const std::byte* at = bytes.data();
  if (Result<void> ours = begins_as_a_frame(bytes); !ours) return std::unexpected(std::move(ours.error()));
  if (at[2] != std::byte{frame_version})
    return fail(Errc::version_mismatch, "the peer speaks version " +
                                            std::to_string(std::to_integer<int>(at[2])) +
                                            " of the frame, this end " + std::to_string(frame_version) +
                                            ": bring both to the same release");
  FrameHeader header;
  const auto kind = std::to_integer<std::uint8_t>(at[3]);
  header.kind = static_cast<FrameKind>(kind);
  header.flags = get<std::uint16_t>(at + 4);
  header.status = get<std::uint16_t>(at + 6);
  header.id = get<std::uint64_t>(at + 8);
  header.method = get<std::uint64_t>(at + 16);
  (header.kind == FrameKind::credit     ? header.credit
   : header.kind == FrameKind::settings ? header.compressions
                                        : header.timeout_us) = get<std::uint32_t>(at + 24);
  header.body_bytes = get<std::uint32_t>(at + 28);
  header.attachment_bytes = get<std::uint32_t>(at + 32);
  const auto last = get<std::uint32_t>(at + 36);
  header.codec = static_cast<std::uint8_t>(last);
  if (kind < static_cast<std::uint8_t>(FrameKind::request) ||
      kind > static_cast<std::uint8_t>(FrameKind::settings))
    return fail(Errc::protocol, "a frame of unknown kind " + std::to_string(kind));
  if ((header.flags & ~known_flags) != 0 || last > UINT8_MAX)
    return fail(Errc::protocol, "a frame with flags or fields that this version does not know");
  const bool request = header.kind == FrameKind::request;
  if (header.codec != 0 && !request && header.kind != FrameKind::reply)
    return fail(Errc::protocol, "a codec in a frame that is neither request nor reply");
  const bool compressible = request || header.kind == FrameKind::reply || header.kind == FrameKind::item;
  if ((header.flags & FrameFlag::compressed) != 0 && !compressible)
    return fail(Errc::protocol, "a compressed frame of a kind that is never compressed");
  std::uint16_t may_have = FrameFlag::compressed;
  if (header.kind == FrameKind::reply) may_have |= FrameFlag::metadata | FrameFlag::detailed;
  if (!request && (header.method != 0 || header.timeout_us != 0 || (header.flags & ~may_have) != 0))
    return fail(Errc::protocol, "a frame that is no request, with fields of one");
  if (header.kind != FrameKind::reply && header.status != 0)
    return fail(Errc::protocol, "a frame that is no reply, with a status");
  if ((header.flags & FrameFlag::detailed) != 0 && header.status == 0)
    return fail(Errc::protocol, "details of a failure in a frame that tells of none");
  const bool with_body = request || header.kind == FrameKind::reply || header.kind == FrameKind::item ||
                         header.kind == FrameKind::credentials;
  if (with_body && !request && header.kind != FrameKind::reply && header.attachment_bytes != 0)
    return fail(Errc::protocol, "an item of a stream or credentials with an attachment");
  if (!with_body && (header.body_bytes != 0 || header.attachment_bytes != 0))
    return fail(Errc::protocol, "a frame with a body where there is none");
  return header;
}

Result<void> FrameReader::start_header(std::span<const std::byte> bytes, FrameSink& sink) {
  Result<FrameHeader> header = parse_header(bytes.first<frame_header_bytes>());
  if (!header) return std::unexpected(std::move(header.error()));
  if (!limits_.hold(*header) && !(sink.lift_limits(*header) && limits_.hold(*header))) {
    oversize_ = header->id;
    return fail(Errc::too_large, "the peer sends a frame of " + std::to_string(header->body_bytes) + " + " +
                                     std::to_string(header->attachment_bytes) +
                                     " bytes, beyond this end's limits of " +
                                     std::to_string(limits_.body_of(*header)) + " + " +
                                     std::to_string(limits_.attachment_bytes));
  }
  header_ = *header;
  have_header_ = true;
  return {};
}

// A frame begins at the front of `bytes`; returns how many bytes were taken.
Result<std::size_t> FrameReader::start(std::span<const std::byte> bytes, FrameSink& sink) {
  if (bytes.size() >= frame_header_bytes) {
    if (Result<void> begun = start_header(bytes, sink); !begun)
      return std::unexpected(std::move(begun.error()));
    if (bytes.size() >= frame_bytes() && header_.attachment_bytes == 0) {
      const std::size_t taken = frame_bytes();
      Frame frame{header_, bytes.subspan(frame_header_bytes, header_.body_bytes), {}};
      have_header_ = false;
      stopped_ = !sink.on_frame(frame);
      return taken;
    }
    partial_.reserve(frame_bytes());
  } else if (Result<void> ours = begins_as_a_frame(bytes); !ours) {
    return std::unexpected(std::move(ours.error()));
  }
  const std::size_t taken = have_header_ ? std::min(bytes.size(), frame_bytes()) : bytes.size();
  partial_.append(bytes.first(taken));
  if (have_header_ && partial_.size() == frame_bytes()) begin_attachment(sink);
  return taken;
}

void FrameReader::begin_attachment(FrameSink& sink) {
  if (header_.attachment_bytes == 0) return finish_frame(sink);
  attachment_filled_ = 0;
  filling_ = true;
}

std::span<std::byte> FrameReader::attachment_room(FrameSink& sink) {
  if (attachment_.empty()) attachment_ = sink.attachment_for(header_);
  return attachment_.span().subspan(attachment_filled_);
}

void FrameReader::finish_frame(FrameSink& sink) {
  Frame frame{header_, partial_.span().subspan(frame_header_bytes), std::move(attachment_)};
  have_header_ = false;
  filling_ = false;
  stopped_ = !sink.on_frame(frame);
  partial_.clear();
  partial_.shrink(keep_capacity);
}

// partial_ has grown: it may now hold the header or the whole body.
Result<void> FrameReader::partial_grown(FrameSink& sink) {
  if (!have_header_ && partial_.size() < frame_header_bytes) return begins_as_a_frame(partial_.span());
  if (!have_header_) {
    if (Result<void> begun = start_header(partial_.span(), sink); !begun) return begun;
    partial_.reserve(frame_bytes());
  }
  if (have_header_ && partial_.size() == frame_bytes()) begin_attachment(sink);
  return {};
}

Result<void> FrameReader::feed(std::span<const std::byte> bytes, FrameSink& sink) {
  while (!bytes.empty() && !stopped_) {
    std::size_t taken = 0;
    if (filling_) {
      const std::span<std::byte> room = attachment_room(sink);
      taken = std::min(bytes.size(), room.size());
      std::memcpy(room.data(), bytes.data(), taken);
      attachment_filled_ += taken;
      if (attachment_filled_ == attachment_.size()) finish_frame(sink);
    } else if (partial_.empty()) {
      Result<std::size_t> started = start(bytes, sink);
      if (!started) return std::unexpected(std::move(started.error()));
      taken = *started;
    } else {
      const std::size_t whole = have_header_ ? frame_bytes() : frame_header_bytes;
      taken = std::min(bytes.size(), whole - partial_.size());
      partial_.append(bytes.first(taken));
      if (Result<void> grown = partial_grown(sink); !grown) return grown;
    }
    bytes = bytes.subspan(taken);
  }
  return {};
}

std::span<std::byte> FrameReader::wanted(FrameSink& sink) {
  if (filling_) return attachment_room(sink);
  if (!have_header_ || frame_bytes() - partial_.size() < worth_reading_direct) return {};
  return {partial_.data() + partial_.size(), frame_bytes() - partial_.size()};
}

void FrameReader::divert_attachment() {
  if (!attachment_.empty()) attachment_ = Buffer(attachment_.size());
}

bool FrameReader::keep(Buffer& bytes, FrameSink& sink) {
  if (!filling_ || stopped_ || !attachment_.empty() || bytes.size() != header_.attachment_bytes ||
      sink.wants_attachment_elsewhere(header_))
    return false;
  attachment_ = std::move(bytes);
  finish_frame(sink);
  return true;
}

Result<void> FrameReader::filled(std::size_t bytes, FrameSink& sink) {
  if (stopped_) return {};
  if (filling_) {
    attachment_filled_ += bytes;
    if (attachment_filled_ == attachment_.size()) finish_frame(sink);
    return {};
  }
  partial_.grow(bytes);
  return partial_grown(sink);
}

}  // namespace weir::rpc
