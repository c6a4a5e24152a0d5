// What clients may send to an rpc server, executed: no input may crash or stop it or stay after its
// connection has gone, and every answer must be whole and requested.
//
// The input is lines. "1 call 7 shop.echo x" is a frame from the second of three clients
// (rpc_frame_lines.hpp). Besides frames, a client does "bytes HEX", "shut" (it sends no more), "close", and
// "deaf" until "read". "@250" lets 250 ms pass. Between two lines all that can run runs, except before a line
// that begins with "+"; "turn 2" runs at most two handlers. "drain", "stop" and "destroy" act on the server;
// "quit" ends everything at once. "options auth lz4 zstd few" in the first line chooses how the server is
// created. It listens on a unix socket, which delivers at once what is written to it.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <cerrno>

#include "rpc/transport/socket_transport.hpp"
#include "tests/fuzz/line_mutator.hpp"
#include "tests/fuzz/line_play.hpp"
#include "tests/fuzz/rpc_feed_service.hpp"
#include "tests/fuzz/rpc_frame_lines.hpp"
#include "tests/fuzz/rpc_ledgers.hpp"
#include "tests/rpc/services.hpp"
#include "tests/scratch_directory.hpp"
#include "transport/owned_fd.hpp"

namespace {

using namespace weir::rpc;
using namespace weir::fuzz;

constexpr std::size_t most_handlers = 400'000;  // that run for an input
constexpr std::size_t most_sent = 1 << 20;      // by an input

class Peer {
 public:
  explicit Peer(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    expect(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  }
  void send(std::string_view bytes) {
    if (shut_) return;
    ledger_.sent(bytes);
    waiting_.append(bytes);
  }
  void shut() {
    shut_ = true;
    write();
    shutdown(fd_.get(), SHUT_WR);
  }
  void deaf(bool is) { deaf_ = is; }
  // True if anything moved.
  bool move() {
    const bool written = write();
    return read() || written;
  }

 private:
  bool write() {
    if (waiting_.empty()) return false;
    const ssize_t sent = ::send(fd_.get(), waiting_.data(), waiting_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) waiting_.clear();
    if (sent <= 0) return false;
    waiting_.erase(0, static_cast<std::size_t>(sent));
    return true;
  }
  bool read() {
    if (deaf_ || ended_) return false;
    static std::array<std::byte, 64 << 10> bytes;
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) ended_ = true;
    if (got <= 0) return false;
    ledger_.came(std::span(bytes).first(static_cast<std::size_t>(got)));
    return true;
  }

  weir::OwnedFd fd_;
  ServerLedger ledger_;
  std::string waiting_;
  bool shut_ = false, deaf_ = false, ended_ = false;
};

// Refuses what is traced and idempotent, and counts.
class Gate final : public ServerInterceptor {
 public:
  Result<void> before(Context& context) override {
    if (context.trace() && context.idempotent()) return fail(Errc::denied, "not both");
    ++under_way_;
    return {};
  }
  void after(Context&, const CallEnd&) override { --under_way_; }
  int under_way() const { return under_way_; }

 private:
  int under_way_ = 0;
};

Result<Identity> authenticate(const Credentials& credentials) {
  Identity identity{credentials.token};
  if (credentials.token == "throw") throw std::runtime_error("thrown");
  if (credentials.token.empty() || credentials.token == "bob") return fail(Errc::unauthenticated, "who?");
  if (credentials.token == "short") identity.expires = Context::Clock::now() + std::chrono::milliseconds(20);
  return identity;
}

Result<void> authorise(const Identity& identity, std::string_view method) {
  if (method == "shop.throws") throw std::runtime_error("thrown");
  if (method == "feed.divide" && identity.name != "alice") return fail(Errc::denied, "not you");
  return {};
}

class Play {
 public:
  explicit Play(const Words& options) : path_(folder().file("socket")) {
    ServerOptions with;
    with.stats = true;
    with.interceptors = {gate_};
    with.limits.frame = {.body_bytes = 64 << 10, .attachment_bytes = 64 << 10};
    with.limits.max_in_flight = 8;
    with.limits.max_waiting_bytes = 64 << 10;
    with.limits.max_streams = 4;
    with.limits.stream_window_bytes = 96 << 10;
    with.limits.end.max_dropped_bytes = 64 << 10;
    for (const std::string_view option : options) {
      if (option == "auth") with.authentication = {authenticate, authorise};
      if (option == "lz4") with.compression = {Compression::lz4, 64};
      if (option == "zstd") with.compression = {Compression::zstd, 64};
      if (option == "few") with.limits.max_connections = 1;
    }
    server_.emplace(io_, std::move(with));
    feed::server = &*server_;
    server_->add<shop::echo, shop::length, shop::nothing, shop::place, shop::place_later, shop::wait_for_ever,
                 shop::throws, shop::throws_later, shop::reflect, shop::reflect_later>();
    server_
        ->add<feed::sized, feed::divide, feed::divide_later, feed::ticks, feed::total, feed::shout,
              feed::both, feed::first, feed::idle, feed::pause, feed::drain, feed::stop, feed::stop_later>();
    server_->add<&feed::Counter::add, &feed::Counter::get>(counter_);
    expect(server_->listen("unix://" + path_).has_value());
  }

  // False: that was the last.
  bool line(std::string_view text) {
    const bool with_the_next = text.starts_with('+');
    if (with_the_next) text.remove_prefix(1);
    if (text.starts_with("turn")) return turn(number_of(text.substr(std::min<std::size_t>(5, text.size()))));
    pass_as_said(text);
    if (text == "quit") return false;
    if (text == "destroy") destroy();
    if (text == "drain" && server_) server_->drain();
    if (text == "stop" && server_) server_->stop();
    const Words words = words_of(text);
    if (words.size() > 1 && words[0].size() == 1 && words[0][0] >= '0' && words[0][0] <= '2')
      act(peers_[static_cast<std::size_t>(words[0][0] - '0')], words);
    if (!with_the_next) settle();
    return true;
  }

  // All clients go: nothing of them may be left.
  void end() {
    for (auto& peer : peers_) peer.reset();
    settle();
    pass(std::chrono::seconds(10));
    settle();
    expect(!server_ || server_->open() == 0);
    expect(feed::running == 0 && gate_->under_way() == 0);
  }

 private:
  static const weir::test::ScratchDirectory& folder() {
    static const weir::test::ScratchDirectory made;
    return made;
  }

  void destroy() {
    feed::server = nullptr;
    server_.reset();
  }

  void act(std::optional<Peer>& peer, const Words& words) {
    if (words[1] == "close") return peer.reset();
    if (!peer && access(path_.c_str(), F_OK) != 0) return;
    if (!peer) peer.emplace(path_);
    if (words[1] == "shut") return peer->shut();
    if (words[1] == "deaf" || words[1] == "read") return peer->deaf(words[1] == "deaf");
    if (words[1] == "bytes") return words.size() > 2 ? peer->send(bytes_of_hex(words[2])) : void();
    const auto frames = std::span(words).subspan(1);
    for (unsigned i = 0, times = 1; i < times; ++i) {
      const auto frame = frame_of(frames, number_of, i);
      if (!frame || (sent_ += frame->bytes.size()) > most_sent) return;
      times = frame->times;
      const std::string_view bytes = frame->bytes;
      const std::string_view begin = bytes.substr(0, frame->first_bytes);
      peer->send(begin);
      if (begin.size() == bytes.size()) continue;
      settle();
      peer->send(bytes.substr(begin.size()));
    }
  }

  // Some of the handlers that are ready.
  bool turn(std::uint64_t handlers) {
    if (io_.stopped()) io_.restart();
    for (; handlers > 0 && io_.poll_one() > 0; --handlers) expect(++handlers_ < most_handlers);
    return true;
  }

  void settle() {
    bool moved = true;
    while (moved) {
      if (io_.stopped()) io_.restart();
      while (io_.poll_one() > 0) expect(++handlers_ < most_handlers);
      expect(handlers_ < most_handlers);
      moved = false;
      for (auto& peer : peers_)
        if (peer) moved |= peer->move();
    }
    heap_.look();
  }

  const std::string path_;
  const HeapWatch heap_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::size_t handlers_ = 0, sent_ = 0;
  feed::Counter counter_;
  asio::io_context io_{1};
  std::optional<Server> server_;
  std::array<std::optional<Peer>, 3> peers_;
};

constexpr std::string_view lines[] = {"0 call 1 shop.echo hello",
                                      "+0 call 1 shop.echo hello",
                                      "+0 call 1 shop.wait_for_ever",
                                      "+0 cancel 1",
                                      "+0 item 2 5",
                                      "+0 bytes 5772",
                                      "+0 shut",
                                      "0 call 2 feed.Counter.get",
                                      "0 call 3 feed.sized 40000",
                                      "0 call 4 shop.nothing",
                                      "0 call 5 shop.place [ 1 [ [ a 2 ] ] nil nil { b 3 } 1 ]",
                                      "0 call 6 shop.place_later [ 1 [ [ a 2 ] ] note [ 1 2 ] { } 0 ]",
                                      "0 call 7 shop.wait_for_ever",
                                      "0 call 8 feed.divide 1 0",
                                      "0 call 9 feed.divide_later 4 2",
                                      "0 call 10 shop.throws x",
                                      "0 call 11 shop.throws_later x",
                                      "0 call 12 shop.reflect :a=5000",
                                      "0 call 13 shop.reflect_later :a=40000 :split=200",
                                      "0 call 14 feed.Counter.add 1",
                                      "0 call 15 weir.methods",
                                      "0 call 16 weir.stats",
                                      "0 call 17 feed.pause 1000 :t=500",
                                      "0 call 18 feed.drain",
                                      "0 call 19 feed.stop",
                                      "0 call 20 feed.stop_later",
                                      "0 call 30 shop.wait_for_ever :x=20",
                                      "0 stream 1 feed.ticks 100 2000",
                                      "0 stream 2 feed.total",
                                      "0 stream 3 feed.shout !",
                                      "0 stream 4 feed.both 5",
                                      "0 stream 5 feed.first",
                                      "0 stream 6 feed.idle :t=2000",
                                      "0 item 2 5",
                                      "0 item 3 text",
                                      "0 item 3 *3000 :x=30",
                                      "0 item 4 5",
                                      "0 end 2",
                                      "0 end 3",
                                      "0 credit 1 100000",
                                      "0 cancel 1",
                                      "0 cancel 7",
                                      "0 ping 1",
                                      "0 ping 1 :x=900",
                                      "0 credentials 0 alice",
                                      "0 credentials 0 short",
                                      "0 credentials 0 bob",
                                      "0 settings 0 6",
                                      "0 settings 7 6",
                                      "0 call 23 shop.echo hello :Y=0",
                                      "0 call 24 shop.echo hello :Y=1",
                                      "0 call 25 shop.echo hello :Y=2",
                                      "0 call 26 shop.place_later [ 1 [ ] nil nil { } 0 ] :Y=3 :M",
                                      "0 call 27 shop.wait_for_ever :M :x=20",
                                      "0 stream 7 feed.total :Y=5 :M",
                                      "0 call 21 shop.echo *3000 :z=1",
                                      "0 call 22 shop.echo *3000 :z=2",
                                      "0 goodbye 0",
                                      "0 reply 1 x",
                                      "0 pong 1",
                                      "0 bytes 5772010100",
                                      "1 call 1 shop.echo other",
                                      "2 stream 1 feed.idle",
                                      "0 shut",
                                      "0 close",
                                      "0 deaf",
                                      "0 read",
                                      "@1",
                                      "@3000",
                                      "drain",
                                      "stop",
                                      "destroy",
                                      "quit",
                                      "+",
                                      "turn 1",
                                      "turn 2",
                                      "options auth",
                                      "options lz4 auth",
                                      "options zstd",
                                      "options few"};
constexpr std::string_view words[] = {
    "0",      "1",           "2",         "call",      "stream",   "item",     "end",       "credit",
    "cancel", "ping",        ":a=100",    ":a=0",      ":a=66000", ":t=1",     ":t=3000",   ":z=1",
    ":z=2",   ":T",          ":f=1",      ":f=2",      ":f=4",     ":f=8",     ":c=1",      ":k=2",
    ":l=1",   ":h=2.2",      ":h=31.255", ":cut=50",   ":cut=39",  ":split=1", ":split=41", ":x=3",
    ":x=300", "[",           "]",         "nil",       "-1",       "*100",     "*40000",    "$",
    "$c1",    "$dd00000009", "shop.echo", "feed.shout"};

}  // namespace

const Grammar weir::fuzz::grammar{lines, words};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  play_lines<Play>(data, size);
  expect(feed::running == 0);  // functions that never ended went with the io_context
  return 0;
}
