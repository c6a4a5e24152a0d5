// What the process's descriptors are: TCP connections that may change carriers, or epoll sets. A table by
// number that is read without a lock.
//
// Threading: any thread. An entry changes when its descriptor is made or closed, which is the program's to
// order.
#pragma once

namespace weir::sockets {

class Connection;
class EventSet;

class Descriptors {
 public:
  static bool has_place_for(int fd);  // false: such a descriptor is not tracked
  static Connection* find(int fd);    // null: leave the descriptor alone
  static EventSet* find_set(int fd);
  static bool is_known(int fd);                          // a connection or a set
  static unsigned count();                               // all numbers that ever were are lower
  static int next_known(unsigned first, unsigned last);  // the lowest such descriptor; -1: none

  static void put(int fd, Connection& it);
  static void put(int fd, EventSet& set);
  static void clear(int fd);
};

}  // namespace weir::sockets
