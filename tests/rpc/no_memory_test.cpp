// What happens to a connection without memory: each allocation that it makes for
// a request fails once.
//
// Released memory is kept and must remain unchanged, so a later write to it is detected.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "rpc/client/client_core.hpp"
#include "rpc/pool.hpp"
#include "rpc/server/server_connection.hpp"
#include "rpc/stream.hpp"
#include "rpc/transport/poller.hpp"
#include "tests/rpc/recording_transport.hpp"

namespace {

std::uint64_t until_failure = 0;  // 0: none fails
bool none_left = false;           // all fail

struct Freed {
  unsigned char* memory;
  std::size_t bytes;
};
constexpr unsigned char left_as = 0;
constexpr std::size_t most_freed = 1 << 16;
Freed freed[most_freed];
std::size_t freed_count = 0;
bool keeps_freed = false;

void* take(std::size_t size, std::size_t alignment) {
  if (none_left || (until_failure > 0 && --until_failure == 0)) throw std::bad_alloc();
  void* const memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void give_back(void* memory) noexcept {
  if (memory == nullptr || !keeps_freed || freed_count == most_freed) return std::free(memory);
  const std::size_t bytes = malloc_usable_size(memory);
  std::memset(memory, left_as, bytes);
  freed[freed_count++] = {static_cast<unsigned char*>(memory), bytes};
}

// Whether the kept memory is unchanged since it was released; frees it.
bool nothing_was_written_to_freed_memory() {
  bool untouched = true;
  for (const Freed& one : std::span(freed).first(std::exchange(freed_count, 0))) {
    for (std::size_t i = 0; i < one.bytes; ++i) untouched &= one.memory[i] == left_as;
    std::free(one.memory);
  }
  return untouched;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) { return take(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { give_back(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}

namespace scarce {

int running = 0;

struct Running {
  Running() { ++running; }
  ~Running() { --running; }
};

// Run until they are cancelled.
asio::awaitable<void> wait(std::string) {
  const Running here;
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
}
asio::awaitable<void> watch(weir::rpc::Reader<std::string> reader) {
  const Running here;
  while (co_await reader.read()) {
  }
}

}  // namespace scarce

namespace weir::rpc {
namespace {

using testing_support::RecordingTransport;

constexpr std::size_t large = 100'000;

class NoMemory : public testing::Test {
 protected:
  // A request of `F` arrives, and its nth allocation fails, for each n; then the client leaves.
  template <auto F>
  void fail_each_allocation_of(std::uint16_t flags, const std::tuple<std::string>& arguments) {
    const auto rules = std::make_shared<ServerRules>();
    rules->registry.add(registered<F>(nullptr));
    Bytes request;
    request.grow(frame_header_bytes);
    if ((flags & FrameFlag::streaming) == 0)
      MessagePack::write(request, arguments);
    else
      MessagePack::write(request, std::tuple<>());
    FrameHeader header;
    header.flags = flags;
    header.id = 1;
    header.method = method_number<F>;
    header.timeout_us = 1'000'000;
    header.body_bytes = static_cast<std::uint32_t>(request.size() - frame_header_bytes);
    encode(header, request.data());

    bool failed = true;
    for (std::uint64_t n = 1; failed; ++n) {
      SCOPED_TRACE(n);
      asio::io_context io(1);
      const auto transport = std::make_shared<RecordingTransport>();
      auto connection = std::make_shared<ServerConnection>(
          io, transport, rules, std::make_shared<ServerChain>(), std::make_shared<ServerTotals>(),
          std::make_shared<ThreadTurns>(io), ServerConnection::Gone());
      connection->start();
      keeps_freed = true;
      until_failure = n;
      EXPECT_NO_THROW(transport->user().received(request.span()));
      failed = std::exchange(until_failure, 0) == 0;  // within a started coroutine it would be Asio that ends
      EXPECT_NE(connection->is_open(), failed);
      transport->user().round_ended();
      io.poll();
      connection->stop();
      io.restart();
      io.poll();
      EXPECT_EQ(scarce::running, 0);
      keeps_freed = false;
      EXPECT_TRUE(nothing_was_written_to_freed_memory());
    }
  }
};

TEST_F(NoMemory, for_a_call_ends_it_and_whatever_it_had_begun) {
  fail_each_allocation_of<scarce::wait>(0, {std::string(1000, 'a')});
}

TEST_F(NoMemory, for_a_stream_ends_it_and_whatever_it_had_begun) {
  fail_each_allocation_of<scarce::watch>(FrameFlag::streaming, {});
}

struct CountedFrames final : FrameSink {
  bool on_frame(Frame& frame) override { return ++of[frame.header.kind] > 0; }
  std::map<FrameKind, std::uint32_t> of;
};

TEST(NoMemoryToCall, leaves_nothing_of_the_request_and_others_end_at_their_deadlines) {
  const std::string argument(1000, 'a');
  bool failed = true;
  for (std::uint64_t n = 1; failed; ++n) {
    SCOPED_TRACE(n);
    asio::io_context io(1);
    const auto transport = std::make_shared<RecordingTransport>();
    const auto client = std::make_shared<ClientCore>(io, transport, ConnectionLimits());
    client->start();
    std::uint32_t sent = 0;
    const auto call = [&] {
      const auto draft = client->begin(1);
      client->append(draft.value(), [&](BodyPlace body) { MessagePack::write(body, argument); });
      CallOptions options;
      options.timeout = std::chrono::microseconds(1);
      sent += client->commit(*draft, options) ? 1 : 0;
    };
    until_failure = n;
    try {
      call();
    } catch (const std::bad_alloc&) {  // the caller gets the exception
    }
    failed = std::exchange(until_failure, 0) == 0;
    EXPECT_EQ(client->in_flight(), sent);
    call();
    io.run();  // until nothing is pending
    CountedFrames frames;
    EXPECT_TRUE(FrameReader(FrameLimits()).feed(as_bytes(transport->all), frames));
    EXPECT_EQ(frames.of[FrameKind::request], sent);
    EXPECT_EQ(frames.of[FrameKind::cancel], sent);
  }
}

TEST(NoMemoryToCall, is_what_later_calls_hear_also_before_those_under_way_do) {
  asio::io_context io(1);
  const auto transport = std::make_shared<RecordingTransport>();
  const auto client = std::make_shared<ClientCore>(io, transport, ConnectionLimits());
  client->start();
  const auto draft = client->begin(1);
  const std::string attachment(large, 'a');
  CallOptions options;
  options.attachment = as_bytes(attachment);
  transport->fails = true;
  EXPECT_THROW(static_cast<void>(client->commit(draft.value(), options)), std::bad_alloc);
  for (const char* when : {"before", "after"}) {
    const auto next = client->begin(1);
    ASSERT_FALSE(next) << when;
    EXPECT_EQ(next.error().code, Errc::connection_lost) << when;
    EXPECT_EQ(next.error().what, "there was no memory for a frame that was to be sent") << when;
    io.poll();
  }
}

// Sends a hello to every client, and nothing more.
asio::awaitable<void> greet_all(asio::ip::tcp::acceptor& peer, std::vector<asio::ip::tcp::socket>& met) {
  for (;;) {
    met.push_back(co_await peer.async_accept(asio::use_awaitable));
    std::array<std::byte, frame_header_bytes> bytes;
    co_await asio::async_read(met.back(), asio::buffer(bytes), asio::use_awaitable);
    FrameHeader hello;
    hello.kind = FrameKind::settings;
    encode(hello, bytes.data());
    co_await asio::async_write(met.back(), asio::buffer(bytes), asio::use_awaitable);
  }
}

// Its peer accepts the connection and the data, and sends nothing.
TEST(NoMemoryToPing, is_no_reason_never_to_ping_again) {
  bool failed = true;
  for (std::uint64_t n = 1; failed; ++n) {
    SCOPED_TRACE(n);
    asio::io_context io(1);
    asio::ip::tcp::acceptor peer(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    PoolOptions options;
    options.check_every = std::chrono::milliseconds(1);
    Pool pool(io, static_list({"tcp://127.0.0.1:" + std::to_string(peer.local_endpoint().port())}), options);
    std::shared_ptr<Client> client;
    asio::co_spawn(io, pool.pick(), [&](const std::exception_ptr&, Result<std::shared_ptr<Client>> picked) {
      client = picked.value_or(nullptr);
    });
    std::vector<asio::ip::tcp::socket> met;
    asio::co_spawn(io, greet_all(peer, met), asio::detached);
    while (client == nullptr) io.run_one();
    asio::ip::tcp::socket& taken = met.at(0);
    until_failure = n;
    while (until_failure > 0 && taken.available() == 0) io.run_one();
    failed = std::exchange(until_failure, 0) == 0;
    const auto give_up = Clock::now() + std::chrono::seconds(10);
    while (taken.available() == 0 && Clock::now() < give_up) io.run_one_until(give_up);
    EXPECT_GT(taken.available(), 0u);
  }
}

// Copied with the options for each connection to a server.
struct Scarce {
  Scarce(const Scarce&) {
    if (std::exchange(throws, false)) throw std::bad_alloc();
  }
  Scarce() = default;
  std::string operator()() const { return "token"; }
  static inline bool throws = false;
};

TEST(NoMemoryToConnect, is_no_reason_never_to_try_again) {
  asio::io_context io(1);
  asio::ip::tcp::acceptor peer(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  PoolOptions options;
  options.connect.token = Scarce();
  std::vector<asio::ip::tcp::socket> met;
  asio::co_spawn(io, greet_all(peer, met), asio::detached);
  Pool pool(io, static_list({"tcp://127.0.0.1:" + std::to_string(peer.local_endpoint().port())}), options);
  std::vector<Result<std::shared_ptr<Client>>> picked;
  const auto pick = [&] {
    const std::size_t before = picked.size();
    asio::co_spawn(io, pool.pick(), [&](const std::exception_ptr&, Result<std::shared_ptr<Client>> one) {
      picked.push_back(std::move(one));
    });
    const auto give_up = Clock::now() + std::chrono::seconds(20);
    while (picked.size() == before && Clock::now() < give_up) io.run_one_until(give_up);
  };
  Scarce::throws = true;
  pick();
  ASSERT_EQ(picked.size(), 1u) << "who waits is told";
  ASSERT_FALSE(picked[0]);
  EXPECT_EQ(picked[0].error().what, "no memory");
  EXPECT_EQ(picked[0].error().code, Errc::unreachable);
  pick();
  ASSERT_EQ(picked.size(), 2u);
  EXPECT_TRUE(picked[1]);
}

// Returns a server's address, after which an allocation fails.
struct ScarceResolver final : Resolver {
  explicit ScarceResolver(std::uint64_t fails_at) : fails(fails_at) {}
  asio::awaitable<Result<std::vector<std::string>>> resolve() override {
    std::vector<std::string> found{"unix:///a/path/that/is/too/long/for/a/string/of/no/memory"};
    if (++asked > 1) found.emplace_back("unix:///another/path/that/is/too/long/for/a/string/of/no/memory");
    until_failure = std::exchange(fails, 0);
    co_return found;
  }
  asio::awaitable<void> changed() override {
    all_went_well |= std::exchange(until_failure, 0) > 0;  // from here on it would be Asio that ends
    asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
  std::uint64_t fails;
  int asked = 0;
  static inline bool all_went_well = false;
};

TEST(NoMemoryToResolve, is_no_reason_never_to_ask_again) {
  ScarceResolver::all_went_well = false;
  for (std::uint64_t n = 1; !ScarceResolver::all_went_well; ++n) {
    SCOPED_TRACE(n);
    asio::io_context io(1);
    PoolOptions options;
    options.resolve_pause = std::chrono::milliseconds(1);
    Pool pool(io, std::make_unique<ScarceResolver>(n), options);
    const auto give_up = Clock::now() + std::chrono::seconds(20);
    while (pool.servers().size() < 2 && Clock::now() < give_up) io.run_one_until(give_up);
    EXPECT_EQ(pool.servers().size(), 2u);
  }
}

// Throws at its only call.
struct Thrower final : Poller::Watcher {
  void ready(std::uint32_t) override {
    if (++told == 1) throw std::runtime_error("from within");
    poller->remove(fd, *this);
  }
  Poller* poller = nullptr;
  int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  int told = 0;
};

TEST(NoMemoryToPoll, ends_no_rounds) {
  asio::io_context io(1);
  Poller& poller = Poller::of(io);
  const auto watcher = std::make_shared<Thrower>();
  watcher->poller = &poller;
  EXPECT_TRUE(poller.add(watcher->fd, *watcher, EPOLLIN));
  poller.remove(watcher->fd, *watcher);
  io.poll();
  io.restart();
  none_left = true;
  bool added = false;
  try {
    added = poller.add(watcher->fd, *watcher, EPOLLIN);
  } catch (const std::bad_alloc&) {
  }
  none_left = false;
  EXPECT_TRUE(added);
  EXPECT_THROW(io.run(), std::runtime_error);
  none_left = true;
  try {
    io.run();
  } catch (const std::bad_alloc&) {
    ADD_FAILURE() << "there is nothing to need memory for";
  }
  none_left = false;
  EXPECT_EQ(watcher->told, 2);
  close(watcher->fd);
}

class SendingLink final : public FrameLink {
 public:
  SendingLink(asio::io_context& io, TransportPtr transport) : FrameLink(io, std::move(transport), {}) {}

  void send_text(const std::string& text, Buffer attachment = {}) {
    FrameHeader header;
    header.id = ++id;
    const std::size_t begin = begin_frame(text.size());
    encoded().append(as_bytes(text));
    end_frame(begin, header, std::move(attachment));
  }
  void let_go(std::uint64_t which) { let_go_outgoing(which); }
  std::uint64_t id = 0;
  std::optional<Errc> ended;
  bool fails_at_round_end = false, fails_on_progress = false;

 private:
  bool on_arrival(Frame&) override { return true; }
  void on_round_end() override {
    if (fails_at_round_end) throw std::bad_alloc();
  }
  void on_progress() override {
    if (fails_on_progress) throw std::bad_alloc();
  }
  void on_end(const Error& cause) override { ended = cause.code; }
};

class NoMemoryToSend : public testing::Test {
 protected:
  NoMemoryToSend() { link->start(); }

  asio::io_context io{1};
  const std::shared_ptr<RecordingTransport> transport = std::make_shared<RecordingTransport>();
  const std::shared_ptr<SendingLink> link = std::make_shared<SendingLink>(io, transport);
};

TEST_F(NoMemoryToSend, what_the_end_of_a_round_brings_ends_the_link) {
  link->fails_at_round_end = true;
  EXPECT_NO_THROW(transport->user().round_ended());
  EXPECT_FALSE(link->is_open());
  EXPECT_EQ(link->ended, Errc::too_large);
}

TEST_F(NoMemoryToSend, what_room_in_the_queue_brings_ends_the_link) {
  link->fails_on_progress = true;
  link->send_text("a");
  EXPECT_NO_THROW(io.poll());
  EXPECT_FALSE(link->is_open());
  EXPECT_EQ(link->ended, Errc::too_large);
}

TEST_F(NoMemoryToSend, a_body_compressed_sends_it_as_it_is) {
  const std::string text(20'000, 'a');
  link->send_text(text);  // there is room for the next one
  transport->user().round_ended();
  link->use_compression({Compression::lz4, 1024});
  FrameHeader settings;
  settings.kind = FrameKind::settings;
  settings.compressions = all_compressions;
  std::array<std::byte, frame_header_bytes> bytes;
  encode(settings, bytes.data());
  transport->user().received(bytes);
  transport->user().round_ended();
  transport->all.clear();
  until_failure = 1;
  EXPECT_NO_THROW(link->send_text(text));
  EXPECT_EQ(std::exchange(until_failure, 0), 0u);
  transport->user().round_ended();
  EXPECT_EQ(transport->all.substr(frame_header_bytes), text);
  link->send_text(text);
  transport->user().round_ended();
  EXPECT_EQ(link->stats().compressed_sent.bodies, 1u);
}

struct Told final : PendingCall {
  void complete(Result<std::span<const std::byte>> body) override { why = body.error(); }
  void abandon() override {}
  std::optional<Error> why;
};

TEST(NoMemoryToCall, that_lasts_is_heard_of_by_those_under_way) {
  asio::io_context io(1);
  const auto transport = std::make_shared<RecordingTransport>();
  const auto client = std::make_shared<ClientCore>(io, transport, ConnectionLimits());
  client->start();
  std::array<Told, 3> calls;
  for (Told& call : calls) client->claim(client->commit(client->begin(1).value(), {}).value(), call);
  io.poll();
  const std::string attachment(large, 'a');
  CallOptions options;
  options.attachment = as_bytes(attachment);
  const auto draft = client->begin(1).value();
  transport->fails = true;
  none_left = true;
  bool thrown = false;
  try {
    static_cast<void>(client->commit(draft, options));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  try {
    io.restart();
    io.poll();
  } catch (const std::bad_alloc&) {
  }
  none_left = false;
  EXPECT_TRUE(thrown);
  for (const Told& call : calls) {
    ASSERT_TRUE(call.why);
    EXPECT_EQ(call.why->code, Errc::connection_lost);
  }
}

TEST_F(NoMemoryToSend, the_rest_of_an_attachment_that_is_let_go_of_ends_the_link) {
  std::string lent(large, 'a');
  transport->room = 1000;
  link->send_text("", Buffer::borrowed(as_bytes(lent)));
  EXPECT_EQ(transport->all.size(), 1000u);
  until_failure = 1;
  EXPECT_NO_THROW(link->let_go(link->id));
  until_failure = 0;
  lent.assign(large, '#');
  EXPECT_FALSE(link->is_open());
  EXPECT_EQ(link->waiting_bytes(), 0u);
  EXPECT_EQ(link->ended, std::nullopt) << "nobody hears of it while something is being let go";
  io.poll();
  EXPECT_EQ(link->ended, Errc::connection_lost);
  EXPECT_EQ(transport->all.size(), 1000u);
}

}  // namespace
}  // namespace weir::rpc
