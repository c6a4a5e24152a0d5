// The most recent commands that took long, or whose request or reply was large; newest first.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::kv {

class SlowLog {
 public:
  struct Entry {
    std::uint64_t id;
    std::int64_t time_s;
    std::int64_t amount;             // microseconds, or bytes
    std::vector<std::string> words;  // shortened as Redis does: 32 words of 128 bytes
    std::string peer, client_name;
  };

  void add(std::int64_t time_s, std::int64_t amount, std::span<const std::string_view> words,
           std::string peer, std::string name, std::size_t most);
  void clear() { entries_.clear(); }
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  std::deque<Entry> entries_;
  std::uint64_t next_id_ = 0;
};

}  // namespace weir::kv
