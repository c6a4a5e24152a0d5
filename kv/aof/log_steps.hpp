// The units in which a log takes effect: single requests, and transactions, which
// count only with their EXEC.
//
// Each next() reads one request, so the caller can do other work in between. Memory is bounded by the
// largest transaction in the log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kv/aof/log_reader.hpp"
#include "kv/text/bytes.hpp"

namespace weir::kv {
struct Command;
}

namespace weir::kv::aof {

class LogSteps {
 public:
  // part: of an unfinished transaction; wrong: not a request, or unmatched MULTI or EXEC.
  enum class Next : std::uint8_t { step, part, end, truncated, wrong };

  explicit LogSteps(LogReader::Source source) : reader_(std::move(source)) {}

  Next next();
  // After Next::step: calls `run` with the words of each request until it returns false.
  template <class Run>
  bool each(Run run) const {
    if (!was_transaction_) return run(reader_.arguments());
    std::vector<Argument> words;
    for (const Request& request : transaction_) {
      words.clear();
      for (const Bytes& word : request) words.push_back({word.view(), word.shared()});
      if (!run(Arguments(words))) return false;
    }
    return true;
  }
  bool was_transaction() const { return was_transaction_; }

  // How much of the file is complete: up to an unfinished request or a MULTI without its EXEC. After
  // Next::step: up to the start of that step.
  std::uint64_t whole_bytes() const { return whole_; }
  std::uint64_t bytes_read() const { return reader_.whole_bytes(); }
  const std::string& note() const { return reader_.note(); }
  // After Next::wrong: the problem and its byte.
  const std::string& error() const { return error_; }

 private:
  using Request = std::vector<Bytes>;

  Next take(Arguments words);
  Next wrong(std::string_view what);

  LogReader reader_;
  bool in_transaction_ = false, was_transaction_ = false;
  std::vector<Request> transaction_;
  std::uint64_t whole_ = 0;
  std::string error_;
};

// The command that a log's request runs. Null: there is no such command, it does not belong in a log, or
// the number of words is wrong.
const Command* logged_command(Arguments words);
std::string unknown_in_log(Arguments words);

}  // namespace weir::kv::aof
