#include "rpc/json/stats_json.hpp"

#include "rpc/json/json_values.hpp"

namespace weir::rpc::json {

namespace {

Json json_of(const CompressionCounts& counts) {
  return {
      {"bodies", counts.bodies}, {"bytes_before", counts.bytes_before}, {"bytes_after", counts.bytes_after}};
}

Json json_of(const MethodReport& one) {
  return {{"name", one.name},
          {"calls", one.calls},
          {"failures", one.failures},
          {"in_flight", one.in_flight},
          {"bytes_in", one.bytes_in},
          {"bytes_out", one.bytes_out},
          {"total_ns", one.total_ns},
          {"p50_us", quantile_us(one, 0.5)},
          {"p99_us", quantile_us(one, 0.99)},
          {"latency", one.latency},
          {"packed_in", json_of(one.packed_in)},
          {"packed_out", json_of(one.packed_out)}};
}

}  // namespace

std::string stats_as_json(const std::vector<MethodReport>& reports, Layout layout) {
  Json all = Json::array();
  for (const MethodReport& one : reports) all.push_back(json_of(one));
  return all.dump(layout == Layout::one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weir::rpc::json
