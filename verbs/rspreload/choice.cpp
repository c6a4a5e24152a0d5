#include "verbs/rspreload/choice.hpp"

#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <sstream>

namespace weir::rspreload {
namespace {

struct Word {
  const char* text;
  int means;
};
constexpr Word domains[] = {{"INET", AF_INET},   {"AF_INET", AF_INET},   {"PF_INET", AF_INET},
                            {"INET6", AF_INET6}, {"AF_INET6", AF_INET6}, {"PF_INET6", AF_INET6}};
constexpr Word types[] = {
    {"STREAM", SOCK_STREAM}, {"SOCK_STREAM", SOCK_STREAM}, {"DGRAM", SOCK_DGRAM}, {"SOCK_DGRAM", SOCK_DGRAM}};
constexpr Word protocols[] = {
    {"TCP", IPPROTO_TCP}, {"IPPROTO_TCP", IPPROTO_TCP}, {"UDP", IPPROTO_UDP}, {"IPPROTO_UDP", IPPROTO_UDP}};

// False: the word means nothing.
bool understand(const std::string& text, std::span<const Word> words, std::optional<int>& meaning) {
  if (text == "*") return true;
  const auto found = std::ranges::find_if(
      words, [&](const Word& word) { return ::strcasecmp(word.text, text.c_str()) == 0; });
  if (found == words.end()) return false;
  meaning = found->means;
  return true;
}

int usual_protocol(int type) { return type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP; }

}  // namespace

Choice Choice::read(std::istream& lines) {
  Choice choice;
  for (std::string text; std::getline(lines, text);) {
    if (text.starts_with('#')) continue;
    std::istringstream words(text);
    Line line;
    std::string domain, type, protocol;
    if (!(words >> line.program >> domain >> type >> protocol)) continue;
    if (understand(domain, domains, line.domain) && understand(type, types, line.type) &&
        understand(protocol, protocols, line.protocol))
      choice.lines_.push_back(std::move(line));
  }
  return choice;
}

const Choice& Choice::of_this_program() {
  static const Choice choice = [] {
    std::ifstream file("/etc/rdma/rsocket/preload_config");
    return read(file);
  }();
  return choice;
}

bool Choice::takes(std::string_view program, int domain, int type, int protocol) const {
  if ((domain != AF_INET && domain != AF_INET6) || (type != SOCK_STREAM && type != SOCK_DGRAM)) return false;
  if (protocol == 0) protocol = usual_protocol(type);
  if (protocol != usual_protocol(type)) return false;
  if (lines_.empty()) return true;
  const auto begins_with = [&](const std::string& name) {
    return program.size() >= name.size() && ::strncasecmp(program.data(), name.data(), name.size()) == 0;
  };
  return std::ranges::any_of(lines_, [&](const Line& line) {
    return (line.program == "*" || begins_with(line.program)) && line.domain.value_or(domain) == domain &&
           line.type.value_or(type) == type && line.protocol.value_or(protocol) == protocol;
  });
}

}  // namespace weir::rspreload
