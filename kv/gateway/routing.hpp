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
    all_nodes,   // every primary, and their replies become one
    cross_slot,  // its keys lie in several slots
    refused      // `why` says the reason and the next step
  };
  // What it needs beyond a reply.
  enum class Needs : std::uint8_t {
    nothing,
    own_link_for_watch,  // a connection of the client's own until its transaction is over
    own_link_to_wait,    // the same until the reply
    subscription         // that the gateway subscribes there
  };
  Where where = Where::here;
  std::uint16_t slot = 0;
  std::string_view why = {};
  Needs needs = Needs::nothing;
};

class Routing {
 public:
  Routing();
  // `command` may be null: no such command.
  Route route(const Command* command, Arguments words) const;

 private:
  enum class Kind : std::uint8_t { here, fixed_keys, found_keys, any_node, all_nodes, refused };
  struct Rule {
    Kind kind = Kind::here;
    std::string_view why = {};
    Route::Needs needs = Route::Needs::nothing;
  };

  static Rule rule_of(const Command& command);

  std::vector<Rule> rules_;  // by Command::id
};

}  // namespace weir::kv::cluster
