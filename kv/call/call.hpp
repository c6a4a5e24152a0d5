// One call of a command: its words, the client that sent them, and the server as a command sees it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "kv/call/server_parts.hpp"
#include "kv/command/command.hpp"
#include "kv/command/key_events.hpp"
#include "kv/resp/reply.hpp"
#include "kv/resp/request.hpp"
#include "kv/resp/request_text.hpp"
#include "kv/store/keyspace.hpp"

namespace weir::kv {

class Client;

enum class NullForm : std::uint8_t { single, array };

// One call of a command.
struct Call {
  ServerParts& server;
  Client& client;
  const Command& command;
  Keyspace& db;  // the client's selected database
  Reply& reply;
  Arguments arguments;
  std::int64_t now_ms;
  bool retried = false;             // a blocked command, tried again because a key changed
  std::string_view ready_key = {};  // the changed key

  std::size_t count() const { return arguments.size(); }
  std::string_view operator[](std::size_t i) const { return arguments[i].text; }

  // The record of a key; counts a hit or a miss.
  Record* read(std::string_view key) const;
  // As read(), but does not count as a use of the key.
  Record* look(std::string_view key) const;
  // For commands that will change the key: no statistics.
  Record* write(std::string_view key) const { return db.find(key, now_ms); }
  // Call after every change of a key: WATCH, blocked clients and clients that cache depend on it. Keyspace
  // notifications report the command's usual event, or the given one.
  void changed(std::string_view key) const;
  void changed(std::string_view key, KeyEvent event) const;
  // The call's effect, as a request that has the same effect whenever it runs. Needed where the client's own
  // words do not, because of time, chance, waiting or the precision of a number. May be called several times.
  void replay_as(std::initializer_list<RequestWord> words) const;
  // Whether replay_as() has listeners: check before building many words.
  bool heard() const;
  // Removes a key because the command demands it or because its collection has become empty.
  void erase(std::string_view key) const;
  void erase(std::string_view key, KeyEvent event) const;
  // Reports a further event of a key whose change is already reported.
  void notify(std::string_view key, KeyEvent event) const;

  // On failure these reply to the client.
  bool integer(std::size_t argument, std::int64_t& value,
               std::string_view error = "ERR value is not an integer or out of range") const;
  Keyspace* database(std::size_t argument) const;  // by its number; null on failure
  bool number(std::size_t argument, double& value,
              std::string_view error = "ERR value is not a valid float") const;
  // Replies WRONGTYPE and returns false when `record` holds another type. A null record counts as every type.
  bool typed(const Record* record, Type type) const;
  void syntax_error() const { reply.error("ERR syntax error"); }
  // For subcommands that accept any number of arguments and refuse too many themselves.
  void subcommand_error() const;
};

}  // namespace weir::kv
