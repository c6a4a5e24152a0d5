#include "rpc/trace_context.hpp"

#include <algorithm>
#include <cstring>

namespace weir::rpc {

namespace {

constexpr std::string_view digits = "0123456789abcdef";  // lower case only (3.2.2)

void append_hex(std::string& text, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t b : bytes) {
    text += digits[b >> 4];
    text += digits[b & 15];
  }
}

bool read_hex(std::string_view text, std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t high = digits.find(text[2 * i]), low = digits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

bool all_zero(std::span<const std::uint8_t> bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t b) { return b == 0; });
}

constexpr std::size_t text_length = 55;

}  // namespace

std::string traceparent(const TraceContext& trace) {
  std::string text = "00-";
  text.reserve(text_length);
  append_hex(text, trace.trace_id);
  text += '-';
  append_hex(text, trace.span_id);
  text += '-';
  append_hex(text, {&trace.flags, 1});
  return text;
}

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  std::array<std::uint8_t, 1> version{};
  TraceContext trace;
  if (text.size() < text_length || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  if (!read_hex(text, version) || version[0] == 0xff) return std::nullopt;
  const bool longer = text.size() > text_length;
  if (longer && (version[0] == 0 || text[text_length] != '-')) return std::nullopt;
  if (!read_hex(text.substr(3), trace.trace_id) || !read_hex(text.substr(36), trace.span_id) ||
      !read_hex(text.substr(53), {&trace.flags, 1}))
    return std::nullopt;
  if (all_zero(trace.trace_id) || all_zero(trace.span_id)) return std::nullopt;
  return trace;
}

void encode(const TraceContext& trace, std::byte* to) {
  std::memcpy(to, trace.trace_id.data(), trace.trace_id.size());
  std::memcpy(to + 16, trace.span_id.data(), trace.span_id.size());
  to[24] = std::byte{trace.flags};
}

TraceContext decode_trace(std::span<const std::byte, trace_context_bytes> bytes) {
  TraceContext trace;
  std::memcpy(trace.trace_id.data(), bytes.data(), trace.trace_id.size());
  std::memcpy(trace.span_id.data(), bytes.data() + 16, trace.span_id.size());
  trace.flags = std::to_integer<std::uint8_t>(bytes[24]);
  return trace;
}

}  // namespace weir::rpc
