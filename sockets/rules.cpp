#include "sockets/rules.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace weir::sockets {
namespace {

constexpr std::string_view blanks = " \t\r";

// Cuts the next word off `text`. Empty: there is no further word.
std::string_view next_word(std::string_view& text) {
  const auto begin = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(begin);
  const auto end = std::min(text.find_first_of(blanks), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

bool read_port(std::string_view word, std::uint32_t& port) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), port);
  return error == std::errc{} && end == word.data() + word.size() && port <= 65535;
}

bool read_ports(std::string_view word, std::uint32_t& low, std::uint32_t& high) {
  const auto dash = word.find('-');
  if (!read_port(word.substr(0, dash), low)) return false;
  high = low;
  return dash == std::string_view::npos || (read_port(word.substr(dash + 1), high) && low <= high);
}

std::unexpected<std::string> wrong(std::string_view word, const char* why) {
  return std::unexpected("'" + std::string(word) + "' " + why);
}

}  // namespace

std::expected<Rules::Rule, std::string> Rules::parse_rule(std::string_view text) {
  Rule rule;
  const auto verdict = next_word(text);
  if (verdict != "on" && verdict != "off")
    return wrong(verdict, "is neither 'on' nor 'off', with which a rule begins");
  rule.on = verdict == "on";
  for (auto word = next_word(text); !word.empty(); word = next_word(text)) {
    const auto value = next_word(text);
    if (word == "program" && !value.empty())
      rule.program = value;
    else if (word != "port" && word != "program")
      return wrong(word, "is neither 'program' nor 'port'");
    else if (word != "port" || !read_ports(value, rule.low, rule.high))
      return wrong(value, word == "port" ? "is no port from 0 to 65535, nor a range like 7000-7010"
                                         : "is no program's name");
  }
  return rule;
}

std::expected<Rules, std::string> Rules::parse(std::string_view text) {
  if (text.size() > most_bytes) return std::unexpected("they are longer than 64 KiB");
  Rules all;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const auto comma = std::min(line.find(','), line.size());
      const auto one = line.substr(0, comma);
      line.remove_prefix(std::min(comma + 1, line.size()));
      if (one.find_first_not_of(blanks) == std::string_view::npos) continue;
      auto rule = parse_rule(one);
      if (!rule) return std::unexpected(rule.error());
      if (all.rules_.size() == most_rules) return std::unexpected("there are more than 256 of them");
      all.rules_.push_back(*std::move(rule));
    }
  }
  return all;
}

bool Rules::allow(std::string_view program, std::uint32_t own_port, std::uint32_t peers_port) const {
  const std::string name(program);
  for (const Rule& rule : rules_) {
    const auto fits = [&](std::uint32_t port) { return rule.low <= port && port <= rule.high; };
    if (!fits(own_port) && !fits(peers_port)) continue;
    if (!rule.program.empty() && ::fnmatch(rule.program.c_str(), name.c_str(), 0) != 0) continue;
    return rule.on;
  }
  return true;
}

std::expected<Rules, std::string> read_rules(const char* value) {
  if (value == nullptr || *value != '/') return Rules::parse(value != nullptr ? value : "");
  const int file = ::open(value, O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::unexpected(std::string(value) + ": " + std::strerror(errno));
  std::string text(Rules::most_bytes + 1, '\0');
  std::size_t have = 0;
  for (ssize_t got = 1; got > 0 && have < text.size(); have += static_cast<std::size_t>(got)) {
    got = ::read(file, text.data() + have, text.size() - have);
    if (got < 0) {
      const std::string why = std::strerror(errno);
      ::close(file);
      return std::unexpected(std::string(value) + ": " + why);
    }
  }
  ::close(file);
  text.resize(have);
  auto rules = Rules::parse(text);
  return rules ? std::move(rules) : std::unexpected(std::string(value) + ": " + rules.error());
}

}  // namespace weir::sockets
