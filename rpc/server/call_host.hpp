// What a running call asks of the connection that it came by. Threading: the connection's thread.
#pragma once

namespace weir::rpc {

class RunningCall;

class CallHost {
 public:
  // The call is over, however it ended; there may have been no memory to begin it.
  virtual void leave(RunningCall& call) = 0;
  // Its arguments were decoded: what they became counts, too.
  virtual void arguments_read(RunningCall& call) = 0;

 protected:
  ~CallHost() = default;
};

}  // namespace weir::rpc
