// The replication stream: every change since the first replica asked for it, as bytes that are
// the same for all replicas.
//
// A byte's position is the number of bytes before it. A replica that has the same history up to a position
// needs only the bytes from there on. Positions in the protocol are one larger: there the first byte is
// number 1. An id names a history. A server that takes over from its primary continues under its own id, and
// remembers the old id with the position up to which both histories are equal.
//
// The bytes lie in blocks, which are dropped from the front; the owner says from which position on they are
// still needed. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace weir::kv::repl {

// A moment of a history, in which all data was as it was saved.
struct PlaceInHistory {
  std::string id;
  std::int64_t position = 0;
  int database = -1;  // see History
};

class History {
 public:
  static constexpr std::size_t block_size = std::size_t{64} << 10;
  static constexpr std::size_t id_size = 40;

  explicit History(std::string id) : id_(std::move(id)) {}

  // Whether bytes are kept. If not, positions do not advance.
  bool kept() const { return kept_; }
  void keep() { kept_ = true; }
  // Stops keeping bytes. Later changes are in no history, so it continues under another id.
  void stop(std::string id);

  const std::string& id() const { return id_; }
  const std::string& previous_id() const { return previous_id_; }  // empty: none
  std::int64_t previous_end() const { return previous_end_; }

  std::int64_t begin() const { return begin_; }  // the oldest position whose byte is here
  std::int64_t end() const { return end_; }

  // The memory of its bytes, and how much of that is beyond the newest `bytes`.
  std::size_t memory() const { return memory_of(blocks_.size()); }
  std::size_t memory_beyond(std::int64_t bytes) const;

  void append(std::string_view bytes);
  // The bytes from a position on that lie together; none at the end. begin() <= position <= end().
  std::string_view from(std::int64_t position) const;
  // Drops whole blocks before it.
  void forget_before(std::int64_t position);

  // Whether a replica that has the history `id` up to `position` can continue from there.
  bool can_continue(std::string_view id, std::int64_t position) const;

  // Takes over another server's history; only the bytes after `position` will be known here.
  void adopt(std::string id, std::int64_t position);
  // The server that wrote the history took over from another: the same bytes under another name.
  void rename(std::string id);

  // The database selected at the end; -1: the next request must select one.
  int database = -1;
  // Another server writes it, and this one follows that server.
  bool of_primary = false;

 private:
  std::size_t memory_of(std::size_t blocks) const;

  std::string id_;
  std::string previous_id_;
  std::int64_t previous_end_ = -1;
  bool kept_ = false;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  std::deque<std::string> blocks_;  // all but the last are full; the first begins at begin_
};

}  // namespace weir::kv::repl
