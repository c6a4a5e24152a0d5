// What a client waits for whose command found nothing; see Blocking.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "kv/text/bytes.hpp"

namespace weir::kv {

class Client;
struct Command;

struct BlockedOn {
  struct Place {
    std::string key;
    std::list<Client*>::iterator in_queue;
  };

  const Command* command;  // run again, unchanged, when one of the keys may serve it
  std::vector<Bytes> words;
  std::vector<Place> places;  // one per key
  int db = 0;
  std::int64_t deadline_ms = 0;    // 0: for ever
  std::int64_t replicas = 0;       // WAIT, WAITAOF: how many must confirm
  std::int64_t position = 0;       // up to which position of the history; for WAITAOF, on their disks
  std::uint64_t log_position = 0;  // WAITAOF: up to which position of this server's log
};

}  // namespace weir::kv
