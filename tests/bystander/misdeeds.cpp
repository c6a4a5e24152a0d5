#include "tests/bystander/misdeeds.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "tests/bystander/long_requests.hpp"
#include "tests/bystander/requests.hpp"

namespace weir::bystander {
namespace {

// Limits at a time: lines with which one attacker does something, and lines that it only holds.
constexpr int busy_lines = 8;
constexpr std::size_t held_lines = 200;

// Lets the others run, which also sets the attack's pace.
asio::awaitable<void> pass(Attack& attack, std::chrono::microseconds time) {
  asio::steady_timer timer(attack.io, time);
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<LinePtr> line_of(Attack& attack, Tls tls = Tls::shake_hands, const char* from = nullptr) {
  for (;;) {
    LinePtr line = co_await dial(attack.io, attack.protocol, attack.address, tls, from);
    if (line) co_return line;
    co_await pass(attack, std::chrono::milliseconds(5));
  }
}

// A line whose owner may have the password.
asio::awaitable<LinePtr> line_of_somebody(Attack& attack) {
  LinePtr line = co_await line_of(attack);
  if (attack.below(2) == 0) {
    const std::string shown = credentials(attack.protocol);
    co_await line->write(shown);
  }
  co_return line;
}

asio::awaitable<void> read_on(std::shared_ptr<Line> line) {
  for (;;) {
    const std::string bytes = co_await line->read();
    if (bytes.empty()) co_return;
  }
}

using One = asio::awaitable<void> (*)(Attack&);
asio::awaitable<void> again(Attack& attack, One one) {
  for (;;) {
    co_await one(attack);
    attack.did();
  }
}
// Runs `one` repeatedly, several at a time.
asio::awaitable<void> many(Attack& attack, One one) {
  for (int i = 1; i < busy_lines; ++i) asio::co_spawn(attack.io, again(attack, one), asio::detached);
  co_await again(attack, one);
}

asio::awaitable<void> slow_one(Attack& attack) {
  const LinePtr line = co_await line_of(attack);
  const std::string request =
      credentials(attack.protocol) + echo_request(attack.protocol, 1, attack.below(100));
  for (const char byte : request) {
    const std::string piece(1, byte);
    const bool sent = co_await line->write(piece);
    if (!sent) co_return;
    attack.did();
    co_await pass(attack, std::chrono::microseconds(attack.below(2000)));
  }
}
asio::awaitable<void> slow(Attack& attack) { return many(attack, slow_one); }

// Keeps the lines from `one_line` until there are too many.
using MakeLine = asio::awaitable<LinePtr> (*)(Attack&);
asio::awaitable<void> hold(Attack& attack, MakeLine one_line) {
  std::vector<LinePtr> held;
  for (;;) {
    held.push_back(co_await one_line(attack));
    attack.did();
    if (held.size() == held_lines) held.erase(held.begin());
    co_await pass(attack, std::chrono::microseconds(attack.below(1000)));
  }
}

asio::awaitable<LinePtr> silent_line(Attack& attack) {
  return line_of(attack, attack.below(2) == 0 ? Tls::shake_hands : Tls::leave_out);
}
asio::awaitable<void> silent(Attack& attack) { return hold(attack, silent_line); }

asio::awaitable<LinePtr> half_said(Attack& attack) {
  LinePtr line = co_await line_of(attack);
  std::string bytes = credentials(attack.protocol);
  for (std::uint64_t i = attack.below(3); i > 0; --i)
    bytes += echo_request(attack.protocol, i, attack.below(2000));
  bytes.resize(attack.below(bytes.size()));
  if (!bytes.empty()) co_await line->write(bytes);
  co_return line;
}
// Half of them stay, the others end at once.
asio::awaitable<void> cut_request(Attack& attack) {
  asio::co_spawn(attack.io, hold(attack, half_said), asio::detached);
  for (;;) {
    const LinePtr gone = co_await half_said(attack);
    attack.did();
  }
}

asio::awaitable<LinePtr> half_shaken(Attack& attack) {
  LinePtr line = co_await line_of(attack, Tls::leave_out);
  std::string bytes = client_hello();
  if (attack.below(2) == 0) bytes[attack.below(bytes.size())] = static_cast<char>(attack.random());
  if (attack.below(4) != 0) bytes.resize(attack.below(bytes.size()));
  if (!bytes.empty()) co_await line->write(bytes);
  co_return line;
}
asio::awaitable<void> cut_tls(Attack& attack) {
  asio::co_spawn(attack.io, hold(attack, half_shaken), asio::detached);
  for (;;) {
    const LinePtr gone = co_await half_shaken(attack);
    attack.did();
  }
}

// More than a server has places for, from an address that others do not have: half of them have sent all that
// a client sends first, so that only their number and age tells them from an honest client that is slow.
asio::awaitable<LinePtr> stalled_line(Attack& attack) {
  LinePtr line = co_await line_of(attack, Tls::leave_out, "127.0.0.66");
  const std::string bytes = client_hello();
  if (attack.below(2) == 0) co_await line->write(bytes);
  co_return line;
}
asio::awaitable<void> stalled_tls(Attack& attack) {
  for (int i = 1; i < busy_lines; ++i) asio::co_spawn(attack.io, hold(attack, stalled_line), asio::detached);
  co_await hold(attack, stalled_line);
}

asio::awaitable<void> unread_one(Attack& attack) {
  const LinePtr line = co_await line_of_somebody(attack);
  const std::size_t bytes = attack.below(2) == 0 ? 10 : 200'000;
  for (std::uint64_t i = 1;; ++i) {
    const std::string request = echo_request(attack.protocol, i, bytes);
    const bool sent = co_await line->write(request);
    if (!sent) co_return;
    attack.did();
  }
}
asio::awaitable<void> unread(Attack& attack) { return many(attack, unread_one); }

asio::awaitable<void> flood_one(Attack& attack) {
  const std::shared_ptr<Line> line = co_await line_of_somebody(attack);
  asio::co_spawn(attack.io, read_on(line), asio::detached);
  std::string requests;
  for (std::uint64_t i = 1; i <= 500; ++i)
    requests += echo_request(attack.protocol, i, attack.below(3) == 0 ? 500 : 5);
  for (int i = 0; i < 100; ++i) {
    const bool sent = co_await line->write(requests);
    if (!sent) co_return;
    attack.did();
  }
}
asio::awaitable<void> flood(Attack& attack) { return many(attack, flood_one); }

asio::awaitable<void> parts_one(Attack& attack) {
  const std::shared_ptr<Line> line = co_await line_of_somebody(attack);
  asio::co_spawn(attack.io, read_on(line), asio::detached);
  for (std::uint64_t i = 1; i < 20; ++i) {
    const auto count = static_cast<std::uint32_t>(1 + attack.below(200'000));
    const std::string request = request_of_parts(attack.protocol, i, count);
    const bool sent = co_await line->write(request);
    if (!sent) co_return;
    attack.did();
  }
}
asio::awaitable<void> parts(Attack& attack) { return many(attack, parts_one); }

asio::awaitable<LinePtr> huge_line(Attack& attack) {
  LinePtr line = co_await line_of_somebody(attack);
  const std::string claim = huge_claim(attack.protocol, attack.random);
  co_await line->write(claim);
  co_return line;
}
asio::awaitable<void> huge(Attack& attack) { return hold(attack, huge_line); }

asio::awaitable<void> broken_one(Attack& attack) {
  const std::shared_ptr<Line> line = co_await line_of_somebody(attack);
  asio::co_spawn(attack.io, read_on(line), asio::detached);
  for (std::uint64_t i = attack.below(20); i > 0; --i) {
    const std::string request = broken_request(attack.protocol, attack.random);
    const bool sent = co_await line->write(request);
    if (!sent) co_return;
  }
}
asio::awaitable<void> broken(Attack& attack) { return many(attack, broken_one); }

asio::awaitable<void> come_and_go_one(Attack& attack) { const LinePtr line = co_await line_of(attack); }
asio::awaitable<void> come_and_go(Attack& attack) { return many(attack, come_and_go_one); }

// Two lines are enough: each request keeps the server for milliseconds.
constexpr int long_lines = 2;
constexpr std::size_t large = 20'000;

asio::awaitable<void> set_up(Attack& attack, const std::vector<std::string>& requests) {
  const std::shared_ptr<Line> line = co_await line_of(attack);
  asio::co_spawn(attack.io, read_on(line), asio::detached);
  std::string all = credentials(attack.protocol);
  for (const std::string& request : requests) all += request;
  co_await line->write(all);
}

// The rows in a random order, as fast as their replies can be read.
asio::awaitable<void> repeat_rows(Attack& attack, std::span<const LongRequests> rows) {
  for (;;) {
    const std::shared_ptr<Line> line = co_await line_of(attack);
    asio::co_spawn(attack.io, read_on(line), asio::detached);
    const std::string begin = credentials(attack.protocol) + "SELECT 9\r\n";
    bool sent = co_await line->write(begin);
    while (sent) {
      for (const std::string& request : expand(rows[attack.below(rows.size())], large)) {
        if (!sent) break;
        sent = co_await line->write(request);
        attack.did();
      }
    }
  }
}
asio::awaitable<void> repeat_rows_at_once(Attack& attack, std::vector<std::string> begin,
                                          std::span<const LongRequests> rows) {
  co_await set_up(attack, begin);
  for (int i = 1; i < long_lines; ++i) asio::co_spawn(attack.io, repeat_rows(attack, rows), asio::detached);
  co_await repeat_rows(attack, rows);
}
asio::awaitable<void> large_values(Attack& attack) {
  return repeat_rows_at_once(attack, make_large_values(large), requests_of_large_values());
}
asio::awaitable<void> expiring_fields(Attack& attack) {
  return repeat_rows_at_once(attack, make_expiring_fields(large), requests_of_expiring_fields());
}

// A bad replica: it stops reading, leaves, or acknowledges what was never sent.
asio::awaitable<void> bad_replica_one(Attack& attack) {
  const std::shared_ptr<Line> line = co_await line_of(attack);
  const std::string greeting = credentials(attack.protocol) +
                               "REPLCONF listening-port 1\r\nREPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n";
  bool sent = co_await line->write(greeting);
  const std::uint64_t way = attack.below(3);
  if (way == 0) asio::co_spawn(attack.io, read_on(line), asio::detached);
  for (std::uint64_t i = 1 + attack.below(20); sent && i > 0; --i) {
    if (way != 0) {
      const std::string some = co_await line->read();
      sent = !some.empty();
    }
    if (sent && way != 2) {
      const std::string position =
          "REPLCONF ACK " + std::to_string(attack.random() >> attack.below(64)) + "\r\n";
      sent = co_await line->write(position);
    }
    co_await pass(attack, std::chrono::milliseconds(1));
  }
}
asio::awaitable<void> bad_replica(Attack& attack) { return many(attack, bad_replica_one); }

// Each would occupy Lua's own library for seconds, or take gigabytes.
constexpr std::string_view greedy_scripts[] = {
    "return string.find(string.rep('a', 200000), string.rep('a?', 200000))",
    "return string.rep('(', 200000):find('%b()x')",
    "return #string.rep('', 2147483647)",
    "return string.rep('x', 2147483647)",
    "return table.insert({}, -2147483647, 1)",
    "return table.concat({}, 'x', -2147483647, 2147483647)",
    "return {unpack({}, 1, 100000000)}",
    "return cjson.decode(string.rep('[', 200000))",
    "return cmsgpack.unpack(string.rep('\\145', 200000))",
    "local t = {} t[1] = t return cjson.encode(t)",
    "return string.format('%99999d', 1)",
    "local function again() return again() + 1 end return again()",
    "return string.gsub(string.rep('a', 5000), '.-b', 'c')",
};
asio::awaitable<void> greedy_scripts_one(Attack& attack) {
  const std::shared_ptr<Line> line = co_await line_of(attack);
  const std::string shown = credentials(attack.protocol);
  bool sent = co_await line->write(shown);
  while (sent) {
    const std::string_view script = greedy_scripts[attack.below(std::size(greedy_scripts))];
    const std::string request = "*3\r\n$4\r\nEVAL\r\n$" + std::to_string(script.size()) + "\r\n" +
                                std::string(script) + "\r\n$1\r\n0\r\n";
    sent = co_await line->write(request);
    if (!sent) break;
    const std::string reply = co_await line->read();
    sent = !reply.empty();
    attack.did();
  }
}
asio::awaitable<void> run_greedy_scripts(Attack& attack) {
  asio::co_spawn(attack.io, again(attack, greedy_scripts_one), asio::detached);
  co_await again(attack, greedy_scripts_one);
}

constexpr Misdeed table[] = {
    {"stopped", Reach::everywhere,
     "busy clients are stopped; some go on later, some are killed while they are stopped", nullptr,
     processes::stop_clients},
    {"killed", Reach::everywhere, "busy clients are killed", nullptr, processes::kill_clients},
    {"killed-connecting", Reach::everywhere, "clients are killed while they connect", nullptr,
     processes::kill_connecting},
    {"slow", Reach::everywhere, "requests come a byte at a time", slow},
    {"silent", Reach::everywhere, "200 connections say nothing, some not even a TLS greeting", silent},
    {"come-and-go", Reach::everywhere, "connections are made and closed as fast as that goes", come_and_go},
    {"cut-request", Reach::everywhere, "requests are cut anywhere; the connections stay or end", cut_request},
    {"cut-tls", Reach::sockets_and_tls, "TLS greetings are cut anywhere, with wrong bytes; also without TLS",
     cut_tls},
    {"stalled-tls", Reach::tls,
     "handshakes from one address, many more than a server has places for, that stop", stalled_tls},
    {"unread", Reach::everywhere, "requests without end, and no reply is read", unread},
    {"flood", Reach::everywhere, "8 connections with long pipelines, replies read", flood},
    {"huge", Reach::everywhere, "counts and lengths far above what comes", huge},
    {"parts", Reach::everywhere, "requests of up to 200,000 parts of no bytes", parts},
    {"broken", Reach::everywhere, "requests with bytes changed, cut and doubled", broken},
    {"large-values", Reach::everywhere, "every command that works on all of a value, on large ones",
     large_values, nullptr, Protocol::resp},
    {"expiring-fields", Reach::everywhere,
     "hashes whose many fields expire are set, read, made to stay, deleted", expiring_fields, nullptr,
     Protocol::resp},
    {"lying", Reach::rdma, "immediates that lie about what was written", nullptr, verbs::lie_about_bytes},
    {"unannounced", Reach::rdma, "requests are written, and no buffer for replies is ever announced", nullptr,
     verbs::never_announce},
    {"wild-buffer", Reach::rdma, "buffers at wild addresses are announced for replies", nullptr,
     verbs::announce_wild},
    {"odd-control", Reach::rdma, "control messages of odd lengths and contents", nullptr,
     verbs::send_odd_control},
    {"half-open-cm", Reach::rdma, "RDMA connections whose client never says that they are ready", nullptr,
     verbs::leave_cm_half_open},
    {"bad-replica", Reach::everywhere, "replicas that read no more, leave, or claim what they never got",
     bad_replica, nullptr, Protocol::resp},
    {"greedy-scripts", Reach::everywhere, "scripts whose library calls would take seconds or gigabytes",
     run_greedy_scripts, nullptr, Protocol::resp},
    {"junk-packets", Reach::rdma,
     "20,000 packets a second for any queue pair, half of them with a wrong ICRC", nullptr, wire::send_junk},
    {"clock", Reach::clock, "the clock of the system is set, hours and days ahead and back", nullptr,
     clocks::step},
    {"another-user", Reach::as_root,
     "another user tries files, processes, ports and names that are not its own, and calls everybody",
     users::be_another_user},
    {"bad-node", Reach::node,
     "a node behind a gateway says nothing, nonsense, too much, or sends everybody in circles",
     nodes::be_bad_node, nullptr, Protocol::resp},
    {"forged-cm", Reach::rdma, "20,000 messages a second of the connection manager, for any connection",
     nullptr, wire::forge_connection_messages},
};

}  // namespace

bool Misdeed::possible(Protocol protocol, std::string_view address) const {
  if (only_for && only_for != protocol) return false;
  const std::string_view over = address.substr(0, address.find("://"));
  switch (reach) {
    case Reach::everywhere:
      return true;
    case Reach::sockets_and_tls:
      return over != "rdma";
    case Reach::tls:
      return over == "tls";
    case Reach::rdma:
      return over.starts_with("rdma");
    case Reach::as_root:
      return ::geteuid() == 0 && over != "unix";
    case Reach::node:
      return std::getenv(nodes::listening_variable) != nullptr;
    case Reach::clock:
      return std::getenv(clocks::file_variable) != nullptr && over == "unix";
  }
  return false;
}

std::span<const Misdeed> misdeeds() { return table; }

const Misdeed* misdeed_named(std::string_view name) {
  const auto* found = std::ranges::find(table, name, &Misdeed::name);
  return found != std::end(table) ? found : nullptr;
}

}  // namespace weir::bystander
