#include "sockets/put_back.hpp"

#include <unistd.h>

#include <cctype>

#include "sockets/waiter.hpp"

namespace weir::sockets {
namespace {

std::string name_of(const Side& side) {
  const auto letters = side.program;  // copied once: another process may write it meanwhile
  std::string name;
  for (const char letter : letters) {
    if (letter == '\0') break;
    name += std::isprint(static_cast<unsigned char>(letter)) != 0 ? letter : '?';
  }
  return name;
}

}  // namespace

std::expected<PutBack, std::string> put_back(const std::string& runtime_directory, std::uint32_t pid) {
  const std::string nobody =
      "no process " + std::to_string(pid) +
      " of this user has TCP connections that may change to RDMA; weir sockets lists those that do";
  const std::string directory = runtime_directory + "/lasting-sockets";
  if (::access(directory.c_str(), F_OK) != 0) return std::unexpected(nobody);
  std::string why;
  const auto table = Table::open(directory, why);
  if (!table) return std::unexpected(why);
  Layout& layout = table->layout();
  PutBack done;
  std::uint32_t service = 0;
  for (Entry& entry : layout.entries) {
    if (entry.used.load() == 0) continue;
    for (Side& side : entry.sides) {
      const auto stage = static_cast<Stage>(side.stage.load());
      const auto process = side.process.load();
      if (stage == Stage::absent || stage == Stage::gone || side.pid.load() != pid ||
          process >= max_processes || !table->alive(side))
        continue;
      layout.put_back[process].store(1);
      service = side.service.load();
      done.program = name_of(side);
      ++done.connections;
    }
  }
  // Ring after all flags are stored: the service thread reads its flag each time it wakes.
  if (service != 0) ring(*table, service);
  table->leave();
  if (done.connections == 0) return std::unexpected(nobody);
  return done;
}

}  // namespace weir::sockets
