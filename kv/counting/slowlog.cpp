#include "kv/counting/slowlog.hpp"

namespace weir::kv {

namespace {
constexpr std::size_t most_words = 32;
constexpr std::size_t most_bytes = 128;

std::string shortened(std::string_view word) {
  if (word.size() <= most_bytes) return std::string(word);
  std::string text(word.substr(0, most_bytes));
  return text.append("... (").append(std::to_string(word.size() - most_bytes)).append(" more bytes)");
}
}  // namespace

void SlowLog::add(std::int64_t time_s, std::int64_t amount, std::span<const std::string_view> words,
                  std::string peer, std::string name, std::size_t most) {
  Entry entry{next_id_++, time_s, amount, {}, std::move(peer), std::move(name)};
  const std::size_t kept = words.size() > most_words ? most_words - 1 : words.size();
  for (std::string_view word : words.first(kept)) entry.words.push_back(shortened(word));
  if (kept < words.size()) {
    entry.words.push_back("... (" + std::to_string(words.size() - kept) + " more arguments)");
  }
  entries_.push_front(std::move(entry));
  while (entries_.size() > most) entries_.pop_back();
}

}  // namespace weir::kv
