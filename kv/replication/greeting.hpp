// How a replica introduces itself to its primary: a line for each thing it says, then the answer to PSYNC.
//
// A step is (state, line) -> what to say next, or how it ended; no I/O, no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weir::kv::repl {

class Greeting {
 public:
  // Longer lines end it.
  static constexpr std::size_t longest_line = 1024;

  struct Self {
    std::string user, password;  // empty: it has none
    std::uint16_t port = 0;      // where it listens
    std::string address;         // empty: where it comes from
    std::string history;         // that it has; empty: none
    std::int64_t position = 0;   // up to there
  };
  enum class Outcome : std::uint8_t {
    goes_on,    // say() has more to say, or the primary has
    refused,    // error() says why
    continues,  // the stream follows; history() is its name now
    full        // a snapshot follows, which stands at position() of history()
  };

  explicit Greeting(Self self) : self_(std::move(self)) { next(); }

  // What to send now; empty: nothing.
  std::string say() { return std::exchange(say_, {}); }
  // The primary's next line, without its end.
  Outcome take(std::string_view line);

  // The primary may be busy with its snapshot, and says with empty lines that it is still there.
  bool may_wait() const { return step_ == Step::psync; }

  const std::string& error() const { return error_; }
  const std::string& history() const { return history_; }
  std::int64_t position() const { return position_; }

 private:
  enum class Step : std::uint8_t { begin, ping, auth, port, address, abilities, psync };

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
