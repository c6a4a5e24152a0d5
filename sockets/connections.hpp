// What happens to the program's descriptors, told by its calls: sockets and epoll sets are made, copied and
// closed, and the process forks, executes another program or ends. Any thread.
#pragma once

#include "sockets/connection.hpp"

namespace weir::sockets {

class Connections {
 public:
  // A connection, or a socket that may become one, was created. Without room it is not tracked.
  static void born(int fd, bool accepted = false);
  static void copied(int fd, int copy);  // by dup and the like
  static void closing(int fd);           // before the kernel's close of that descriptor
  static void forget(int fd);            // the number belongs to something else now
  // The kernel has ended that connection, but not its descriptors, which may be connected again.
  static void disconnected(int fd);
  static void set_born(int fd);
  static void passed_on(int fd);   // in a message, to a process that may wait on it or use it
  static void sets_are_watched();  // by calls that we do not see
  // After each call on a connection that is not engaged: looks for its peer when it is time, and engages it
  // when all is ready.
  static void consider(int fd, Connection& it);

  // Returns connections to other hosts to TCP: a child cannot use the parent's RDMA resources.
  static void leave_before_fork();
  // The process is about to end: bytes in a ring to another host must arrive before its connection ends.
  // `by_exec`: only for the connections that exec closes.
  static void part_all(bool by_exec);
  // This process is about to end or to run another program: processes that share connections with it may
  // then become their only holders.
  static void leave_holders(bool closed_by_exec_alone);
  static void join_holders();  // the process did not end after all
  // This thread is about to filter its system calls. Everything returns to TCP, and from then on the
  // program's calls are the kernel's alone: none of ours may be among them, not even at the end.
  static void step_aside();
  static bool stepped_aside();

 private:
  static void end_of(int fd, bool open);
};

}  // namespace weir::sockets
