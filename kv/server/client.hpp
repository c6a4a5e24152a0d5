// One client: what it has sent, what it will be sent, and what the server remembers of it.
//
// As a Session it takes the connection's bytes, cuts them into requests and has each executed. Bytes of a
// request that has not arrived whole are kept in `pending_`, which starts at that request's first byte; an
// idle client keeps none.
//
// A client whose command blocks takes no further request until it is served: its bytes pile up in `pending_`,
// bounded by client-query-buffer-limit. One that does not read its replies is not executed further either,
// and no longer read from once ClientLimits::behind bytes have piled up.
//
// Until it authenticates these limits are small, and what it holds counts towards what all such clients may
// hold together. What one request made large becomes small again
// when that request is over. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/net/connection.hpp"
#include "kv/replication/replica.hpp"
#include "kv/resp/reply.hpp"
#include "kv/resp/request.hpp"
#include "kv/text_hash.hpp"

namespace weir::kv {

class Server;
struct Command;
struct BlockedOn;
struct TrackingMode;

namespace acl {
class User;
}

namespace cluster {
class Lane;
}

// What MULTI opened: the commands that EXEC will run, and what WATCH guards.
struct Transaction {
  struct Queued {
    const Command* command;
    std::vector<Bytes> words;
  };
  struct Watched {
    int db;
    std::string key;
    bool expired;  // it had expired already when it was watched: its going is no change
  };
  bool open = false;
  bool spoiled = false;  // a command could not be queued: EXEC answers EXECABORT
  bool broken = false;   // a watched key changed: EXEC answers null
  std::vector<Queued> queued;
  std::size_t queued_bytes = 0;  // what the queued commands take
  std::vector<Watched> watched;
};

struct Subscriptions {
  TextSet channels, patterns, shard_channels;
  std::size_t count() const { return channels.size() + patterns.size(); }
  bool any() const { return !channels.empty() || !patterns.empty() || !shard_channels.empty(); }
};

// What one client may make the server hold before it reads its replies.
struct ClientLimits {
  std::size_t at_once;  // bytes taken from its transport at a time
  std::size_t unsent;   // so much waits to be sent: it is not executed further
  std::size_t behind;   // and so many bytes of requests came in behind that: it is not read from
  std::size_t query;    // bytes of requests, whole and in parts: it is closed
};

enum class Replies : std::uint8_t { on, off, skip_next, skipping };

class Client final : public Session {
 public:
  Client(Server& server, std::uint64_t id, std::unique_ptr<Connection> connection);
  ~Client() override;

  // Session
  void received(std::span<const char> bytes) override;
  std::span<char> wanted() override;
  void filled(std::size_t bytes) override;
  std::size_t appetite() const override;
  ReplyQueue& outgoing() override;
  void drained() override;
  void lost(std::string_view why) override;

  std::uint64_t id() const { return id_; }
  Connection& connection() const { return *connection_; }
  std::size_t pending_bytes() const { return pending_.size() + parser_.held_bytes(); }
  // Room for requests that is not used, and what the arguments of one take beside their bytes.
  std::size_t free_query_bytes() const { return pending_.capacity() - pending_.size(); }
  std::size_t argument_bytes() const { return parser_.list_bytes(); }
  // All that it makes the server hold, itself included.
  std::size_t memory() const;
  // The same with what is being executed now and what came in behind it.
  std::size_t query_bytes() const {
    return processing_ ? unexecuted_ + parser_.held_bytes() : pending_bytes();
  }

  // Whether it reads this client's requests now: not while it waits, is paused or ends.
  bool takes_requests() const { return !blocked && !script_runs && !ends() && !stalled_ && !paused_; }
  // Whether its next request waits for the end of CLIENT PAUSE, or for something of a gateway's.
  bool paused() const { return paused_; }
  // Executes what has piled up meanwhile.
  void resume();

  // CLIENT REPLY. Pushes and confirmations of subscriptions come all the same.
  Replies replies() const { return replies_; }
  void set_replies(Replies replies);
  // A command is over, or what it waited for has come: SKIP goes on to the next command.
  void end_of_command();

  // Whether it has given its user's password, or none was needed when it came.
  bool authenticated() const { return stranger_ == 0; }
  void become_stranger();
  void let_in();

  // Counts what the client holds towards the limit for all strangers, or no longer; closes it if that is too
  // much.
  void charge();
  std::size_t charged_bytes() const { return charged_bytes_; }

  // Ends it at once; the server frees it at the end of the round.
  void close();

  // What commands read and set.
  ReplyQueue output;
  Reply reply;  // writes into `output`
  std::string name;
  std::string library, library_version;  // as the program it runs says: CLIENT SETINFO
  const acl::User* user = nullptr;       // set when it comes; never null then
  int db = 0;
  bool no_evict = false;
  bool no_touch = false;  // what it does leaves no trace of use in the keys
  bool monitors = false;  // see Monitors
  bool close_after_reply = false;
  bool closing = false;
  bool dirty = false;    // in the server's list of clients with something to send
  bool in_exec = false;  // its transaction or script runs: blocking commands answer at once
  bool in_script = false;
  bool script_runs = false;  // its script took too long and goes on beside the others' requests
  Transaction transaction;
  Subscriptions subscriptions;
  std::unique_ptr<BlockedOn> blocked;
  std::unique_ptr<TrackingMode> tracking;  // null: it is told of no changes
  std::unique_ptr<repl::Replica> replica;  // null: it has not said that it is one
  std::shared_ptr<cluster::Lane> lane;     // of a gateway: replies that it waits for; null: none yet
  const Command* last_command = nullptr;
  std::int64_t created_ms = 0;
  std::int64_t active_ms = 0;
  std::int64_t over_soft_limit_since_ms = 0;  // 0: it is not

  bool is_replica() const { return replica != nullptr && replica->follows(); }
  // In RESP2 a subscriber may only manage its subscriptions.
  bool only_pubsub() const { return subscriptions.any() && !reply.resp3(); }

 private:
  std::size_t process(std::string_view input);
  void take(std::string_view input);
  bool refuse_too_much();
  ClientLimits limits() const;
  void refuse(const std::string& protocol_error);
  // What comes in is of no use any more.
  bool ends() const { return closing || close_after_reply || ends_later_; }

  Server& server_;
  std::uint64_t id_;
  std::unique_ptr<Connection> connection_;
  RequestParser parser_;
  std::string pending_;
  std::uint64_t stranger_ = 0;     // its number among Server::strangers; 0: it is none of them
  std::size_t charged_bytes_ = 0;  // of Strangers::bytes
  std::size_t unexecuted_ = 0;     // while requests are executed: bytes of this one and of those behind it
  bool stalled_ = false;           // too much waits to be sent: no further request until that is less
  bool paused_ = false;            // its next request, parsed already, waits: see paused()
  bool ends_later_ = false;        // its requests are unreadable, and replies come before that is said
  bool processing_ = false;
  Replies replies_ = Replies::on;
};

}  // namespace weir::kv
