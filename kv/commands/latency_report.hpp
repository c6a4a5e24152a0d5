// LATENCY GRAPH and LATENCY DOCTOR: the events as text for people.
#pragma once

#include <string>

#include "kv/counting/latency_events.hpp"
#include "kv/settings/settings.hpp"

namespace weir::kv {

// One column of characters per sample; below each, written downwards, how long ago it was.
std::string latency_graph(std::string_view kind, const LatencyEvents::Event& event, std::int64_t now_s);

std::string latency_report(const LatencyEvents& events, const Settings& settings, std::int64_t now_s);

}  // namespace weir::kv
