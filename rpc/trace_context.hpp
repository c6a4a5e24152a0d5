// The W3C trace context (https://www.w3.org/TR/trace-context/) of a call: which trace it is part of, and
// which span caused it. It travels before the body of a request whose flags say `traced`. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::rpc {

struct TraceContext {
  std::array<std::uint8_t, 16> trace_id{};
  std::array<std::uint8_t, 8> span_id{};  // the caller's; what the callee calls parent
  std::uint8_t flags = 0;                 // bit 0: sampled

  bool sampled() const { return (flags & 1) != 0; }
  bool operator==(const TraceContext&) const = default;
};

// "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
std::string traceparent(const TraceContext& trace);
// Returns nullopt for text that is no trace context, or whose ids are all zeros. A later version is read as
// this one, as the specification asks (4.3).
std::optional<TraceContext> parse_traceparent(std::string_view text);

// On the wire: the two ids and the flags.
constexpr std::size_t trace_context_bytes = 25;
void encode(const TraceContext& trace, std::byte* to);
TraceContext decode_trace(std::span<const std::byte, trace_context_bytes> bytes);

}  // namespace weir::rpc
