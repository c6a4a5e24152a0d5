#include "cli/weir/rpc/rpc_diff.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "rpc/codec/schema_check.hpp"

namespace weir::command {
namespace {

using Json = nlohmann::ordered_json;

std::expected<std::vector<rpc::MethodInfo>, std::string> from_json(std::string_view text) {
  const Json all = Json::parse(text, nullptr, false);
  const auto is_text = [](const Json& row, const char* key) {
    return row.contains(key) && row[key].is_string();
  };
  std::vector<rpc::MethodInfo> methods;
  if (!all.is_array()) return std::unexpected("it is no JSON array, as weir rpc list --json prints one");
  for (const Json& row : all) {
    if (!row.is_object() || !is_text(row, "name") || !is_text(row, "schema") || !is_text(row, "codec"))
      return std::unexpected("a function in it lacks name, schema or codec");
    methods.push_back({row["name"], row["schema"], row["codec"]});
  }
  return methods;
}

// "shop.add(i32, i32) -> i32", "shop.place(shop.Order) -> shop.Receipt in protobuf"
std::optional<rpc::MethodInfo> from_line(std::string_view line) {
  const std::size_t open = line.find('(');
  const std::size_t arrow = line.find(" -> ");
  if (open == 0 || open == std::string_view::npos || arrow == std::string_view::npos) return std::nullopt;
  rpc::MethodInfo method{std::string(line.substr(0, open)), "", "msgpack"};
  std::string_view schema = line.substr(open);
  if (const std::size_t in = schema.rfind(" in "); in != std::string_view::npos) {
    method.codec = schema.substr(in + 4);
    schema = schema.substr(0, in);
  }
  method.schema = schema;
  return method;
}

bool callable(const rpc::MethodInfo& caller, const rpc::MethodInfo& server, std::string& why) {
  if (caller.codec != server.codec) {
    why = "arguments in " + caller.codec + " at the caller, in " + server.codec + " at the server";
    return false;
  }
  if (caller.schema == server.schema || caller.schema.empty() || server.schema.empty()) return true;
  if (caller.codec != "msgpack") {
    why = caller.schema + " became " + server.schema + " in " + caller.codec;
    return false;
  }
  auto reason = rpc::why_not_callable(caller.schema, server.schema);
  if (reason) why = std::move(*reason);
  return !reason;
}

MethodDifference difference(const rpc::MethodInfo& before, const rpc::MethodInfo& now) {
  std::string why;
  if (!callable(before, now, why)) return {now.name, "breaking", why};
  const std::string change = before.schema + " became " + now.schema;
  if (!callable(now, before, why))
    return {now.name, "servers first", change + "; a new caller cannot call an old server: " + why};
  return {now.name, "compatible", change};
}

}  // namespace

std::expected<std::vector<rpc::MethodInfo>, std::string> listed_methods(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::unexpected("it is empty");
  if (text[first] == '[') return from_json(text);
  std::vector<rpc::MethodInfo> methods;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto method = from_line(line.substr(0, line.find_last_not_of(" \t\r") + 1));
    if (!method)
      return std::unexpected("'" + std::string(line.substr(0, 60)) +
                             "' is no function with its types, as weir rpc list prints them");
    methods.push_back(std::move(*method));
  }
  return methods;
}

std::vector<MethodDifference> differences(const std::vector<rpc::MethodInfo>& before,
                                          const std::vector<rpc::MethodInfo>& now) {
  std::map<std::string, std::pair<const rpc::MethodInfo*, const rpc::MethodInfo*>> by_name;
  for (const rpc::MethodInfo& one : before) by_name[one.name].first = &one;
  for (const rpc::MethodInfo& one : now) by_name[one.name].second = &one;
  std::vector<MethodDifference> all;
  for (const auto& [name, both] : by_name) {
    const auto [was, is] = both;
    if (was == nullptr)
      all.push_back({name, "new", is->schema});
    else if (is == nullptr)
      all.push_back({name, "breaking", "it is gone; Server::alias() keeps a name that callers use"});
    else if (was->schema != is->schema || was->codec != is->codec)
      all.push_back(difference(*was, *is));
  }
  return all;
}

int print_differences(const std::vector<MethodDifference>& all, bool json) {
  Json rows = Json::array();
  for (const MethodDifference& one : all) {
    if (json)
      rows.push_back({{"name", one.name}, {"verdict", one.verdict}, {"what", one.what}});
    else
      std::printf("%s: %s: %s\n", one.name.c_str(), one.verdict.c_str(), one.what.c_str());
  }
  if (json) std::printf("%s\n", rows.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return std::ranges::find(all, "breaking", &MethodDifference::verdict) == all.end() ? 0 : 1;
}

}  // namespace weir::command
