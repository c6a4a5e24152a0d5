#include "verbs/cm/explanations.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "link/network_namespace.hpp"
#include "link/same_host.hpp"
#include "verbs/cm/port_space.hpp"

namespace weir::cm {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t most_ports = 8;     // ports named in a message
constexpr std::size_t most_names = 4096;  // entries read from a directory
constexpr std::size_t most_lines = 65536;

template <class Visit>
void for_each_name(const fs::path& directory, Visit visit) {
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator at(directory, error), end; !error && at != end && seen < most_names;
       at.increment(error), ++seen)
    visit(at->path());
}

// Ports of that space that programs of this namespace use, on any address.
std::vector<unsigned> ports_in_use(const fs::path& directory, const std::string& prefix) {
  std::vector<unsigned> ports;
  for_each_name(directory / link::registered_folder, [&](const fs::path& path) {
    const std::string name = path.filename();
    unsigned port = 0;
    if (name.starts_with(prefix) && std::sscanf(name.c_str() + prefix.size(), "%u", &port) == 1)
      ports.push_back(port);
  });
  std::ranges::sort(ports);
  return ports;
}

std::string words_of(const std::vector<unsigned>& ports) {
  std::string words;
  for (std::size_t i = 0; i < std::min(ports.size(), most_ports); ++i)
    words += (i == 0 ? "" : ", ") + std::to_string(ports[i]);
  return words + (ports.size() > most_ports ? ", ..." : "");
}

bool another_namespace_has(const fs::path& directory, const std::string& folder) {
  bool found = false;
  for_each_name(directory.parent_path(), [&](const fs::path& path) {
    const std::string name = path.filename();
    std::error_code error;
    if (name.starts_with(link::network_folder_prefix) && name != directory.filename())
      found |= fs::exists(path / link::registered_folder / folder, error);
  });
  return found;
}

// The user who listens on that TCP port, from the kernel's table.
std::optional<uid_t> tcp_listener(const fs::path& network, unsigned port) {
  constexpr unsigned listening = 10;  // TCP_LISTEN
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream lines(network / table);
    std::string line;
    for (std::size_t i = 0; i < most_lines && std::getline(lines, line); ++i) {
      unsigned local = 0, state = 0, uid = 0;
      const int read = std::sscanf(line.c_str(), " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %u",
                                   &local, &state, &uid);
      if (read == 3 && local == port && state == listening) return uid;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string text_of(const Endpoint& endpoint) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = endpoint.is_v4();
  ::inet_ntop(v4 ? AF_INET : AF_INET6, endpoint.ip.data() + (v4 ? 12 : 0), text.data(), text.size());
  return text.data();
}

std::string why_not_reached(const Endpoint& destination) {
  return text_of(destination) +
         " is no address of this host's network namespace, and packets do not go there: they are sent for "
         "connections and datagrams, and not where WEIR_WIRE is 0; run both programs in one network "
         "namespace";
}

std::string why_nobody_listens(std::uint16_t port_space, const Endpoint& destination,
                               const Surroundings& around) {
  const std::string prefix = name_of_space(port_space) + std::string("-");
  const std::string port = std::to_string(destination.port);
  std::string why = "nobody listens on RDMA port " + port + " of " + text_of(destination) +
                    ", neither among the programs of user " + std::to_string(::geteuid()) + " that share " +
                    around.directory + " nor among other users'";
  auto ports = ports_in_use(around.directory, prefix);
  std::erase(ports, destination.port);  // bound but not listening, or left by a killed process
  if (!ports.empty()) why += "; there are RDMA ports " + words_of(ports);
  if (another_namespace_has(around.directory, prefix + port))
    why += "; a program in another network namespace has that port: run both in one";
  if (const auto uid = tcp_listener(around.network, destination.port))
    why += "; a program of user " + std::to_string(*uid) +
           " listens there for TCP: it has to listen for RDMA, too, on this NIC (weir run)";
  return why +
         "; check the port, and that the server was started with weir run, as this user with the same "
         "/dev/shm or WEIR_RUNTIME_DIR";
}

}  // namespace weir::cm
