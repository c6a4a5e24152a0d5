// What the server needs from its log while it serves. This header depends on neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

namespace weir::kv {
class Client;
class ServerParts;
struct Disk;
}  // namespace weir::kv

namespace weir::kv::aof {

class AppendOnly;

std::shared_ptr<AppendOnly> make_append_only(ServerParts& server, const Disk& disk);
// AppendOnly describes each of these functions.
bool keep(AppendOnly& log);
const std::string& refusal(const AppendOnly& log);
// How long the log is, and how much of that is on the disk; without its base it is no log yet. Nullopt: it is
// off.
struct LogPositions {
  std::uint64_t written, synced;
  bool has_base;
};
std::optional<LogPositions> positions(const AppendOnly& log);
// Memory that is free again once the disk has what is in it.
struct LogMemory {
  std::size_t effects, rewrite;
};
LogMemory memory(const AppendOnly& log);
void give_up_waiting(const AppendOnly& log, Client& client);
std::expected<void, std::string> begin_anew(AppendOnly& log);
void turn_off(AppendOnly& log);

}  // namespace weir::kv::aof
