// Finds the start and end of a snapshot in a primary's stream: after "$LENGTH", or up to the mark that
// "$EOF:MARK" named. Newlines before it show that the primary is alive.
//
// It keeps no bytes: the caller offers all that it has and drops what was taken. Threading: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::kv::repl {

class SnapshotFrame {
 public:
  static constexpr std::size_t mark_size = 40;

  struct Taken {
    std::size_t bytes = 0;     // processed bytes of the input
    std::string_view content;  // the part of them that belongs to the snapshot
  };
  // Takes what it can of `input`. Nothing taken: it needs more, the snapshot has ended, or failed() is true.
  Taken take(std::string_view input);

  bool ended() const { return state_ == State::ended; }
  bool failed() const { return state_ == State::failed; }
  // The snapshot's size; 0: unknown.
  std::uint64_t size() const { return size_; }

 private:
  enum class State : std::uint8_t { head, counted, marked, ended, failed };

  Taken take_head(std::string_view input);

  State state_ = State::head;
  std::uint64_t size_ = 0;
  std::uint64_t left_ = 0;
  std::string mark_;
};

}  // namespace weir::kv::repl
