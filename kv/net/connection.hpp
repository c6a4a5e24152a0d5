// The one seam between the server and the ways to reach it.
//
// A Connection carries bytes of one client; tcp, unix, tls and rdma each implement it in a file of their own
// and the listener that accepted the client chose which. A Session is the other side: it takes the bytes that
// arrived and keeps the queue of bytes to send. Nothing above this seam knows which kind it has.
//
// Shape: a connection hands over bytes it has already received, however its transport delivers them, and
// takes all replies of a batch at once; so each transport can use its cheapest way (one recv and one send a
// batch on a socket, one copy and one WRITE_WITH_IMM over RDMA).
//
// Threading: everything runs on the server's one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kv/resp/reply_queue.hpp"

namespace weir::kv {

class Session {
 public:
  virtual ~Session() = default;
  // Bytes as they arrived. They are the connection's and stay valid during the call only.
  virtual void received(std::span<const char> bytes) = 0;
  // Where the next bytes should be received if the transport can choose (a large value under construction);
  // empty: no wish. filled() says how many came; until then the place stays valid.
  virtual std::span<char> wanted() = 0;
  virtual void filled(std::size_t bytes) = 0;
  // How many bytes the session takes at a time now. 0: none, because too much waits to be sent; they stay
  // with the transport, whose peer sees a full window. Ask again on flush().
  virtual std::size_t appetite() const = 0;
  // What waits to be sent.
  virtual ReplyQueue& outgoing() = 0;  // may close the connection
  // Everything that was queued is sent.
  virtual void drained() = 0;
  // The peer is gone or the transport failed; the connection calls nothing after this.
  virtual void lost(std::string_view why) = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;

  // Begins to deliver. The session outlives the connection.
  virtual void start(Session& session) = 0;
  // Sends what the session has queued, as far as it goes now; goes on by itself and ends with
  // Session::drained(). Then goes on receiving, if the session has an appetite again.
  virtual void flush() = 0;
  // Ends it at once; no call into the session follows. What the transport has not taken is not sent.
  virtual void close() = 0;
  // Whether the session can talk already. A connection that first has to agree with its peer on something
  // (TLS, a buffer to write replies to over RDMA) is not established until then, and the server limits how
  // long that may take.
  virtual bool established() const { return true; }
  // After close(): nothing of the transport refers to this object or to the session's queue any more.
  virtual bool finished() const = 0;

  virtual std::string_view kind() const = 0;  // "tcp", "unix", "tls", "rdma", "rdma-tls"
  // As CLIENT LIST prints it: "127.0.0.1:4711", "/run/x.sock:0".
  virtual std::string peer_address() const = 0;
  virtual std::string local_address() const = 0;
  virtual bool local() const = 0;                // on this host: what protected mode lets in
  virtual int descriptor() const { return -1; }  // for CLIENT LIST; -1: none
};

}  // namespace weir::kv
