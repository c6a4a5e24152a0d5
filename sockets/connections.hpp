// Maps the process's descriptors to TCP connections that may change carriers and to
// epoll sets. Any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "sockets/connection.hpp"

namespace weir::sockets {

class EventSet;

class Connections {
 public:
  // A connection, or a socket that may become one, was created. Without room it is not tracked.
  static void born(int fd, bool accepted = false);
  static void copied(int fd, int copy);                  // by dup and the like
  static void closing(int fd);                           // before the kernel's close of that descriptor
  static void forget(int fd);                            // the number belongs to something else now
  static void all_stay(Reason why);                      // also applies to later connections
  static Connection* find(int fd);                       // null: leave the descriptor alone
  static bool is_known(int fd);                          // a connection or a set
  static int next_known(unsigned first, unsigned last);  // the lowest such descriptor; -1: none
  static void each(const std::function<void(int fd, Connection&)>& visit);  // each descriptor of every one
  static void each_once(const std::function<void(int fd, Connection&)>& visit);

  static void set_born(int fd);
  static EventSet* find_set(int fd);

  // Returns connections to other hosts to TCP: a child cannot use the parent's RDMA resources.
  static void leave_before_fork();
  // The process is about to end: bytes in a ring to another host must arrive before its connection ends.
  // `by_exec`: only for the connections that exec closes.
  static void part_all(bool by_exec);

  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();
  // This process is about to end or to run another program: processes that share connections with it may
  // then become their only holders.
  static void leave_holders(bool closed_by_exec_alone);
  static void join_holders();  // the process did not end after all

  static void recycle(Connection& it);

 private:
  static void end_of(int fd, bool open);
};

// Keeps a connection object from being reused while a thread works with it.
class Use {
 public:
  explicit Use(int fd) : connection_(Connections::find(fd)) {
    if (connection_ == nullptr) return;
    connection_->users().fetch_add(1);
    if (Connections::find(fd) == connection_) return;
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
