#include "cli/benchmark/surroundings.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace weir::benchmark {
namespace {

// The value in the first line that starts with `key`, from "key : value" or "key:value".
std::string field(std::istream&& lines, std::string_view key) {
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string{} : line.substr(start);
  }
  return {};
}

std::string field_of_info(std::string_view info, std::string_view key) {
  for (std::size_t at = 0; at < info.size();) {
    const auto end = std::min(info.find("\r\n", at), info.size());
    const auto line = info.substr(at, end - at);
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':')
      return std::string(line.substr(key.size() + 1));
    at = end + 2;
  }
  return {};
}

std::string joined(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

}  // namespace

std::string server_setting(client::Session& server, const std::string& name) {
  const client::Arguments command{"CONFIG", "GET", name};
  const auto reply = server.ask(command, client::Milliseconds{2000});
  if (!reply || reply->elements.size() != 2) return {};
  return reply->elements[1].text;
}

Surroundings look_around(const std::vector<int>& pinned_cpus, client::Session* server) {
  Surroundings found;
  found.cpu_model = field(std::ifstream("/proc/cpuinfo"), "model name");
  found.cpus = std::thread::hardware_concurrency();
  utsname names{};
  if (::uname(&names) == 0) found.kernel = std::string(names.sysname) + " " + names.release;
  found.client_cpus = pinned_cpus.empty() ? field(std::ifstream("/proc/self/status"), "Cpus_allowed_list")
                                          : joined(pinned_cpus);
  if (!server) return found;
  const client::Arguments command{"INFO", "server"};
  const auto reply = server->ask(command, client::Milliseconds{2000});
  if (!reply || reply->is_error()) return found;
  for (const auto* name : {"weir_version", "valkey_version", "redis_version"}) {
    const auto version = field_of_info(reply->text, name);
    if (version.empty()) continue;
    found.server = std::string(name, std::string_view(name).find('_')) + " " + version;
    break;
  }
  // The server's pid is meaningful here only if it is that process: compare the process's name.
  const auto pid = field_of_info(reply->text, "process_id");
  const auto executable = field_of_info(reply->text, "executable");
  std::ifstream name_file("/proc/" + pid + "/comm");
  std::string name;
  if (!pid.empty() && std::getline(name_file, name) &&
      executable.substr(executable.rfind('/') + 1).starts_with(name))
    found.server_cpus = field(std::ifstream("/proc/" + pid + "/status"), "Cpus_allowed_list");
  return found;
}

}  // namespace weir::benchmark
