#include "kv/commands/clients/client_filter.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "kv/acl/users.hpp"
#include "kv/call/call.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/client_line.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

std::optional<ClientType> client_type(std::string_view word) {
  if (is_word(word, "normal")) return ClientType::normal;
  if (is_word(word, "pubsub")) return ClientType::pubsub;
  if (is_word(word, "slave") || is_word(word, "replica")) return ClientType::replica;
  if (is_word(word, "master") || is_word(word, "primary")) return ClientType::primary;
  return std::nullopt;
}

ClientType type_of(const Client& client) {
  if (client.is_replica()) return ClientType::replica;
  return client.subscriptions.any() ? ClientType::pubsub : ClientType::normal;
}

// "10.0.0.1:80" without the port, "[::1]:80" without port and brackets.
std::string_view host_of(std::string_view address) {
  address = address.substr(0, address.rfind(':'));
  const bool bracketed = address.starts_with('[') && address.ends_with(']');
  return bracketed ? address.substr(1, address.size() - 2) : address;
}

// All letters that client_flags() may answer, and those of other servers.
constexpr std::string_view known_flags = "ABCEFGIJLMNOPRSTUbcdehijkmnqrtuvxyz";

// Whether all letters of `wanted` are among `letters`.
bool has_letters(std::string_view letters, std::string_view wanted) {
  return std::ranges::all_of(wanted, [&](char c) { return letters.find(c) != letters.npos; });
}
bool admits_letters(const ClientFilter::Text& wanted, std::string_view letters) {
  return (!wanted.is || has_letters(letters, *wanted.is)) &&
         (!wanted.is_not || !has_letters(letters, *wanted.is_not));
}

bool any_given(const ClientFilter::Text& wanted) { return wanted.is || wanted.is_not; }

// Filters that compare a text.
struct TextRow {
  std::string_view word;
  ClientFilter::Text ClientFilter::* member;
};
constexpr std::array text_rows{
    TextRow{"ADDR", &ClientFilter::peer},
    TextRow{"CAPA", &ClientFilter::capabilities},
    TextRow{"FLAGS", &ClientFilter::flags},
    TextRow{"IP", &ClientFilter::host},
    TextRow{"LADDR", &ClientFilter::local},
    TextRow{"LIB-NAME", &ClientFilter::library},
    TextRow{"LIB-VER", &ClientFilter::library_version},
    TextRow{"NAME", &ClientFilter::name},
    TextRow{"USER", &ClientFilter::user},
};

class FilterParser {
 public:
  FilterParser(const Call& call, std::size_t at, std::string_view wrong_id, ClientFilter& filter)
      : call_(call), at_(at), wrong_id_(wrong_id), filter_(filter) {}

  bool parse() {
    while (at_ < call_.count()) {
      if (!take_filter()) return false;
    }
    return true;
  }

 private:
  bool wrong(const std::string& error) const { return call_.reply.error("ERR " + error), false; }

  bool take_filter() {
    std::string_view word = call_[at_];
    if (at_ + 1 == call_.count()) return call_.syntax_error(), false;
    const bool negated = is_word(word.substr(0, 4), "NOT-");
    if (negated) word.remove_prefix(4);
    if (is_word(word, "ID")) return take_ids(negated ? filter_.other_ids : filter_.ids);
    const std::string_view value = call_[at_ + 1];
    at_ += 2;
    if (is_word(word, "TYPE")) return take_type(value, negated);
    if (is_word(word, "DB")) return take_db(negated);
    if (!negated && is_word(word, "MAXAGE")) return take_seconds("maxage", filter_.least_age_s);
    if (!negated && is_word(word, "IDLE")) return take_seconds("idle", filter_.least_idle_s);
    if (!negated && is_word(word, "SKIPME") && (is_word(value, "yes") || is_word(value, "no"))) {
      filter_.skip_me = is_word(value, "yes");
      return true;
    }
    const auto row = std::ranges::find_if(text_rows, [&](const TextRow& r) { return is_word(word, r.word); });
    if (row == text_rows.end()) return call_.syntax_error(), false;
    if (row->member == &ClientFilter::user && call_.server.access.users().find(value) == nullptr)
      return wrong("No such user '" + std::string(value) + "'");
    if (row->member == &ClientFilter::flags) {
      if (value.find_first_not_of(known_flags) != value.npos)
        return wrong("Unknown flags found in the provided filter: " + std::string(value));
    }
    ClientFilter::Text& wanted = filter_.*row->member;
    (negated ? wanted.is_not : wanted.is) = value;
    return true;
  }

  // Ids end where a word is no number.
  bool take_ids(std::vector<std::uint64_t>& ids) {
    for (bool first = true; ++at_ < call_.count(); first = false) {
      const auto id = parse_int(call_[at_]);
      if (!id && !first) return true;
      if (!id) return call_.reply.error(wrong_id_), false;
      if (*id < 1) return wrong("client-id should be greater than 0");
      ids.push_back(static_cast<std::uint64_t>(*id));
    }
    return true;
  }

  bool take_type(std::string_view value, bool negated) {
    const auto type = client_type(value);
    if (!type) return wrong("Unknown client type '" + std::string(value) + "'");
    (negated ? filter_.type.is_not : filter_.type.is) = type;
    return true;
  }

  bool take_db(bool negated) {
    std::int64_t db = 0;
    if (!call_.integer(at_ - 1, db, "ERR DB is not an integer or out of range")) return false;
    const auto last = static_cast<std::int64_t>(call_.server.databases.size()) - 1;
    if (db < 0 || db > last) return wrong("DB index should be between 0 and " + std::to_string(last));
    (negated ? filter_.db.is_not : filter_.db.is) = db;
    return true;
  }

  bool take_seconds(const std::string& name, std::int64_t& seconds) {
    if (!call_.integer(at_ - 1, seconds, "ERR " + name + " is not an integer or out of range")) return false;
    return seconds > 0 || wrong(name + " should be greater than 0");
  }

  const Call& call_;
  std::size_t at_;
  std::string_view wrong_id_;
  ClientFilter& filter_;
};

}  // namespace

bool ClientFilter::selects(const Client& client, const Client& me, std::int64_t now_ms) const {
  constexpr std::int64_t ms_in_s = 1000;
  const auto holds = [&](const std::vector<std::uint64_t>& all) {
    return std::ranges::find(all, client.id()) != all.end();
  };
  if (skip_me && &client == &me) return false;
  if ((!ids.empty() && !holds(ids)) || holds(other_ids)) return false;
  if (!type.admits(type_of(client)) || !db.admits(client.db)) return false;
  if ((now_ms - client.created_ms) / ms_in_s < least_age_s) return false;
  if ((now_ms - client.active_ms) / ms_in_s < least_idle_s) return false;
  if (!user.admits(client.user->name()) || !name.admits(client.name)) return false;
  if (!library.admits(client.program.library) || !library_version.admits(client.program.version))
    return false;
  if (any_given(flags) && !admits_letters(flags, client_flags(client))) return false;
  if (!admits_letters(capabilities, client.program.redirects ? "r" : "")) return false;
  if (any_given(local) && !local.admits(client.connection().local_address())) return false;
  if (!any_given(peer) && !any_given(host)) return true;
  const std::string address = client.connection().peer_address();
  return peer.admits(address) && host.admits(host_of(address));
}

bool ClientFilter::selects_primary(std::string_view address) const {
  const bool meant = type.is == ClientType::primary || peer.is == address;
  return meant && type.admits(ClientType::primary) && peer.admits(address);
}

bool parse_client_filter(const Call& call, std::size_t at, std::string_view wrong_id, ClientFilter& filter) {
  return FilterParser(call, at, wrong_id, filter).parse();
}

}  // namespace weir::kv
