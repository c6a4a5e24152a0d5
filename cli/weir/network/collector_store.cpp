#include "cli/weir/network/collector_store.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "metrics/prometheus.hpp"

namespace weir::command {
namespace {

using Json = nlohmann::ordered_json;

// Limits a sender's name, and a series' metric plus labels. A gNMI path is some hundred bytes.
constexpr std::size_t longest_name = 4096;

constexpr std::string_view own_prefix = "weir_collector_";

// Metric names may contain letters, digits, _ and :, and must not begin with a digit.
std::string metric_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    if (digit && name.empty()) name += '_';
    name += letter || digit ? c : '_';
  }
  if (name.starts_with(own_prefix)) name.insert(0, "_");  // a metric may appear only once in a page
  return name.empty() ? "_" : name;
}

// Reads a number, or a text that is one: SONiC sends all numbers as text.
std::optional<double> number_in(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool is_gauge(std::string_view metric) {
  return metric.ends_with("WATERMARK_BYTES") || metric.ends_with("OCCUPANCY_BYTES");
}

// nlohmann's dump() recurses once for each level, and a peer may send millions of levels.
constexpr int deepest = 64;
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '[' || text[i] == '{') && ++depth > deepest)
      return true;
    else if (!quoted && (text[i] == ']' || text[i] == '}'))
      --depth;
  }
  return false;
}

Json parsed(const char* text) {
  return too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

}  // namespace

// A path and its value become series:
//   COUNTERS/Ethernet0             {"SAI_...": "1"}
//   COUNTERS/Ethernet0/Queues      {"Ethernet0:3": {"SAI_...": "1"}}
//   COUNTERS/Ethernet*/SAI_...     {"Ethernet0": {"SAI_...": "1"}}
//   COUNTERS/Ethernet0/SAI_...     the number alone
class CollectorStore::Walk {
 public:
  Walk(CollectorStore& store, std::string_view device) : store_(store), device_(device) {}

  void value(std::string_view path, const Json& json) {
    if (path.starts_with("COUNTERS/")) path.remove_prefix(9);
    const auto slash = path.find('/');
    const std::string_view last = path.substr(path.rfind('/') + 1);
    if (json.is_object())
      object(path.substr(0, slash), json, 0);
    else
      counter(path.substr(0, slash), last, json);
  }

 private:
  void object(std::string_view name, const Json& json, int depth) {
    for (const auto& [key, inner] : json.items()) {
      if (!inner.is_object())
        counter(name, key, inner);
      else if (depth < 4)
        object(key, inner, depth + 1);
      else
        ++store_.not_understood_;
    }
  }

  // `name`: "Ethernet0", or "Ethernet0:3" for a queue or a priority group.
  void counter(std::string_view name, std::string_view counter, const Json& json) {
    const auto number = number_in(json);
    if (!number) {
      ++store_.not_understood_;
      return;
    }
    metrics::Labels labels("device", device_);
    const auto colon = name.rfind(':');
    labels.add("port", name.substr(0, colon));
    if (colon != std::string_view::npos) {
      const bool group = counter.find("PRIORITY_GROUP") != std::string_view::npos;
      labels.add(group ? "priority_group" : "queue", name.substr(colon + 1));
    }
    store_.keep_value(metric_name(counter), labels.text(), *number);
  }

  CollectorStore& store_;
  std::string_view device_;
};

bool CollectorStore::is_new(const TelemetryNotification& notification) {
  const std::lock_guard lock(mutex_);
  const std::string_view sender = std::string_view(notification.sender).substr(0, longest_name);
  if (sender.empty()) return true;
  const auto found = last_of_.find(sender);
  if (found == last_of_.end()) return true;
  if (notification.timestamp > found->second) return true;
  ++repeated_;
  return false;
}

void CollectorStore::keep(const TelemetryNotification& notification) {
  const std::lock_guard lock(mutex_);
  ++notifications_;
  if (notification.sender[0] != '\0') {
    // At worst, a notification of a forgotten sender is counted twice.
    const std::string_view sender = std::string_view(notification.sender).substr(0, longest_name);
    if (last_of_.size() >= most_senders_ && !last_of_.contains(sender)) last_of_.erase(last_of_.begin());
    last_of_[std::string(sender)] = notification.timestamp;
  }
  for (std::size_t i = 0; i < notification.count; ++i) {
    const Json json = parsed(notification.values[i].json);
    if (json.is_discarded())
      ++not_understood_;
    else
      Walk(*this, notification.device).value(notification.values[i].path, json);
  }
}

void CollectorStore::keep_value(const std::string& metric, const Labels& labels, double value) {
  const auto known = series_.find(metric);
  if (known != series_.end()) {
    if (const auto found = known->second.find(labels); found != known->second.end()) {
      found->second = value;
      return;
    }
  }
  constexpr std::size_t node_bytes = 128;  // about what a map uses for an entry
  const std::size_t bytes =
      labels.size() + node_bytes + (known == series_.end() ? metric.size() + node_bytes : 0);
  if (count_ >= most_series_ || metric.size() + labels.size() > longest_name ||
      bytes > most_bytes_ - bytes_) {
    ++refused_;
    return;
  }
  bytes_ += bytes;
  ++count_;
  series_[metric].emplace(labels, value);
}

std::string CollectorStore::metrics() const {
  const std::lock_guard lock(mutex_);
  using Type = metrics::PrometheusText::Type;
  constexpr int all_digits = 17;
  metrics::PrometheusText text;
  for (const auto& [metric, values] : series_) {
    text.metric(metric, is_gauge(metric) ? Type::gauge : Type::counter, "SONiC counter " + metric);
    for (const auto& [labels, value] : values)
      text.sample(value, metrics::Labels().add_formatted(labels), all_digits);
  }
  const auto own = [&](const char* name, const char* help, std::uint64_t value) {
    text.metric(std::string(own_prefix) + name, Type::counter, help);
    text.sample(value);
  };
  own("notifications_total", "Notifications taken.", notifications_);
  own("repeated_total", "Notifications that came again after a broken connection.", repeated_);
  own("not_understood_total", "Values that are no numbers.", not_understood_);
  own("series_refused_total", "Values of series beyond the limit.", refused_);
  return text.take();
}

std::string json_lines(const TelemetryNotification& notification) {
  std::string out;
  for (std::size_t i = 0; i < notification.count; ++i) {
    Json line;
    line["timestamp"] = notification.timestamp;
    line["device"] = notification.device;
    line["path"] = notification.values[i].path;
    Json value = parsed(notification.values[i].json);
    line["values"] = value.is_discarded() ? Json(notification.values[i].json) : std::move(value);
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return out;
}

}  // namespace weir::command
