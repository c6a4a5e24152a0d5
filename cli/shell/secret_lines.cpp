#include "cli/shell/secret_lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "cli/shell/quoting.hpp"

namespace weir::shell {
namespace {

bool has_part(std::string_view word, std::string_view part) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::ranges::search(word, part, same).begin() != word.end();
}

// Matches requirepass, masterauth, tls-key-file-pass, ...
bool names_secret(std::string_view setting) { return has_part(setting, "pass") || has_part(setting, "auth"); }

}  // namespace

long long take_repeat(std::vector<std::string>& words) {
  long long times = 0;
  const auto& first = words.front();
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), times);
  if (words.size() < 2 || error != std::errc{} || end != first.data() + first.size() || times < 1) return 1;
  words.erase(words.begin());
  return times;
}

bool may_hold_secret(std::string_view line) {
  auto words = split_words(line);
  if (!words) return true;
  if (words->empty()) return false;
  take_repeat(*words);
  const std::string& command = words->front();
  if (same_word(command, "auth")) return true;
  constexpr std::array takes_passwords{"hello", "migrate", "acl"};
  if (std::ranges::any_of(takes_passwords, [&](const char* one) { return same_word(command, one); }))
    return words->size() > 2;
  if (!same_word(command, "config") || words->size() < 2 || !same_word((*words)[1], "set")) return false;
  for (std::size_t i = 2; i < words->size(); i += 2)
    if (names_secret((*words)[i])) return true;
  return false;
}

}  // namespace weir::shell
