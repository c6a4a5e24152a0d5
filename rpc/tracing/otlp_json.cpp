#include "rpc/tracing/otlp_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::rpc {
namespace {

using Json = nlohmann::ordered_json;

// "00-TRACE-SPAN-FLAGS" has both ids as OTLP wants them.
std::string trace_id_text(const TraceContext& at) { return traceparent(at).substr(3, 32); }
std::string span_id_text(const TraceContext& at) { return traceparent(at).substr(36, 16); }

Json json_of(std::span<const SpanAttribute> attributes) {
  Json all = Json::array();
  for (const SpanAttribute& one : attributes)
    all.push_back({{"key", one.name}, {"value", {{"stringValue", one.value}}}});
  return all;
}

Json json_of(const Span& span) {
  Json made;
  made["traceId"] = trace_id_text(span.at);
  made["spanId"] = span_id_text(span.at);
  TraceContext parent = span.at;
  parent.span_id = span.parent;
  if (std::ranges::any_of(span.parent, [](std::uint8_t b) { return b != 0; }))
    made["parentSpanId"] = span_id_text(parent);
  made["flags"] = span.at.flags;
  made["name"] = span.name;
  made["kind"] = static_cast<int>(span.kind);
  made["startTimeUnixNano"] = std::to_string(span.begin.count());
  made["endTimeUnixNano"] = std::to_string(span.end.count());
  made["attributes"] = json_of(span.attributes);
  constexpr int error_status = 2;
  if (!span.error.empty()) made["status"] = {{"code", error_status}, {"message", span.error}};
  return made;
}

}  // namespace

std::string otlp_json(std::span<const SpanAttribute> resource, std::span<const Span> spans) {
  Json list = Json::array();
  for (const Span& one : spans) list.push_back(json_of(one));
  Json of_scope = {{"scope", {{"name", "weir.rpc"}}}, {"spans", std::move(list)}};
  Json of_resource = {{"resource", {{"attributes", json_of(resource)}}},
                      {"scopeSpans", Json::array({std::move(of_scope)})}};
  const Json all = {{"resourceSpans", Json::array({std::move(of_resource)})}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::rpc
