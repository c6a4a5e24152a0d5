// One reply for the client from the replies of several nodes. If one node's reply is an error so is the
// joined one, because the command was not carried out everywhere; it names the node. Stateless.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kv/command/command.hpp"

namespace weir::kv::cluster {

struct NodesReply {
  std::string from;  // the node
  std::string reply;
};

// `random` decides where any node's reply will do (RANDOMKEY).
std::string joined_reply(const Command& command, std::span<const NodesReply> replies, std::uint64_t random);

// A node's reply to SCAN with the cursor that the client is to send next. `number` is the node's in the slot
// map, `next` that of the node to scan after it; 0: it is the last.
std::string scan_reply(std::string_view reply, std::uint16_t number, std::uint16_t next);

}  // namespace weir::kv::cluster
