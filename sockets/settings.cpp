#include "sockets/settings.hpp"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "link/default_directory.hpp"
#include "sockets/secret.hpp"

namespace weir::sockets {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const word = std::getenv(name);
  if (word == nullptr || *word == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(word, &end, 10);
  return *end == '\0' ? value : otherwise;
}

// The environment as it was when the program started.
struct Variable {
  const char* name;
  std::string value;
};
std::vector<Variable>& variables() {
  static auto& made = *new std::vector<Variable>;
  return made;
}
void note_environment() {
  for (const char* name : {"WEIR_RUNTIME_DIR", "WEIR_DEVICES", "WEIR_GIDS", "WEIR_MTU", "WEIR_NO_PROCESS_VM",
                           "WEIR_WIRE", "WEIR_ECN", "WEIR_PACKETS"})
    if (const char* const value = std::getenv(name)) variables().push_back({name, value});
}

Settings read_settings() {
  note_environment();
  Settings it;
  const char* const mode = std::getenv("WEIR_SOCKETS");
  it.off = mode != nullptr && std::string_view(mode) == "off";
  it.trace = mode != nullptr && std::string_view(mode) == "trace";
  it.report = mode != nullptr && std::string_view(mode) == "report";
  if (mode != nullptr && *mode != '\0' && !it.off && !it.trace && !it.report)
    std::fprintf(stderr, "weir sockets: WEIR_SOCKETS=%s is none of trace, report and off: ignored\n", mode);
  if (auto rules = read_rules(std::getenv("WEIR_SOCKETS_RULES"))) {
    it.rules = *std::move(rules);
  } else {  // we may not end the program; change nothing, since the user meant to exclude something
    std::fprintf(stderr, "weir sockets: WEIR_SOCKETS_RULES: %s: no connection changes\n",
                 rules.error().c_str());
    it.off = true;
  }
  if (const char* const peers = std::getenv("WEIR_SOCKETS_PEERS")) {
    if (auto networks = Networks::parse(peers))
      it.peers = *std::move(networks);
    else
      std::fprintf(stderr, "weir sockets: WEIR_SOCKETS_PEERS: %s: no other host is asked\n",
                   networks.error().c_str());
  }
  if (const char* const file = std::getenv("WEIR_SOCKETS_SECRET"); file != nullptr && !it.peers.empty()) {
    if (const auto secret = read_secret(file)) {
      it.secret = *secret;
    } else {  // without a secret anyone who guesses may pass for a peer, which the user meant to prevent
      std::fprintf(stderr, "weir sockets: WEIR_SOCKETS_SECRET: %s: no other host is asked\n",
                   secret.error().c_str());
      it.peers = {};
    }
  }
  it.after_calls = static_cast<std::uint32_t>(number("WEIR_SOCKETS_AFTER", it.after_calls));
  it.change_every = number("WEIR_SOCKETS_CHANGE_EVERY", 0);
  const auto ring = number("WEIR_SOCKETS_RING", it.ring_bytes);
  if (std::has_single_bit(ring) && ring >= 4096 && ring <= 1 << 24)
    it.ring_bytes = static_cast<std::uint32_t>(ring);
  // In virtual time nothing can come while a thread looks.
  if (std::getenv("WEIR_TWIN") != nullptr) it.spin = std::chrono::microseconds(0);
  it.spin =
      std::chrono::microseconds(number("WEIR_SOCKETS_SPIN", static_cast<std::uint64_t>(it.spin.count())));
  const char* const sleepers = std::getenv("WEIR_SOCKETS_SLEEPERS");
  it.wakes_by_ring = sleepers != nullptr && std::string_view(sleepers) == "ring";
  if (const char* const told = std::getenv("WEIR_RUNTIME_DIR")) it.runtime_directory = told;
  return it;
}

}  // namespace

const Settings& settings() {
  static const Settings& made = *new Settings(read_settings());
  return made;
}

std::string table_directory() {
  return link::default_runtime_directory(settings().runtime_directory.c_str()) + "/lasting-sockets";
}

void keep_environment() {
  for (const Variable& one : variables())
    if (std::getenv(one.name) == nullptr) ::setenv(one.name, one.value.c_str(), 1);
}

void trace(const char* format, ...) {
  if (!settings().trace) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "weir sockets: %s[%d]: %.*s\n", program_invocation_short_name, ::getpid(), length,
               line);
}

}  // namespace weir::sockets
