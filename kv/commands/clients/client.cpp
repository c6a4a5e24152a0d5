// CLIENT: lists and manages the server's clients.
#include "kv/clients/client.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "kv/call/call.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/clients/client_line.hpp"
#include "kv/clients/client_pause.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/clients/client_filter.hpp"
#include "kv/commands/clients/client_tracking.hpp"
#include "kv/commands/help.hpp"
#include "kv/core/primary.hpp"
#include "kv/replication/replication.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

void id(const Call& call) { call.reply.integer(static_cast<std::int64_t>(call.client.id())); }
void client_info(const Call& call) {
  call.reply.verbatim("txt", describe_client(call.client, call.server.steady_ms) + '\n');
}

void client_list(const Call& call) {
  ClientFilter filter;
  if (!parse_client_filter(call, 2, "ERR Invalid client ID", filter)) return;
  std::string text;
  for (const auto& [number, client] : call.server.clients) {
    if (filter.selects(*client, call.client, call.server.steady_ms))
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
  (version ? call.client.program.version : call.client.program.library) = call[3];
  call.reply.ok();
}

void kill(const Call& call) {
  ClientFilter filter;
  const bool old_form = call.count() == 3;
  filter.skip_me = !old_form;
  if (old_form) {
    filter.peer.is = call[2];
  } else if (!parse_client_filter(call, 2, "ERR client-id should be greater than 0", filter)) {
    return;
  }
  std::vector<Client*> chosen;
  for (const auto& [number, client] : call.server.clients) {
    if (filter.selects(*client, call.client, call.server.steady_ms)) chosen.push_back(client.get());
  }
  repl::Primary* const primary = call.server.replication->link();
  const std::string address = primary == nullptr ? std::string() : primary->peer_address();
  const bool primary_too =
      primary != nullptr && !primary->transport().empty() && filter.selects_primary(address);
  if (primary_too) primary->disconnect("a client has killed the connection");
  if (!old_form) {
    call.reply.integer(static_cast<std::int64_t>(chosen.size()) + (primary_too ? 1 : 0));
  } else if (chosen.empty() && !primary_too) {
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

// Valkey 8's: what the client's program can do. Unknown ones are left to later versions.
void capa(const Call& call) {
  for (const Argument& word : call.arguments.subspan(2))
    call.client.program.redirects |= is_word(word.text, "redirect");
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
      {"capa", -3, any_client, 0, 0, 0, capa, "connection", "Says what it can do.", {}, "client"},
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
