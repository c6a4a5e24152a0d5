// A client on a plain stream socket: the common part of tcp and unix.
//
// Reads when the poller reports input, into the poller's buffer or straight into a large value. Writes at
// once with a non-blocking send, and waits for room only when the socket is full.
#pragma once

#include <string>

#include "kv/net/connection.hpp"
#include "kv/net/poller.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv {

struct SocketNames {
  std::string_view kind;  // static text
  std::string peer;
  std::string local;
  bool same_host = false;
};

class SocketConnection final : public Connection, private SocketPoller::Watcher {
 public:
  // `fd` is non-blocking.
  SocketConnection(SocketPoller& poller, OwnedFd fd, SocketNames names);
  ~SocketConnection() override { close(); }

  void start(Session& session) override;
  void flush() override;
  void close() override;
  bool finished() const override { return true; }
  std::string_view kind() const override { return names_.kind; }
  std::string peer_address() const override { return names_.peer; }
  std::string local_address() const override { return names_.local; }
  bool local() const override { return names_.same_host; }
  int descriptor() const override { return fd_.get(); }

 private:
  void ready(std::uint32_t events) override;
  void read();
  void lose(int error);
  void watch(bool for_room);

  SocketPoller& poller_;
  OwnedFd fd_;
  SocketNames names_;
  Session* session_ = nullptr;
  std::uint32_t watched_ = EPOLLIN;  // the events that the poller reports
  bool peer_ended_ = false;          // it sends no more, and still gets replies
};

}  // namespace weir::kv
