// The process's Connection objects. They are made on demand, reused, and never freed, so a thread may look at
// one while another thread closes it.
//
// Threading: any thread.
#pragma once

#include <functional>

#include "sockets/calls/held_signals.hpp"
#include "sockets/connection.hpp"
#include "sockets/descriptors.hpp"
#include "sockets/reason.hpp"

namespace weir::sockets {

class ConnectionObjects {
 public:
  // Guards which objects are free, and how many descriptors each connection has.
  static SectionMutex& mutex();
  // An observed connection with one descriptor; null: too many are open. The mutex is held.
  static Connection* take(bool accepted);
  // The connection is closed, and nothing of it is left.
  static void recycle(Connection& it);

  static void all_stay(Reason why);  // also applies to later connections
  static void each(const std::function<void(int fd, Connection&)>& visit);  // each descriptor of every one
  static void each_once(const std::function<void(int fd, Connection&)>& visit);

  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
};

// Keeps a connection object from being reused while a thread works with it.
class Use {
 public:
  explicit Use(int fd) : connection_(Descriptors::find(fd)) {
    if (connection_ == nullptr) return;
    connection_->users().fetch_add(1);
    if (Descriptors::find(fd) == connection_) return;
    connection_->users().fetch_sub(1);
    connection_ = nullptr;
  }
  ~Use() {
    if (connection_ != nullptr) connection_->users().fetch_sub(1);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const { return connection_ != nullptr; }
  Connection* operator->() const { return connection_; }
  Connection& operator*() const { return *connection_; }

 private:
  Connection* connection_;
};

}  // namespace weir::sockets
