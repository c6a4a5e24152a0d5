// What a switch may tell `weir collector`: a path, a zero byte, and the value's JSON. In any case, each line
// written is a line of JSON, and each line of the Prometheus page has a name, labels and a number.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/weir/network/collector_store.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::command;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string path = input.substr(0, input.find('\0'));
  const std::string json = input.substr(std::min(path.size() + 1, input.size()));
  const TelemetryValue value{path.c_str(), json.c_str()};
  const TelemetryNotification notification{"switch", 1, "leaf1", &value, 1};

  const std::string line = json_lines(notification);
  if (std::count(line.begin(), line.end(), '\n') != 1 || !line.ends_with('\n')) std::abort();
  const auto written = nlohmann::json::parse(line, nullptr, false);
  if (!written.is_object() || !written.contains("values")) std::abort();

  CollectorStore store(16);
  store.keep(notification);
  const std::string page = store.metrics();
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    if (end == std::string::npos) std::abort();
    const std::string row = page.substr(at, end - at);
    at = end + 1;
    if (row.starts_with("# ")) continue;
    const std::size_t space = row.rfind(' ');
    char* rest = nullptr;
    if (space == std::string::npos) std::abort();
    std::strtod(row.c_str() + space + 1, &rest);
    if (*rest != '\0' || rest == row.c_str() + space + 1) std::abort();
  }
  return 0;
}
