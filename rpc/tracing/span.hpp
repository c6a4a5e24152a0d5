// One call as a trace shows it: its place in the trace, its times, how it ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rpc/trace_context.hpp"

namespace weir::rpc {

struct SpanAttribute {
  std::string name;
  std::string value;
};

struct Span {
  enum class Kind : std::uint8_t { server = 2, client = 3 };  // OTLP's numbers

  TraceContext at;
  std::array<std::uint8_t, 8> parent{};  // all zero: it has none
  Kind kind = Kind::server;
  std::string name;                           // "shop.add"
  std::chrono::nanoseconds begin{0}, end{0};  // since 1970, UTC
  std::vector<SpanAttribute> attributes;
  std::string error;  // empty: it ended well
};

}  // namespace weir::rpc
