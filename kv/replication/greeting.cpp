#include "kv/replication/greeting.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kv/core/history.hpp"
#include "kv/resp/request_text.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::repl {

namespace {

bool is_id(std::string_view text) {
  return text.size() == History::id_size &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

// The printable beginning of a line from a stranger, for the log.
std::string shown(std::string_view line) {
  std::string text(line.substr(0, 200));
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

void Greeting::next() {
  const auto say = [this](std::vector<RequestWord> words) { append_request(say_, words); };
  switch (step_) {
    case Step::begin:
      step_ = Step::ping;
      return say({"PING"});
    case Step::ping:
      if (!self_.password.empty()) {
        step_ = Step::auth;
        return self_.user.empty() ? say({"AUTH", self_.password}) : say({"AUTH", self_.user, self_.password});
      }
      [[fallthrough]];
    case Step::auth:
      step_ = Step::port;
      return say({"REPLCONF", "listening-port", std::int64_t{self_.port}});
    case Step::port:
      if (!self_.address.empty()) {
        step_ = Step::address;
        return say({"REPLCONF", "ip-address", self_.address});
      }
      [[fallthrough]];
    case Step::address:
      step_ = Step::abilities;
      return say({"REPLCONF", "capa", "eof", "capa", "psync2"});
    case Step::abilities:
      // Valkey 9 sends hashes whose fields expire only to those who can read its snapshots. Others do not
      // know the word, and their error changes nothing.
      step_ = Step::version;
      return say({"REPLCONF", "version", "9.0.0"});
    case Step::version:
      step_ = Step::psync;
      if (self_.history.empty()) return say({"PSYNC", "?", "-1"});
      if (self_.failover) return say({"PSYNC", self_.history, self_.position + 1, "FAILOVER"});
      return say({"PSYNC", self_.history, self_.position + 1});
    case Step::psync:
      return;
  }
}

Greeting::Outcome Greeting::refuse(std::string why) {
  error_ = std::move(why);
  return Outcome::refused;
}

Greeting::Outcome Greeting::take(std::string_view line) {
  if (line.empty()) return Outcome::goes_on;  // the primary is still there
  if (step_ == Step::psync) return answer_to_psync(line);
  const bool is_error = line.front() == '-';
  if (step_ == Step::ping) {
    // The primary may want a password first.
    const bool may_go_on = !is_error || line.starts_with("-NOAUTH") || line.starts_with("-NOPERM") ||
                           line.starts_with("-ERR operation not permitted");
    if (!may_go_on) return refuse("its answer to PING: " + shown(line));
  } else if (step_ == Step::auth && is_error) {
    return refuse("its answer to AUTH: " + shown(line) + ". Check masterauth and masteruser.");
  }
  // Old primaries do not know REPLCONF; continue all the same.
  next();
  return Outcome::goes_on;
}

Greeting::Outcome Greeting::answer_to_psync(std::string_view line) {
  constexpr std::string_view full = "+FULLRESYNC ";
  constexpr std::string_view continues = "+CONTINUE";
  if (line.starts_with(full)) {
    line.remove_prefix(full.size());
    const std::size_t blank = line.find(' ');
    const auto position = blank == line.npos ? std::nullopt : parse_int(line.substr(blank + 1));
    if (!position || *position < 0 || !is_id(line.substr(0, blank)))
      return refuse("its answer to PSYNC makes no sense: " + shown(line));
    history_ = line.substr(0, blank);
    position_ = *position;
    return Outcome::full;
  }
  if (line.starts_with(continues)) {
    if (self_.history.empty()) return refuse("it goes on with a history that was not asked for");
    line.remove_prefix(continues.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (!line.empty() && !is_id(line)) return refuse("its answer to PSYNC makes no sense: " + shown(line));
    history_ = line.empty() ? self_.history : std::string(line);
    position_ = self_.position;
    return Outcome::continues;
  }
  return refuse("its answer to PSYNC: " + shown(line));
}

}  // namespace weir::kv::repl
