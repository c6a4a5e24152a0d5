// CLIENT: lists and manages the server's clients.
#include <algorithm>
#include <limits>
#include <string>

#include "kv/commands/client_line.hpp"
#include "kv/commands/client_tracking.hpp"
#include "kv/commands/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/number.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

void id(const Call& call) { call.reply.integer(static_cast<std::int64_t>(call.client.id())); }
void client_info(const Call& call) {
  call.reply.verbatim("txt", describe_client(call.client, call.server.steady_ms) + '\n');
}

// "normal", "master", "replica", "pubsub"; nullopt: no such type.
enum class ClientType : std::uint8_t { normal, pubsub, replica, primary };
std::optional<ClientType> client_type(std::string_view word) {
  if (is_word(word, "normal")) return ClientType::normal;
  if (is_word(word, "pubsub")) return ClientType::pubsub;
  if (is_word(word, "slave") || is_word(word, "replica")) return ClientType::replica;
  if (is_word(word, "master")) return ClientType::primary;
  return std::nullopt;
}
bool has_type(const Client& client, ClientType type) {
  if (client.is_replica()) return type == ClientType::replica;
  return type == (client.subscriptions.any() ? ClientType::pubsub : ClientType::normal);
}

void client_list(const Call& call) {
  std::optional<ClientType> type;
  std::vector<std::uint64_t> ids;
  if (call.count() == 4 && is_word(call[2], "TYPE")) {
    type = client_type(call[3]);
    if (!type) return call.reply.error("ERR Unknown client type '" + std::string(call[3]) + "'");
  } else if (call.count() > 3 && is_word(call[2], "ID")) {
    for (std::size_t i = 3; i < call.count(); ++i) {
      std::int64_t one = 0;
      if (!call.integer(i, one, "ERR Invalid client ID")) return;
      ids.push_back(static_cast<std::uint64_t>(one));
    }
  } else if (call.count() != 2) {
    return call.syntax_error();
  }
  std::string text;
  for (const auto& [number, client] : call.server.clients) {
    if (type && !has_type(*client, *type)) continue;
    if (!ids.empty() && std::ranges::find(ids, number) == ids.end()) continue;
    text += describe_client(*client, call.server.steady_ms) + '\n';
  }
  call.reply.verbatim("txt", text);
}

bool plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; });
}
void setname(const Call& call) {
  if (!plain(call[2]))
    return call.reply.error("ERR Client names cannot contain spaces, newlines or special characters.");
  call.client.name = call[2];
  call.reply.ok();
}
void getname(const Call& call) {
  call.client.name.empty() ? call.reply.null() : call.reply.bulk(call.client.name);
}

// From Redis 7.2: the program that runs in the client.
void setinfo(const Call& call) {
  const bool version = is_word(call[2], "LIB-VER");
  if (!version && !is_word(call[2], "LIB-NAME"))
    return call.reply.error("ERR Unrecognized option '" + std::string(up_to_zero(call[2])) + "'");
  if (!plain(call[3])) {
    return call.reply.error("ERR " + std::string(version ? "lib-ver" : "lib-name") +
                            " cannot contain spaces, newlines or special characters.");
  }
  (version ? call.client.library_version : call.client.library) = call[3];
  call.reply.ok();
}

struct KillFilter {
  std::string_view peer, local;
  std::uint64_t id = 0;
  std::optional<ClientType> type;
  bool skip_me = true;
  const acl::User* user = nullptr;

  bool selects(Client& client, const Client& me) const {
    if (skip_me && &client == &me) return false;
    if (user != nullptr && client.user != user) return false;
    if (id != 0 && client.id() != id) return false;
    if (!peer.empty() && client.connection().peer_address() != peer) return false;
    if (!local.empty() && client.connection().local_address() != local) return false;
    return !type || has_type(client, *type);
  }
};

bool parse_kill(const Call& call, KillFilter& filter) {
  auto wrong = [&](const std::string& error) {
    call.reply.error(error);
    return false;
  };
  for (std::size_t i = 2; i < call.count(); i += 2) {
    if (i + 1 == call.count()) return wrong("ERR syntax error");
    const std::string_view value = call[i + 1];
    if (is_word(call[i], "ID")) {
      const auto id = parse_int(value);
      if (!id || *id < 1) return wrong("ERR client-id should be greater than 0");
      filter.id = static_cast<std::uint64_t>(*id);
    } else if (is_word(call[i], "TYPE")) {
      filter.type = client_type(value);
      if (!filter.type) return wrong("ERR Unknown client type '" + std::string(value) + "'");
    } else if (is_word(call[i], "ADDR")) {
      filter.peer = value;
    } else if (is_word(call[i], "LADDR")) {
      filter.local = value;
    } else if (is_word(call[i], "USER")) {
      filter.user = call.server.access.users().find(value);
      if (filter.user == nullptr) return wrong("ERR No such user '" + std::string(value) + "'");
    } else if (is_word(call[i], "SKIPME") && (is_word(value, "yes") || is_word(value, "no"))) {
      filter.skip_me = is_word(value, "yes");
    } else {
      return wrong("ERR syntax error");
    }
  }
  return true;
}

void kill(const Call& call) {
  KillFilter filter;
  const bool old_form = call.count() == 3;
  if (old_form) {
    filter.peer = call[2];
    filter.skip_me = false;
  } else if (!parse_kill(call, filter)) {
    return;
  }
  std::vector<Client*> chosen;
  for (const auto& [number, client] : call.server.clients) {
    if (filter.selects(*client, call.client)) chosen.push_back(client.get());
  }
  if (!old_form) {
    call.reply.integer(static_cast<std::int64_t>(chosen.size()));
  } else if (chosen.empty()) {
    return call.reply.error("ERR No such client");
  } else {
    call.reply.ok();
  }
  for (Client* client : chosen) {
    if (client == &call.client) {
      client->close_after_reply = true;
    } else {
      client->close();
    }
  }
}

void reply(const Call& call) {
  if (is_word(call[2], "ON")) {
    call.client.set_replies(Replies::on);
    call.reply.ok();
  } else if (is_word(call[2], "OFF")) {
    call.client.set_replies(Replies::off);
  } else if (is_word(call[2], "SKIP")) {
    if (call.client.replies() == Replies::on) call.client.set_replies(Replies::skip_next);
  } else {
    call.syntax_error();
  }
}

void no_evict(const Call& call) {
  if (!is_word(call[2], "ON") && !is_word(call[2], "OFF")) return call.syntax_error();
  call.client.no_evict = is_word(call[2], "ON");
  call.reply.ok();
}

// From Redis 7.2.
void no_touch(const Call& call) {
  if (!is_word(call[2], "ON") && !is_word(call[2], "OFF")) return call.syntax_error();
  call.client.no_touch = is_word(call[2], "ON");
  call.reply.ok();
}

void pause(const Call& call) {
  bool writes_only = false;
  if (call.count() == 4) {
    writes_only = is_word(call[3], "WRITE");
    if (!writes_only && !is_word(call[3], "ALL"))
      return call.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  }
  const auto ms = parse_int(call[2]);
  if (!ms) return call.reply.error("ERR timeout is not an integer or out of range");
  if (*ms < 0) return call.reply.error("ERR timeout is negative");
  // Redis takes a time beyond the range of its clock for one in the past.
  const std::int64_t now_ms = call.server.steady_ms;
  const bool passed = *ms > std::numeric_limits<std::int64_t>::max() - now_ms;
  call.server.pause(passed ? 0 : now_ms + *ms, writes_only ? Paused::writes : Paused::everything);
  call.reply.ok();
}
void unpause(const Call& call) {
  call.server.end_pause();
  call.reply.ok();
}

void unblock(const Call& call) {
  if (call.count() > 4) return call.subcommand_error();
  bool with_error = false;
  if (call.count() == 4) {
    with_error = is_word(call[3], "ERROR");
    if (!with_error && !is_word(call[3], "TIMEOUT")) {
      return call.reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    }
  }
  std::int64_t number = 0;
  if (!call.integer(2, number)) return;
  const auto it = call.server.clients.find(static_cast<std::uint64_t>(number));
  if (it == call.server.clients.end() || !it->second->blocked) return call.reply.integer(0);
  Client& client = *it->second;
  if (with_error) {
    call.server.blocking.fail(client, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    call.server.blocking.release(client);
    client.will_resume();
  } else {
    call.server.blocking.give_up(client);
  }
  call.reply.integer(1);
}

void client_help(const Call& call) {
  reply_help(call, {
                       "CACHING (YES|NO)",
                       "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
                       "GETREDIR",
                       "    Return the client ID we are redirecting to when tracking is enabled.",
                       "GETNAME",
                       "    Return the name of the current connection.",
                       "ID",
                       "    Return the ID of the current connection.",
                       "INFO",
                       "    Return information about the current client connection.",
                       "KILL <ip:port>",
                       "    Kill connection made from <ip:port>.",
                       "KILL <option> <value> [<option> <value> [...]]",
                       "    Kill connections. Options are:",
                       "    * ADDR (<ip:port>|<unixsocket>:0)",
                       "      Kill connections made from the specified address",
                       "    * LADDR (<ip:port>|<unixsocket>:0)",
                       "      Kill connections made to specified local address",
                       "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
                       "      Kill connections by type.",
                       "    * USER <username>",
                       "      Kill connections authenticated by <username>.",
                       "    * SKIPME (YES|NO)",
                       "      Skip killing current connection (default: yes).",
                       "LIST [options ...]",
                       "    Return information about client connections. Options:",
                       "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
                       "      Return clients of specified type.",
                       "UNPAUSE",
                       "    Stop the current client pause, resuming traffic.",
                       "PAUSE <timeout> [WRITE|ALL]",
                       "    Suspend all, or just write, clients for <timeout> milliseconds.",
                       "REPLY (ON|OFF|SKIP)",
                       "    Control the replies sent to the current connection.",
                       "SETNAME <name>",
                       "    Assign the name <name> to the current connection.",
                       "UNBLOCK <clientid> [TIMEOUT|ERROR]",
                       "    Unblock the specified blocked client.",
                       "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
                       "         [OPTIN] [OPTOUT] [NOLOOP]",
                       "    Control server assisted client side caching.",
                       "TRACKINGINFO",
                       "    Report tracking status for the current connection.",
                       "NO-EVICT (ON|OFF)",
                       "    Protect current client connection from eviction.",
                   });
}

}  // namespace

std::span<const Command> client_commands() {
  using namespace flag;
  constexpr std::uint32_t any_client = noscript | loading | stale;
  constexpr std::uint32_t managing = admin | noscript | loading | stale;
  static constexpr Command subcommands[] = {
      {"id", 2, any_client, 0, 0, 0, id, "connection", "Returns the client's number.", {}, "client"},
      {"info", 2, any_client, 0, 0, 0, client_info, "connection", "Describes this client.", {}, "client"},
      {"list", -2, managing, 0, 0, 0, client_list, "connection", "Describes all clients.", {}, "client"},
      {"setname", 3, any_client, 0, 0, 0, setname, "connection", "Names this client.", {}, "client"},
      {"getname", 2, any_client, 0, 0, 0, getname, "connection", "Returns this client's name.", {}, "client"},
      {"kill", -3, managing, 0, 0, 0, kill, "connection", "Closes clients.", {}, "client"},
      {"reply", 3, any_client, 0, 0, 0, reply, "connection", "Turns replies on and off.", {}, "client"},
      {"no-evict", 3, managing, 0, 0, 0, no_evict, "connection", "Protects this client.", {}, "client"},
      {"no-touch", 3, any_client, 0, 0, 0, no_touch, "connection", "Uses keys unseen.", {}, "client"},
      {"setinfo", 4, any_client, 0, 0, 0, setinfo, "connection", "Says what runs there.", {}, "client"},
      {"pause", -3, managing, 0, 0, 0, pause, "connection", "Holds commands back for a time.", {}, "client"},
      {"unpause", 2, managing, 0, 0, 0, unpause, "connection", "Ends the pause.", {}, "client"},
      {"unblock", -3, managing, 0, 0, 0, unblock, "connection", "Ends a client's waiting.", {}, "client"},
      {"tracking", -3, any_client, 0, 0, 0, client_tracking, "connection", "Tells of changes.", {}, "client"},
      {"caching",
       3,
       any_client,
       0,
       0,
       0,
       client_caching,
       "connection",
       "Is about the next command.",
       {},
       "client"},
      {"getredir",
       2,
       any_client,
       0,
       0,
       0,
       client_getredir,
       "connection",
       "Where invalidations go.",
       {},
       "client"},
      {"trackinginfo",
       2,
       any_client,
       0,
       0,
       0,
       client_trackinginfo,
       "connection",
       "Describes tracking.",
       {},
       "client"},
      {"help", 2, loading | stale, 0, 0, 0, client_help, "connection", "Explains CLIENT.", {}, "client"},
  };
  static constexpr Command commands[] = {
      {"client", -2, 0, 0, 0, 0, nullptr, "connection", "Looks at and manages clients.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
