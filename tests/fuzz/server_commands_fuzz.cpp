// What clients may send to a server, executed: no command, option or state may crash it, and
// every reply must be whole.
//
// The input is lines. "1 GET k" is an inline command of the second of three clients; any other line is one
// of the first client. "@250" lets 250 ms pass. The server is the real one, with connections that hand
// over bytes and count replies.
#include <algorithm>
#include <array>
#include <asio/io_context.hpp>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "kv/resp/words.hpp"
#include "kv/server/server.hpp"
#include "tests/kv/whole_reply.hpp"

namespace {

using namespace weir::kv;
using weir::kv::testing::whole_reply;

class HeldConnection final : public Connection {
 public:
  explicit HeldConnection(HeldConnection*& place) : place_(place) { place = this; }
  ~HeldConnection() override {
    if (place_ == this) place_ = nullptr;
  }
  void send(std::string_view bytes) { session_->received(bytes); }

  void start(Session& session) override { session_ = &session; }
  void flush() override {
    ReplyQueue& queue = session_->outgoing();
    std::string replies;
    while (!queue.empty()) {
      std::array<iovec, 16> pieces;
      const std::size_t count = queue.gather(pieces.data(), pieces.size());
      std::size_t size = 0;
      for (std::size_t i = 0; i < count; ++i) {
        replies.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
        size += pieces[i].iov_len;
      }
      queue.consume(size);
    }
    for (std::string_view rest = replies; !rest.empty();) {
      const std::size_t reply = whole_reply(rest);
      if (reply == 0) std::abort();
      rest.remove_prefix(reply);
    }
    session_->drained();
  }
  void close() override {
    if (place_ == this) place_ = nullptr;
  }
  bool finished() const override { return true; }
  std::string_view kind() const override { return "unix"; }
  std::string peer_address() const override { return "/fuzz:0"; }
  std::string local_address() const override { return "/fuzz:0"; }
  bool local() const override { return true; }

 private:
  HeldConnection*& place_;  // where the input's clients are known
  Session* session_ = nullptr;
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Left out: what opens sockets and files or lifts the limits below, and millions of random members, which
// take their time and nothing else.
bool left_out(std::string_view line) {
  if (line.empty() || line[0] == '*') return true;
  const auto words = split_words(line);
  if (!words || words->empty()) return false;
  const std::string command = lower(words->front());
  for (const std::string& word : *words) {
    const std::string name = lower(word);
    for (std::string_view kept :
         {"port", "bind", "unixsocket", "tls-", "rdma-", "proto-max-bulk-len", "logfile"}) {
      if (command == "config" && name.find(kept) != std::string::npos) return true;
    }
    if (command.find("rand") != std::string::npos && word.size() > 5) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 4096));
  std::int64_t clock_us = 1'700'000'000'000'000;
  Settings settings;
  settings.port = 0;
  settings.proto_max_bulk_len = 4096;
  Surroundings surroundings;
  surroundings.clock_us = [&clock_us] { return clock_us; };
  surroundings.steady_us = surroundings.clock_us;
  surroundings.log = [](LogLevel, std::string_view) {};
  surroundings.stop = [] {};
  surroundings.seed = 1;
  asio::io_context io;
  std::array<HeldConnection*, 3> clients{};
  Server server(io, settings, surroundings);
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    if (line.starts_with('@')) {
      std::uint32_t ms = 0;
      std::from_chars(line.data() + 1, line.data() + line.size(), ms);
      clock_us += std::int64_t{ms} * 1000;
      server.tick();
      continue;
    }
    std::size_t who = 0;
    if (line.size() > 2 && line[0] >= '0' && line[0] <= '2' && line[1] == ' ') {
      who = static_cast<std::size_t>(line[0] - '0');
      line.remove_prefix(2);
    }
    if (left_out(line)) continue;
    if (clients[who] == nullptr) server.accept(std::make_unique<HeldConnection>(clients[who]));
    server.refresh_time();
    if (clients[who] != nullptr) clients[who]->send(std::string(line) + "\r\n");
    server.end_round();
  }
  server.shut_down();
  server.end_round();
  return 0;
}
