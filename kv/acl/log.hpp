// Recent refusals and the clients concerned: ACL LOG.
//
// The same refusal again within a minute counts as one entry. Bounded: acllog-max-len entries, and each keeps
// only a limited part of what its client sent. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace weir::kv::acl {

enum class Reason : std::uint8_t { command, key, channel, auth };
enum class Context : std::uint8_t { toplevel, multi, lua };

std::string_view text_of(Reason reason);
std::string_view text_of(Context context);

class Log {
 public:
  static constexpr std::size_t kept_of_text = 4096;

  struct Entry {
    Reason reason;
    Context context;
    std::string object;  // the command, key or channel
    std::string user;
    std::string client;  // as CLIENT LIST shows it
    std::int64_t at_ms;  // the last time
    std::uint64_t count = 1;
  };

  void add(Entry entry, std::size_t most_entries);
  void clear() { entries_.clear(); }
  const std::deque<Entry>& entries() const { return entries_; }  // newest first

 private:
  std::deque<Entry> entries_;
};

}  // namespace weir::kv::acl
