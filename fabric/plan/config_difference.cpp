#include "fabric/plan/config_difference.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace weir::fabric {
namespace {

using nlohmann::json;
using Values = std::map<std::string, std::string>;  // "TABLE|entry|field"

// Lists are written as SONiC writes them in one string.
std::string as_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string joined;
  for (const auto& element : value) {
    if (!joined.empty()) joined += ',';
    joined += as_text(element);
  }
  return joined;
}

void collect(const std::string& table, const json& entries, Values& values) {
  if (!entries.is_object()) return;
  for (const auto& [name, fields] : entries.items()) {
    auto entry = table;
    entry.append("|").append(name);
    if (!fields.is_object() || fields.empty())
      values[entry] = fields.is_object() ? "" : as_text(fields);
    else
      for (const auto& [field, value] : fields.items())
        values[std::string(entry).append("|").append(field)] = as_text(value);
  }
}

}  // namespace

std::optional<std::vector<std::string>> config_difference(std::string_view planned,
                                                          std::string_view existing) {
  const auto wanted = json::parse(planned, nullptr, false), found = json::parse(existing, nullptr, false);
  if (!found.is_object()) return std::nullopt;
  Values after, before;
  for (const auto& [table, entries] : wanted.items()) {
    collect(table, entries, after);
    if (const auto same = found.find(table); same != found.end()) collect(table, *same, before);
  }
  Values lines;
  for (const auto& [key, value] : before)
    if (!after.contains(key)) lines[key] = fmt::format("{}: {} -> (none)", key, value);
  for (const auto& [key, value] : after) {
    const auto old = before.find(key);
    if (old == before.end())
      lines[key] = fmt::format("{}: (none) -> {}", key, value);
    else if (old->second != value)
      lines[key] = fmt::format("{}: {} -> {}", key, old->second, value);
  }
  std::vector<std::string> out;
  for (auto& [key, line] : lines) out.push_back(std::move(line));
  return out;
}

}  // namespace weir::fabric
