// Which clients CLIENT LIST shows and CLIENT KILL closes: "TYPE pubsub NOT-NAME worker".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

enum class ClientType : std::uint8_t { normal, pubsub, replica, primary };

// All that is given must hold for a client.
struct ClientFilter {
  // Of one quality: what it is to be, and what it is not to be.
  template <class Value>
  struct Wanted {
    std::optional<Value> is, is_not;

    bool admits(const Value& value) const { return (!is || *is == value) && (!is_not || *is_not != value); }
  };
  using Text = Wanted<std::string_view>;

  std::vector<std::uint64_t> ids, other_ids;
  Wanted<ClientType> type;
  Text user, peer, local, name, library, library_version, host;
  Text flags, capabilities;  // letters, all of which a client has or does not have all
  Wanted<std::int64_t> db;
  std::int64_t least_age_s = 0, least_idle_s = 0;
  bool skip_me = false;

  bool selects(const Client& client, const Client& me, std::int64_t now_ms) const;
  // The connection to the primary is no client, and has only a type and an address.
  bool selects_primary(std::string_view address) const;
};

// Parses the filters from argument `at` to the end. Replies with the error and returns false if they are
// wrong. `wrong_id` is the error for an id that is no number.
bool parse_client_filter(const Call& call, std::size_t at, std::string_view wrong_id, ClientFilter& filter);

}  // namespace weir::kv
