// The one interface between the server and its transports.
//
// A Connection carries the bytes of one client. tcp, unix, tls and rdma each implement it in a file of their
// own; the listener that accepted the client chose which. A Session is the other side: it takes received
// bytes and keeps the queue of bytes to send. Code above this interface does not know which kind it has.
//
// A connection passes on bytes that it has already received, however its transport delivers them, and takes
// all replies of a batch at once. So each transport can use its cheapest way: one recv and one send per batch
// on a socket, one copy and one WRITE_WITH_IMM over RDMA.
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
  // Received bytes. They belong to the connection and are valid only during the call.
  virtual void received(std::span<const char> bytes) = 0;
  // Where the next bytes should go if the transport can choose (a large value under construction); empty:
  // anywhere. filled() says how many came; until then the place stays valid.
  virtual std::span<char> wanted() = 0;
  virtual void filled(std::size_t bytes) = 0;
  // How many bytes the session takes now. 0: none, because too much waits to be sent. The bytes stay in the
  // transport, whose peer sees a full window. Ask again on flush().
  virtual std::size_t appetite() const = 0;
  // The queue of bytes to send.
  virtual ReplyQueue& outgoing() = 0;  // may close the connection
  // The whole queue has been sent.
  virtual void drained() = 0;
  // The peer sends no more. True: replies to what it sent are still to come, so the connection goes on
  // sending, and the session closes it when they have left. False: it is over, and lost() follows.
  virtual bool peer_ended() { return false; }
  // The peer is gone or the transport failed; the connection makes no further call.
  virtual void lost(std::string_view why) = 0;
};

class Connection {
 public:
  virtual ~Connection() = default;

  // Starts delivering bytes. The session outlives the connection.
  virtual void start(Session& session) = 0;
  // Sends as much of the session's queue as it can, continues by itself, and finally calls
  // Session::drained(). Then resumes receiving if the session has an appetite again.
  virtual void flush() = 0;
  // Ends the connection at once. No call into the session follows, and bytes not yet taken are not sent.
  virtual void close() = 0;
  // Whether the session can already talk. A connection that must first agree on something with
  // its peer (TLS, or a buffer for replies over RDMA) is not established until then. The server
  // limits how long that may take.
  virtual bool established() const { return true; }
  // After close(): the transport no longer refers to this object or to the session's queue.
  virtual bool finished() const = 0;

  virtual std::string_view kind() const = 0;  // "tcp", "unix", "tls", "rdma", "rdma-tls"
  // As CLIENT LIST prints it: "127.0.0.1:4711", "/run/x.sock:0".
  virtual std::string peer_address() const = 0;
  virtual std::string local_address() const = 0;
  virtual bool local() const = 0;                // on this host: protected mode lets it in
  virtual int descriptor() const { return -1; }  // for CLIENT LIST; -1: none
};

}  // namespace weir::kv
