// What a primary may send to a server that follows it: answers to the greeting, a snapshot, requests. No
// input may crash the server, and a snapshot that does not load leaves the old data in place.
//
// The first byte of the input is the number of bytes that arrive at a time. The parts are connected as in the
// link, but without its sockets and clock.
#include <algorithm>
#include <asio/io_context.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kv/replication/applier.hpp"
#include "kv/replication/greeting.hpp"
#include "kv/replication/snapshot_frame.hpp"
#include "kv/replication/snapshot_load.hpp"
#include "kv/server/server.hpp"

namespace {

using namespace weir::kv;

// Bytes on their way, of which some have arrived.
class Arriving {
 public:
  Arriving(std::string_view all, std::size_t at_a_time) : all_(all), at_a_time_(at_a_time) {}
  std::string_view here() const { return all_.substr(0, here_); }
  bool more() {
    if (here_ == all_.size()) return false;
    here_ = std::min(here_ + at_a_time_, all_.size());
    return true;
  }
  void done_with(std::size_t bytes) {
    if (bytes > here_) std::abort();
    all_.remove_prefix(bytes);
    here_ -= bytes;
  }

 private:
  std::string_view all_;
  std::size_t at_a_time_;
  std::size_t here_ = 0;
};

repl::Greeting::Outcome greet(Arriving& input) {
  repl::Greeting greeting({"user", "secret", 6379, "127.0.0.1", std::string(40, 'a'), 7});
  do {
    for (std::size_t end; (end = input.here().find('\n')) != std::string_view::npos;) {
      const std::string line(input.here().substr(0, end));
      input.done_with(end + 1);
      greeting.say();
      const auto outcome = greeting.take(line);
      if (outcome != repl::Greeting::Outcome::goes_on) return outcome;
    }
  } while (input.more());
  return repl::Greeting::Outcome::refused;
}

bool load(Server& server, Arriving& input) {
  repl::SnapshotFrame frame;
  repl::SnapshotLoad load(server, [&](char* into, std::size_t most) -> std::size_t {
    while (!frame.ended() && !frame.failed()) {
      const std::size_t behind = frame.size() != 0 ? 0 : repl::SnapshotFrame::mark_size - 1;
      const auto taken = frame.take(input.here().substr(0, most + behind));
      if (taken.content.size() > most) std::abort();
      const std::size_t some = taken.content.copy(into, most);
      input.done_with(taken.bytes);
      if (some > 0) return some;
      if (taken.bytes == 0) break;
    }
    return 0;
  });
  for (;;) {
    switch (load.take_turn(frame.ended() || frame.failed())) {
      case repl::SnapshotLoad::Outcome::more:
        break;
      case repl::SnapshotLoad::Outcome::hungry:
        if (!frame.ended() && !frame.failed() && !input.more()) return false;
        break;
      case repl::SnapshotLoad::Outcome::failed:
        return false;
      case repl::SnapshotLoad::Outcome::loaded:
        return load.put_in_place().empty();
    }
  }
}

void follow(Server& server, Arriving& input) {
  repl::Applier applier(server, -1);
  for (;;) {
    switch (applier.take(input.here())) {
      case repl::Applier::Outcome::applied:
        if (applier.taken() == 0) std::abort();
        input.done_with(applier.taken());
        break;
      case repl::Applier::Outcome::looked_at:
        break;
      case repl::Applier::Outcome::incomplete:
        if (!input.more()) return;
        break;
      case repl::Applier::Outcome::failed:
        if (applier.error().empty()) std::abort();
        return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Settings settings;
  settings.port = 0;
  settings.proto_max_bulk_len = 4096;
  settings.client_query_buffer_limit = 1 << 20;
  Surroundings surroundings;
  surroundings.clock_us = [] { return std::int64_t{1'700'000'000'000'000}; };
  surroundings.steady_us = surroundings.clock_us;
  surroundings.log = [](LogLevel, std::string_view) {};
  surroundings.stop = [] {};
  surroundings.seed = 1;
  asio::io_context io;
  Server server(io, settings, surroundings);
  server.refresh_time();
  server.databases[0]->insert("kept");
  Arriving input({reinterpret_cast<const char*>(data) + 1, std::min<std::size_t>(size - 1, 8192)},
                 std::size_t{1} + data[0]);
  const auto outcome = greet(input);
  const bool goes_on = outcome == repl::Greeting::Outcome::continues;
  const bool loaded = outcome == repl::Greeting::Outcome::full && load(server, input);
  if (!loaded && server.databases[0]->size() != 1) std::abort();
  if (goes_on || loaded) follow(server, input);
  server.shut_down();
  server.end_round();
  return 0;
}
