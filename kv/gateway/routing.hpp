// Where a request goes: to the node of its keys' slot, to any node or all, or nowhere because it is answered
// here.
//
// Built from the command table: a command's keys come from its key specification, the rest from a table of
// names in routing.cpp. Stateless: equal requests get equal routes. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kv/command/command.hpp"

namespace weir::kv::cluster {

struct Route {
  enum class Where : std::uint8_t {
    here,          // the gateway answers it, including errors about its syntax
    slot,          // to the node that has `slot`
    any_node,      // to any node
    all_nodes,     // to every primary; their replies are joined into one
    scanned_node,  // to the node that a SCAN's cursor names; its number is in `slot`
    written_node,  // to the node that took the client's last write
    cross_slot,    // an error: its keys are in several slots
    refused        // an error: `why` has the reason and the next step
  };
  // What a request needs besides a reply.
  enum class Needs : std::uint8_t {
    nothing,
    own_link_for_watch,  // a connection of the client's own until its transaction is over
    own_link_to_wait,    // a connection of the client's own until the reply
    subscription         // that the gateway subscribes at that node
  };
  Where where = Where::here;
  std::uint16_t slot = 0;
  std::string_view why = {};
  Needs needs = Needs::nothing;
};

// Whether it can change data; scripts can.
bool may_write(const Command& command);

class Routing {
 public:
  Routing();
  // `command` is null if there is no such command.
  Route route(const Command* command, Arguments words) const;

 private:
  enum class Kind : std::uint8_t {
    here,
    fixed_keys,
    found_keys,
    any_node,
    all_nodes,
    written_node,
    scan,
    refused
  };
  struct Rule {
    Kind kind = Kind::here;
    std::string_view why = {};
    Route::Needs needs = Route::Needs::nothing;
  };

  static Rule rule_of(const Command& command);

  std::vector<Rule> rules_;  // indexed by Command::id
};

}  // namespace weir::kv::cluster
