// The replication stream: every change since somebody first asked for it, as bytes that all replicas get
// alike.
//
// Each byte has a position, which is how many came before it; a replica that has the same history up to a
// position needs what stands from there on and nothing else. Positions of the protocol are one larger: there
// the first byte is number 1. A history is named by an id. A server that takes over from its primary goes on
// under an id of its own and remembers the old one with the position up to which it holds for both.
//
// The bytes lie in blocks, which are forgotten from the front; whoever keeps the history says from where on
// they are still wanted. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace weir::kv::repl {

class History {
 public:
  static constexpr std::size_t block_size = std::size_t{64} << 10;
  static constexpr std::size_t id_size = 40;

  explicit History(std::string id) : id_(std::move(id)) {}

  // Whether bytes are kept. While they are not, positions do not advance.
  bool kept() const { return kept_; }
  void keep() { kept_ = true; }
  // Stops keeping bytes. Changes made meanwhile are in no history, so it continues under another id.
  void stop(std::string id);

  const std::string& id() const { return id_; }
  const std::string& previous_id() const { return previous_id_; }  // empty: there is none
  std::int64_t previous_end() const { return previous_end_; }

  std::int64_t begin() const { return begin_; }  // the oldest position of which the byte is here
  std::int64_t end() const { return end_; }

  void append(std::string_view bytes);
  // The bytes from a position on, as many as lie together; none at the end. begin() <= position <= end().
  std::string_view from(std::int64_t position) const;
  // Whole blocks in front of it.
  void forget_before(std::int64_t position);

  // Whether a replica that knows the history `id` up to `position` can go on from there.
  bool can_continue(std::string_view id, std::int64_t position) const;

  // Takes over another server's history, of which only what comes after `position` will be known here.
  void adopt(std::string id, std::int64_t position);
  // The server that wrote it took over from another: the same bytes under another name.
  void rename(std::string id);

  // The database that is selected at the end; -1: the next request has to select one.
  int database = -1;

 private:
  std::string id_;
  std::string previous_id_;
  std::int64_t previous_end_ = -1;
  bool kept_ = false;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::deque<std::string> blocks_;  // each but the last is full; the first begins at begin_
};

}  // namespace weir::kv::repl
