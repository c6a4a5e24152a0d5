// Where a request goes: to the node that has its keys' slot, to any node, nowhere, or it is answered here.
//
// Made of the command table: what keys a command has says its key specification, the rest is a table of names
// in routing.cpp. A transition without state: the same words always go the same way. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kv/commands/command.hpp"

namespace weir::kv::cluster {

struct Route {
  enum class Where : std::uint8_t {
    here,        // the gateway answers by itself, errors about the request's form included
    slot,        // the node that has `slot`
    any_node,    // whichever
    cross_slot,  // its keys lie in several slots
    refused      // `why` says the reason and the next step
  };
  Where where = Where::here;
  std::uint16_t slot = 0;
  std::string_view why = {};
};

class Routing {
 public:
  Routing();
  // `command` may be null: no such command.
  Route route(const Command* command, Arguments words) const;

 private:
  enum class Kind : std::uint8_t { here, fixed_keys, found_keys, any_node, refused };
  struct Rule {
    Kind kind = Kind::here;
    std::string_view why = {};
  };

  static Rule rule_of(const Command& command);

  std::vector<Rule> rules_;  // by Command::id
};

}  // namespace weir::kv::cluster
