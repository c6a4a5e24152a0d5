// Spans as the JSON of OTLP (https://opentelemetry.io/docs/specs/otlp/, "JSON Protobuf Encoding"): ids in
// hexadecimal, 64-bit numbers as strings. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/tracing/span.hpp"

namespace weir::rpc {

// The body of a POST to /v1/traces. `resource` says what program the spans are of ("service.name").
std::string otlp_json(std::span<const SpanAttribute> resource, std::span<const Span> spans);

}  // namespace weir::rpc
