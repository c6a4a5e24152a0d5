#include "kv/acl/log.hpp"

#include <algorithm>
#include <cstdlib>

namespace weir::kv::acl {

namespace {

constexpr std::int64_t same_within_ms = 60'000;
constexpr std::size_t looked_at = 10;

bool is_same(const Log::Entry& a, const Log::Entry& b) {
  return a.reason == b.reason && a.context == b.context && a.object == b.object && a.user == b.user &&
         std::abs(a.at_ms - b.at_ms) <= same_within_ms;
}

}  // namespace

std::string_view text_of(Reason reason) {
  constexpr std::string_view texts[] = {"command", "key", "channel", "auth"};
  return texts[static_cast<std::size_t>(reason)];
}
std::string_view text_of(Context context) {
  constexpr std::string_view texts[] = {"toplevel", "multi", "lua"};
  return texts[static_cast<std::size_t>(context)];
}

void Log::add(Entry entry, std::size_t most_entries) {
  for (std::string* text : {&entry.object, &entry.user, &entry.client}) {
    if (text->size() > kept_of_text) text->resize(kept_of_text);
  }
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(std::min(entries_.size(), looked_at));
  const auto known =
      std::find_if(entries_.begin(), end, [&](const Entry& one) { return is_same(one, entry); });
  if (known != end) {
    entry.count = known->count + 1;
    entries_.erase(known);
  }
  entries_.push_front(std::move(entry));
  while (entries_.size() > most_entries) entries_.pop_back();
}

}  // namespace weir::kv::acl
