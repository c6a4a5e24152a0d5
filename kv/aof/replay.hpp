// Runs the requests of one log file on the server's data, in small steps.
//
// Runs only what a log contains (log_steps.hpp): commands that write, SELECT, and MULTI ... EXEC, whose
// commands run together once EXEC has been read. While a server loads, nothing expires by itself
// (Keyspace::expire_nothing()): for a key that had expired when the log was written, the log has a DEL.
//
// Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kv/acl/user.hpp"
#include "kv/aof/log_steps.hpp"
#include "kv/call/server_parts.hpp"
#include "kv/clients/client.hpp"

namespace weir::kv::aof {

class Replay {
 public:
  enum class Outcome : std::uint8_t { more, end, truncated, failed };

  Replay(ServerParts& server, LogReader::Source source);
  ~Replay();

  // Runs for a few milliseconds.
  Outcome run();
  // How much of the file is complete: up to an unfinished request or a MULTI without its EXEC.
  std::uint64_t whole_bytes() const { return steps_.whole_bytes(); }
  std::uint64_t bytes_read() const { return steps_.bytes_read(); }
  std::uint64_t requests() const { return requests_; }
  // What the file says behind its last request; see LogReader.
  const std::string& note() const { return steps_.note(); }
  // After Outcome::failed.
  const std::string& error() const { return error_; }

 private:
  bool run_request(Arguments words);

  ServerParts& server_;
  LogSteps steps_;
  acl::User user_;  // may do everything, whatever the server's users are
  std::unique_ptr<Client> client_;
  std::uint64_t requests_ = 0;
  std::string error_;
};

}  // namespace weir::kv::aof
