// One server as a pool knows it: its connections, when it may be tried again and why not before.
//
// Ownership: shared by the pool and by whoever waits for a connection that is being made. Threading: the
// io_context's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rpc/client.hpp"
#include "rpc/pool/balancer.hpp"
#include "rpc/pool/outliers.hpp"
#include "rpc/pool/pooled_server.hpp"

namespace weir::rpc {

struct PooledConnection {
  std::shared_ptr<Client> client;
  Clock::time_point used;
  std::weak_ptr<const void> ping = {};  // not expired: one is under way
};

struct KnownServer {
  explicit KnownServer(std::string at) : address(std::move(at)), identity(hash_of(address)) {}

  const std::string address;
  const std::uint64_t identity;
  bool listed = true;
  bool connecting = false;
  std::uint32_t awaited = 0;  // calls that will use the connection that is being made
  std::vector<PooledConnection> connections;
  Clock::time_point down_until{};
  std::uint32_t failures = 0;
  std::uint64_t calls = 0, failed_calls = 0;
  ServerRecord record;
  Error last_error;

  // It answered since it last failed. One that did not is connected to again when its wait is over, and then
  // pinged: that a connection can be made says nothing, since kernels and NICs make them for a program that
  // hangs.
  bool well() const { return failures == 0; }
  bool may_be_tried(Clock::time_point now) const { return down_until <= now; }
  void answered() {
    failures = 0;
    down_until = {};
  }
  void call_ended(const Error* error) {
    if (error == nullptr) {
      answered();
      ++record.well;
    } else if (counts_against_server(error->code)) {
      ++record.failed;
      ++failed_calls;
    }
  }
  std::uint32_t in_flight() const;
  // The least loaded that takes calls; null if none does.
  PooledConnection* best();
  void forget_ended();
  PooledServer report() const;
};
using KnownServerPtr = std::shared_ptr<KnownServer>;

// Until it ends, a new connection is not idle though no call is under way on it yet.
class AwaitingConnection {
 public:
  explicit AwaitingConnection(KnownServerPtr known) : known_(std::move(known)) { ++known_->awaited; }
  ~AwaitingConnection() { --known_->awaited; }
  AwaitingConnection(const AwaitingConnection&) = delete;
  AwaitingConnection& operator=(const AwaitingConnection&) = delete;

 private:
  const KnownServerPtr known_;
};

}  // namespace weir::rpc
