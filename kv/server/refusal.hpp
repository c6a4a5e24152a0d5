// Why a request is refused before its command runs.
//
// The rules are a table, in the order in which Redis asks: the first that refuses gives the reply. Threading:
// the server's one thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kv/call/server_parts.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/resp/request.hpp"

namespace weir::kv {

struct Request {
  ServerParts& server;
  Client& client;
  const Command& command;
  Arguments words;
};

struct RefusalRule {
  std::string_view name;
  // The error for the client; nullopt: this rule has nothing against it.
  std::optional<std::string> (*error)(const Request&);
};

std::span<const RefusalRule> refusal_rules();

// Of the first rule that refuses.
std::optional<std::string> refusal(const Request&);

// Whether the command runs even while a script has the server to itself.
bool runs_beside_script(const Command& command, Arguments words);

}  // namespace weir::kv
