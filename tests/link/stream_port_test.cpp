// Streams between two processes, both in this one, in a network namespace of its own with a loopback. They
// share the port, so the kernel gives a connection to either, and that hands it over to the other if it must.
#include "link/stream/stream_port.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "link/udp/socket_address.hpp"
#include "tests/link/own_network.hpp"

namespace weir::link {
namespace {

using Bytes = std::vector<std::byte>;
using Ends = StreamPort::Ends;

constexpr std::uint16_t port = 4791;
constexpr int patience_ms = 20'000;  // a backstop
constexpr std::uint32_t service = 0x01061234;

Bytes numbered(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

struct Came {
  Bytes bytes;
  StreamPort::Arrival arrival;
};

class Streams : public testing::Test {
 protected:
  struct Process {
    std::unique_ptr<StreamPort> streams;
    std::vector<Came> came;
    std::vector<std::string> said;
    std::size_t ended = 0, opened = 0;
    std::vector<Slot> asked;
    std::vector<bool> answers;
  };

  void SetUp() override {
    if (!own_network()) GTEST_SKIP() << "this machine lets its user have no network namespace";
  }

  void open(Process& process, Slot slot, const hash::SipKey* key = nullptr) {
    auto opened = StreamPort::open(
        {.port = port,
         .slot = slot,
         .key = key,
         .patience = patience,
         .owner = [](std::uint32_t asked) { return asked == service ? Slot{2} : Slot{0}; },
         .hand_over =
             [this](Slot to, UniqueFd connection, std::span<const std::byte> greeting) {
               Process& other = to == 1 ? one : two;
               if (other.streams) other.streams->adopt(std::move(connection), greeting);
             },
         .opened = [&process](const Ends&, Slot, bool) { ++process.opened; },
         .asked = [&process](const Ends&, Slot peer) { process.asked.push_back(peer); },
         .answered = [&process](const Ends&, bool hears) { process.answers.push_back(hears); },
         .ended = [&process](const IpAddress&, const IpAddress&) { ++process.ended; },
         .explain = [&process](const std::string& why) { process.said.push_back(why); }});
    ASSERT_TRUE(opened) << opened.error().what;
    process.streams = std::move(*opened);
  }

  template <class Done>
  void run_until(Done done) {
    while (!done()) {
      std::array<pollfd, 2> ready{};
      nfds_t count = 0;
      for (Process* const each : {&one, &two})
        if (each->streams) ready[count++] = {each->streams->descriptor(), POLLIN, 0};
      ASSERT_GT(::poll(ready.data(), count, patience_ms), 0);
      for (Process* const each : {&one, &two}) receive(*each);
    }
  }

  static void receive(Process& process) {
    if (!process.streams) return;
    process.streams->receive([&](std::span<const StreamPort::Arrival> arrivals) {
      for (const auto& each : arrivals)
        process.came.push_back({{each.run.bytes.begin(), each.run.bytes.end()}, each});
    });
  }

  static bool send(Process& from, const Ends& ends, const StreamTarget& target, const Bytes& bytes) {
    const StreamedRun run{.bytes = bytes, .segment = 1024, .traffic_class = 3, .hop_limit = 64};
    return from.streams->send(ends, target, {&run, 1});
  }

  // A connection of a stranger's.
  static UniqueFd caller(const IpAddress& from) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress own(false, from, 0), to(false, v4_loopback(2), port);
    EXPECT_EQ(::bind(socket.get(), own.get(), own.bytes), 0);
    EXPECT_EQ(::connect(socket.get(), to.get(), to.bytes), 0);
    return socket;
  }
  static void say(const UniqueFd& socket, const Bytes& bytes) {
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static Bytes hear(const UniqueFd& socket) {
    Bytes bytes(256);
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return bytes;
  }
  static bool has_ended(const UniqueFd& socket) {
    char byte;
    return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  static constexpr Ends from_one{.own = v4_loopback(1), .peer = v4_loopback(2), .interface = 0};
  static constexpr Ends from_two{.own = v4_loopback(2), .peer = v4_loopback(1), .interface = 0};
  std::chrono::milliseconds patience = StreamPort::patience;
  Process one, two;
};

TEST_F(Streams, carry_runs_both_ways_whoever_dialled) {
  open(one, 1);
  open(two, 2);
  const Bytes longest = numbered(64'000), shortest = numbered(16);
  ASSERT_TRUE(send(one, from_one, {.slot = 2}, longest));
  ASSERT_TRUE(send(one, from_one, {.slot = 2}, shortest));
  run_until([&] { return two.came.size() == 2; });
  EXPECT_EQ(two.came[0].bytes, longest);
  EXPECT_EQ(two.came[1].bytes, shortest);
  const StreamPort::Arrival& first = two.came[0].arrival;
  EXPECT_EQ(first.ends.own, v4_loopback(2));
  EXPECT_EQ(first.ends.peer, v4_loopback(1));
  EXPECT_EQ(first.run.segment, 1024);
  EXPECT_EQ(first.run.traffic_class, 3);
  EXPECT_EQ(first.run.hop_limit, 64);
  EXPECT_TRUE(two.streams->leads(from_two, {.slot = 1})) << "the answer needs no stream of its own";
  ASSERT_TRUE(send(two, from_two, {.slot = 1}, shortest));
  run_until([&] { return one.came.size() == 1; });
  EXPECT_EQ(one.came[0].arrival.ends.peer, v4_loopback(2));
}

TEST_F(Streams, lead_to_the_process_that_listens_for_a_service) {
  open(one, 1);
  open(two, 2);
  const Bytes request = numbered(280);
  ASSERT_TRUE(send(one, from_one, {.service = service}, request));
  run_until([&] { return two.came.size() == 1; });
  EXPECT_EQ(two.came[0].bytes, request);
  EXPECT_TRUE(one.streams->leads(from_one, {.slot = 2})) << "who answered said its slot";
  EXPECT_TRUE(one.streams->leads(from_one, {.service = service}));
}

TEST_F(Streams, carry_a_question_and_its_answer) {
  open(one, 1);
  open(two, 2);
  ASSERT_TRUE(one.streams->dial(from_one, {.slot = 2}));
  run_until([&] { return one.opened == 1 && two.opened == 1; });
  one.streams->ask(from_one, 2);
  run_until([&] { return two.asked.size() == 1; });
  EXPECT_EQ(two.asked[0], 1);
  two.streams->answer(from_two, 1, true);
  two.streams->answer(from_two, 1, false);
  run_until([&] { return one.answers.size() == 2; });
  EXPECT_EQ(one.answers, (std::vector<bool>{true, false}));
}

TEST_F(Streams, believe_no_other_address_than_the_connections) {
  open(two, 2);
  const UniqueFd liar = caller(v4_loopback(9));
  say(liar, encode_frame(StreamGreeting{
                .source = v4_loopback(1), .destination = v4_loopback(2), .slot = 1, .target = {.slot = 2}}));
  run_until([&] { return has_ended(liar); });
  ASSERT_EQ(two.said.size(), 1u);
  EXPECT_NE(two.said[0].find("NAT"), std::string::npos) << two.said[0];
  EXPECT_FALSE(two.streams->leads(from_two, {.slot = 1}));
}

TEST_F(Streams, believe_any_address_of_an_end_with_the_key) {
  const hash::SipKey key{11, 12}, other{11, 13};
  open(two, 2, &key);
  struct Row {
    const hash::SipKey* key;
    bool believed;
  };
  for (const Row& row : {Row{&other, false}, Row{nullptr, false}, Row{&key, true}}) {
    const StreamGreeting greeting{.source = v4_loopback(1),
                                  .destination = v4_loopback(2),
                                  .slot = 1,
                                  .target = {.slot = 2},
                                  .nonce = {std::byte{1}}};
    const UniqueFd behind_nat = caller(v4_loopback(9));
    say(behind_nat, encode_frame(greeting));
    Bytes heard;
    run_until([&] { return !(heard = hear(behind_nat)).empty(); });
    Frame frame;
    ASSERT_EQ(parse_frame(heard, frame), Parsed::whole);
    const auto challenge = parse_challenge_body(frame.body);
    ASSERT_TRUE(challenge);
    EXPECT_EQ(challenge->proof, proof_of(&key, StreamEnd::answers, greeting, 2, challenge->nonce));
    EXPECT_FALSE(two.streams->leads(from_two, {.slot = 1})) << "before the proof";
    say(behind_nat, encode_proof(proof_of(row.key, StreamEnd::dials, greeting, 2, challenge->nonce)));
    run_until([&] { return has_ended(behind_nat) || two.streams->leads(from_two, {.slot = 1}); });
    EXPECT_EQ(two.streams->leads(from_two, {.slot = 1}), row.believed);
  }
}

TEST_F(Streams, do_not_open_between_different_keys) {
  const hash::SipKey key{11, 12};
  open(one, 1);
  open(two, 2, &key);
  ASSERT_TRUE(one.streams->dial(from_one, {.slot = 2}));
  const auto is_refused = [&] { return !one.streams->dial(from_one, {.slot = 2}); };
  run_until(is_refused);
  EXPECT_FALSE(two.streams->leads(from_two, {.slot = 1}));
}

TEST_F(Streams, refuse_a_destination_that_is_not_ours) {
  open(two, 2);
  const UniqueFd mapped = caller(v4_loopback(1));
  say(mapped,
      encode_frame(StreamGreeting{
          .source = v4_loopback(1), .destination = v4_loopback(3), .slot = 1, .target = {.slot = 2}}));
  run_until([&] { return has_ended(mapped); });
  ASSERT_EQ(two.said.size(), 1u);
  EXPECT_NE(two.said[0].find("destination"), std::string::npos);
}

TEST_F(Streams, end_with_the_first_byte_that_is_not_right) {
  open(two, 2);
  const Bytes packets = numbered(64);
  const auto header = encode_run_frame({.bytes = packets, .segment = 64});
  const std::vector<Bytes> wrong = {Bytes(frame_header_bytes, std::byte{0}), Bytes(300, std::byte{0xff}),
                                    Bytes(header.begin(), header.end()), encode_proof(0),
                                    encode_frame(StreamChallenge{.slot = 1})};
  for (const Bytes& bytes : wrong) {
    const UniqueFd stranger = caller(v4_loopback(1));
    say(stranger, bytes);
    run_until([&] { return has_ended(stranger); });
  }
  EXPECT_TRUE(two.came.empty());
}

TEST_F(Streams, end_those_that_never_prove_themselves) {
  patience = std::chrono::milliseconds(0);
  open(two, 2);
  const UniqueFd silent = caller(v4_loopback(1)), greets = caller(v4_loopback(1));
  say(greets,
      encode_frame(StreamGreeting{
          .source = v4_loopback(1), .destination = v4_loopback(2), .slot = 1, .target = {.slot = 2}}));
  run_until([&] { return !hear(greets).empty(); });
  two.streams->tidy();
  EXPECT_TRUE(has_ended(silent));
  EXPECT_TRUE(has_ended(greets));
}

TEST_F(Streams, leave_room_for_others_beside_an_address_that_takes_it_all) {
  open(two, 2);
  std::vector<UniqueFd> crowd;
  for (std::size_t i = 0; i < StreamPort::max_incoming + 10; ++i) {
    crowd.push_back(caller(v4_loopback(9)));
    receive(two);
  }
  open(one, 1);
  ASSERT_TRUE(send(one, from_one, {.slot = 2}, numbered(64)));
  run_until([&] { return two.came.size() == 1; });
}

TEST_F(Streams, are_dialled_again_after_their_end) {
  open(one, 1);
  open(two, 2);
  ASSERT_TRUE(send(one, from_one, {.slot = 2}, numbered(64)));
  run_until([&] { return two.came.size() == 1; });
  two.streams.reset();
  run_until([&] { return one.ended == 1; });
  EXPECT_FALSE(one.streams->leads(from_one, {.slot = 2}));
  open(two, 2);
  ASSERT_TRUE(send(one, from_one, {.slot = 2}, numbered(64)));
  run_until([&] { return two.came.size() == 2; });
}

TEST_F(Streams, are_not_where_nobody_listens) {
  open(one, 1);
  const Ends nowhere{.own = v4_loopback(1), .peer = {0xfd, 1}, .interface = 0};
  EXPECT_FALSE(one.streams->dial(nowhere, {.slot = 2}));
  EXPECT_FALSE(send(one, nowhere, {.slot = 2}, numbered(64)));
}

// The other end reads nothing.
TEST(StreamSocket, loses_whole_runs_where_too_much_waits) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const UniqueFd other(pair[1]), epoll(::epoll_create1(EPOLL_CLOEXEC));
  StreamSocket socket(UniqueFd(pair[0]), epoll.get(), 1);
  ASSERT_TRUE(socket.watch());
  socket.begin_runs();
  const Bytes packets = numbered(9000);
  const StreamedRun run{.bytes = packets, .segment = 1024};
  std::size_t sent = 0;
  while (socket.send({&run, 1})) ASSERT_LT(++sent, 10'000u);
  std::size_t came = 0;
  Bytes arrived;
  while (came < sent) {
    const std::size_t before = arrived.size();
    arrived.resize(before + 100'000);
    const ssize_t got = ::recv(other.get(), arrived.data() + before, 100'000, MSG_DONTWAIT);
    ASSERT_GT(got, 0) << came << " of " << sent;
    arrived.resize(before + static_cast<std::size_t>(got));
    Frame frame;
    std::span<const std::byte> rest(arrived);
    for (; parse_frame(rest, frame) == Parsed::whole; rest = rest.subspan(frame.bytes), ++came)
      ASSERT_TRUE(std::ranges::equal(frame.run.bytes, packets));
    arrived = Bytes(rest.begin(), rest.end());
    socket.flush();
  }
  EXPECT_EQ(came, sent);
  EXPECT_TRUE(arrived.empty());
}

}  // namespace
}  // namespace weir::link
