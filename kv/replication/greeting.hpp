// How a replica introduces itself to its primary: one line for each fact, then the answer to PSYNC.
//
// A step maps (state, line) to the next line to send, or to the outcome; no I/O, no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::kv::repl {

class Greeting {
 public:
  // A longer line ends the greeting.
  static constexpr std::size_t longest_line = 1024;

  struct Self {
    std::string user, password;  // empty: none
    std::uint16_t port = 0;      // where it listens
    std::string address;         // empty: the source address of the connection
    std::string history;         // the history it already has; empty: none
    std::int64_t position = 0;   // its position in that history
    bool failover = false;       // asks the other to take over
  };
  enum class Outcome : std::uint8_t {
    goes_on,    // say() has more to send, or wait for the primary
    refused,    // error() says why
    continues,  // the stream follows; history() is its new name
    full        // a snapshot of position() in history() follows
  };

  explicit Greeting(Self self) : self_(std::move(self)) { next(); }

  // The bytes to send now; empty: none.
  std::string say() { return std::exchange(say_, {}); }
  // The primary's next line, without its line end.
  Outcome take(std::string_view line);

  // A primary that is busy with its snapshot sends empty lines to show that it is still there.
  bool may_wait() const { return step_ == Step::psync; }

  // Whether the other has been asked to take over.
  bool asked_to_take_over() const { return self_.failover && step_ == Step::psync; }

  const std::string& error() const { return error_; }
  const std::string& history() const { return history_; }
  std::int64_t position() const { return position_; }

 private:
  enum class Step : std::uint8_t { begin, ping, auth, port, address, abilities, version, psync };

  void next();
  Outcome answer_to_psync(std::string_view line);
  Outcome refuse(std::string why);

  Self self_;
  Step step_ = Step::begin;
  std::string say_;
  std::string error_;
  std::string history_;
  std::int64_t position_ = 0;
};

}  // namespace weir::kv::repl
