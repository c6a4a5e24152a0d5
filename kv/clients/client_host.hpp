// What a client asks of the server.
#pragma once

#include "kv/resp/request.hpp"

namespace weir::kv {

class Client;

class ClientHost {
 public:
  // Runs one request. Afterwards the reply is in the client's queue, or the client is blocked. False: the
  // client is paused, and the request must be offered again later.
  virtual bool execute(Client& client, Arguments arguments) = 0;
  // Closes the client, and returns true, if more output waits for it than client-output-buffer-limit ever
  // allows.
  virtual bool limit_output(Client& client) = 0;
  // Calls the client's take_turn() when others have had theirs.
  virtual void give_turn_later(Client& client) = 0;
  // Call before replies leave: writes the commands' effects to the log. If that is required and failed,
  // closes the clients whose replies wait.
  virtual void keep_effects() = 0;
  // What was queued for a replica has been sent.
  virtual void replica_drained(Client& client) = 0;
  // It ends: removes it from everything; freed at the end of the round.
  virtual void forget(Client& client) = 0;

 protected:
  ~ClientHost() = default;
};

}  // namespace weir::kv
