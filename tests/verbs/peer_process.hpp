// The test's view of a running peer program.
#pragma once

#include <sys/types.h>

#include "peer_protocol.hpp"

namespace weir::verbs_test {

class PeerProcess {
 public:
  PeerProcess();
  ~PeerProcess();  // kills it if it still runs
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  Reply order(const Request& request) {
    start(request);
    return finish();
  }
  // In two halves, for orders that take their time.
  void start(const Request& request) const;
  Reply finish() const;

  void kill();  // SIGKILL, and waits for the end
  void stop();  // SIGSTOP, and waits until it stands still
  void go_on();
  void exec_again();  // wherever it is, it becomes the peer program anew, which awaits orders
  // It returns from main without destroying anything; its exit status.
  int leave(const Request& how = {.order = Order::leave});

 private:
  pid_t pid_ = -1;
  int control_ = -1;
};

}  // namespace weir::verbs_test
