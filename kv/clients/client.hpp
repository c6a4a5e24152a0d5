// One client: its requests, its replies, and what the server remembers about it.
//
// As a Session it takes the connection's bytes, splits them into requests (client_input.hpp), and has each
// executed.
//
// A client whose command blocks takes no further request until it is served; its bytes pile up, bounded by
// client-query-buffer-limit. If a client does not read its replies, its requests are not executed,
// and once ClientLimits::behind bytes have piled up it is no longer read from. The same holds between the
// turns of a client whose requests take long (client_turns.hpp).
//
// Until a client authenticates these limits are small, and its memory counts towards the common limit of
// all such clients. Buffers that one request made large become small again when that request is over.
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/clients/client_input.hpp"
#include "kv/core/replica.hpp"
#include "kv/net/connection.hpp"
#include "kv/resp/reply.hpp"
#include "kv/resp/request.hpp"
#include "kv/text/text_hash.hpp"

namespace weir::kv {

class ClientHost;
struct Command;
struct BlockedOn;
struct ServerCommon;
struct TrackingMode;

namespace acl {
class User;
}

namespace cluster {
class Lane;
}

// State opened by MULTI and WATCH: the commands that EXEC will run, and the keys that guard it.
struct Transaction {
  struct Queued {
    const Command* command;
    std::vector<Bytes> words;
  };
  struct Watched {
    int db;
    std::string key;
    bool expired;  // already expired when first watched: its removal is no change
  };
  bool open = false;
  bool spoiled = false;  // a command could not be queued: EXEC replies EXECABORT
  bool broken = false;   // a watched key changed: EXEC replies null
  std::vector<Queued> queued;
  std::size_t queued_bytes = 0;  // memory of the queued commands
  std::vector<Watched> watched;
  std::size_t watched_bytes = 0;  // memory of the watched keys
};

struct Subscriptions {
  TextSet channels, patterns, shard_channels;
  std::size_t text_bytes = 0;  // of all of them
  std::size_t count() const { return channels.size() + patterns.size(); }
  bool any() const { return !channels.empty() || !patterns.empty() || !shard_channels.empty(); }
};

// What a client's program reports of itself: CLIENT SETINFO, CLIENT CAPA.
struct ReportedProgram {
  std::string library, version;
  bool redirects = false;  // it follows a reply REDIRECT
};

// Since the client connected. A command counts when it has run, a blocking one when its wait is over.
struct Traffic {
  std::uint64_t bytes_in = 0, bytes_out = 0, commands = 0;
  std::int64_t over_soft_limit_since_ms = 0;  // of what is to be sent; 0: not over it
};

// How much one client may make the server hold before it reads its replies.
struct ClientLimits {
  std::size_t at_once;  // bytes taken from its transport at a time
  std::size_t unsent;   // above this much unsent output nothing more is executed
  std::size_t behind;   // above this much piled-up input it is not read from
  std::size_t query;    // above this much request data, whole and partial, it is closed
};

// What the client has not shown yet: its numbers among Strangers; 0: it has.
struct Lacks {
  std::uint64_t password = 0;
  std::uint64_t request = 0;
  bool bytes = true;  // it has sent nothing
};

enum class Replies : std::uint8_t { on, off, skip_next, skipping };

class Client final : public Session {
 public:
  Client(ServerCommon& server, ClientHost& host, std::uint64_t id, std::unique_ptr<Connection> connection);
  ~Client() override;

  // Session
  void received(std::span<const char> bytes) override;
  std::span<char> wanted() override;
  void filled(std::size_t bytes) override;
  std::size_t appetite() const override;
  ReplyQueue& outgoing() override;
  void drained() override;
  bool peer_ended() override;
  void lost(std::string_view why) override;

  std::uint64_t id() const { return id_; }
  Connection& connection() const { return *connection_; }
  const ClientInput& input() const { return input_; }
  // All memory that the server holds for this client, including the object itself.
  std::size_t memory() const;

  // Whether its requests are read now: not while it waits, is paused, or is ending.
  bool takes_requests() const {
    return !blocked && !script_runs && !ends() && input_.waits() == ClientInput::Waits::no;
  }
  // Whether its next request waits for the end of CLIENT PAUSE or for a gateway.
  bool paused() const { return input_.waits() == ClientInput::Waits::for_turn; }
  // Executes what has piled up.
  void resume() { process({}); }
  // Likewise, in a turn of its own.
  void resume_later();
  void take_turn();
  // It has output to send at the end of the round.
  void will_flush();
  // It was served; it continues with its next request at the end of the round.
  void will_resume();
  // Its side is ended, and a gateway has answered all that it sent: closed when that has left.
  void end_if_answered();

  // CLIENT REPLY. Pushes and subscription confirmations are sent regardless.
  Replies replies() const { return replies_; }
  void set_replies(Replies replies);
  // A command is over, or a wait has ended: SKIP applies to the next command.
  void end_of_command();

  // For a command of this client. Within a script or a transaction time stands still, so that nothing expires
  // between two of its commands.
  void refresh_time() const;

  // Whether it has given its user's password, or needed none when it connected.
  bool authenticated() const { return lacks_.password == 0; }
  void become_stranger();
  void let_in();
  // It has a seat, and until its first request may have to leave for another client (Strangers).
  void owe_request();

  // Adjusts the client's share of the memory limit for all strangers; closes the client if
  // the limit is exceeded.
  void charge();
  std::size_t charged_bytes() const { return charged_bytes_; }
  // Adjusts the client's share of maxmemory-clients.
  void recount();
  std::size_t budgeted_bytes() const { return budgeted_bytes_; }

  // Closes it at once; the server frees it at the end of the round.
  void close();

  // Read and set by commands.
  ReplyQueue output;
  Reply reply;  // writes into `output`
  std::string name;
  ReportedProgram program;
  Traffic traffic;
  const acl::User* user = nullptr;  // set on connecting; never null after that
  int db = 0;
  bool no_evict = false;
  bool no_touch = false;  // its commands leave no trace of use in the keys
  bool monitors = false;  // see Monitors
  bool close_after_reply = false;
  bool closing = false;
  bool dirty = false;    // in the server's list of clients with something to send
  bool in_exec = false;  // its transaction or script runs: blocking commands do not block
  bool in_script = false;
  bool script_runs = false;  // its script exceeded its time and continues beside other requests
  Transaction transaction;
  Subscriptions subscriptions;
  std::unique_ptr<BlockedOn> blocked;
  std::unique_ptr<TrackingMode> tracking;  // null: tracking is off
  std::unique_ptr<repl::Replica> replica;  // null: it has not introduced itself as a replica
  std::shared_ptr<cluster::Lane> lane;     // replies that it awaits from a gateway; null: none yet
  const Command* last_command = nullptr;
  std::int64_t created_ms = 0;
  std::int64_t active_ms = 0;

  bool is_replica() const { return replica != nullptr && replica->follows(); }
  // In RESP2 a subscriber may only manage its subscriptions.
  bool only_pubsub() const { return subscriptions.any() && !reply.resp3(); }

 private:
  void process(std::string_view fresh);
  void take(std::string_view fresh);
  bool stalled() const { return input_.waits() == ClientInput::Waits::for_output; }
  // Whole requests wait, and are executed without the client sending more.
  bool behind() const { return stalled() || input_.waits() == ClientInput::Waits::for_others; }
  void heard();
  void end_turn();
  bool refuse_too_much();
  ClientLimits limits() const;
  void refuse(const std::string& protocol_error);
  // Further input is useless.
  bool ends() const { return closing || close_after_reply || ends_later_; }

  ServerCommon& server_;
  ClientHost& host_;
  std::uint64_t id_;
  std::unique_ptr<Connection> connection_;
  ClientInput input_;
  Lacks lacks_;
  std::size_t charged_bytes_ = 0;   // its share of Strangers::bytes
  std::size_t budgeted_bytes_ = 0;  // its share of ClientBudget
  bool half_closed_ = false;        // it sends no more: see peer_ended()
  bool ends_later_ = false;         // its requests are unreadable; earlier replies go before the error
  Replies replies_ = Replies::on;
};

}  // namespace weir::kv
