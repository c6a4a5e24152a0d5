// Peers that break the protocol, and a process that runs out of descriptors.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "link/frame.hpp"
#include "link/same_host.hpp"
#include "tests/link/fixture.hpp"

namespace weir::link {
namespace {

using namespace std::chrono_literals;

UniqueFd raw_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

void raw_connect(const UniqueFd& socket, const SameHostLink& to) {
  char name[128];
  std::snprintf(name, sizeof name, "%s/slot-%04u", to.directory().c_str(), to.slot());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(std::strlen(name), sizeof address.sun_path);
  std::strcpy(address.sun_path, name);
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

void raw_send(const UniqueFd& socket, std::span<const std::byte> packet, std::span<const int> fds = {}) {
  ASSERT_EQ(transmit_frame(socket.get(), packet, fds), 0);
}

std::vector<std::byte> raw_hello(Slot slot, std::string_view greeting = {}) {
  const HelloPrefix prefix{.slot = slot, .zero = {}, .incarnation = 77};
  std::vector<std::byte> body(sizeof prefix);
  std::memcpy(body.data(), &prefix, sizeof prefix);
  const auto more = bytes(greeting);
  body.insert(body.end(), more.begin(), more.end());
  return encode_frame(FrameType::hello, 0, 0, body, 0);
}

// Blocks until the other end closes; false if something else arrives first.
bool ends(const UniqueFd& socket) {
  char byte;
  return ::recv(socket.get(), &byte, 1, 0) <= 0;
}

class Faults : public LinkTest {};

struct Garbage {
  const char* name;
  std::vector<std::byte> packet;
};
std::vector<Garbage> garbage() {
  auto truncated_hello = raw_hello(9);
  truncated_hello.resize(truncated_hello.size() - 1);
  auto old_version = raw_hello(9);
  old_version[4] = std::byte{99};
  return {
      {"one_byte", std::vector<std::byte>(1)},
      {"zeros", std::vector<std::byte>(64)},
      {"huge", std::vector<std::byte>(100'000)},
      {"truncated_hello", truncated_hello},
      {"other_version", old_version},
      {"slot_zero", raw_hello(0)},
      {"slot_too_high", raw_hello(max_slots)},
      {"hello_without_identity", encode_frame(FrameType::hello, 0, 0, bytes("short"), 0)},
      {"message_before_hello", encode_frame(FrameType::message, 1, 1, {}, 0)},
      {"refusal_of_nothing", encode_frame(FrameType::refuse, 0, 0, bytes("\1"), 0)},
  };
}

// LeakSanitizer looks whether everything went: the time that the caller was given held it, and it the thread.
TEST_F(Faults, a_caller_that_has_not_said_who_it_is_goes_with_the_attachment) {
  auto a = attach();
  const auto b = attach();
  const UniqueFd mute = raw_socket();
  raw_connect(mute, *a);
  connect(*b, a->slot());  // behind it in the queue, so it was taken
  a.reset();
  std::byte end;
  EXPECT_EQ(::recv(mute.get(), &end, sizeof end, 0), 0);
}

TEST_F(Faults, a_caller_that_sends_garbage_for_a_hello_is_dropped_and_nobody_else_notices) {
  auto a = attach(
      {.messages = {echo(1)}, .gone = {[](const NeighbourPtr&) { ADD_FAILURE() << "never a neighbour"; }}});
  for (const auto& one : garbage()) {
    SCOPED_TRACE(one.name);
    const auto socket = raw_socket();
    raw_connect(socket, *a);
    raw_send(socket, one.packet);
    EXPECT_TRUE(ends(socket));
  }
  auto b = SameHostLink::attach({.directory = directory()});
  ASSERT_TRUE(b);
  EXPECT_TRUE(connect(**b, a->slot())->call(1, {}, 10s));
  EXPECT_EQ(a->connected(9), nullptr);
  a.reset();  // before b, or the end of b would be reported
}

TEST_F(Faults, garbage_after_the_hello_ends_that_neighbour_only) {
  const std::vector<Garbage> later = {
      {"second_hello", raw_hello(9)},
      {"zeros", std::vector<std::byte>(64)},
      {"unknown_type", encode_frame(FrameType{77}, 0, 0, {}, 0)},
      {"reply_to_nothing", encode_frame(FrameType::reply, 0, 0, {}, 0)},
  };
  for (const auto& one : later) {
    SCOPED_TRACE(one.name);
    std::promise<NeighbourPtr> gone;
    auto a = attach({.gone = {[&](const NeighbourPtr& who) { gone.set_value(who); }}});
    const Slot slot = a->slot() == 9 ? 10 : 9;
    const auto socket = raw_socket();
    raw_connect(socket, *a);
    raw_send(socket, raw_hello(slot, "raw"));
    char reply[max_frame_bytes];
    ASSERT_GT(::recv(socket.get(), reply, sizeof reply, 0), 0);  // its hello
    raw_send(socket, one.packet);
    EXPECT_TRUE(ends(socket));
    const auto who = gone.get_future().get();
    EXPECT_EQ(who->slot(), slot);
    EXPECT_EQ(text(who->greeting().body), "raw");
  }
}

TEST_F(Faults, a_reply_nobody_asked_for_is_dropped_with_its_descriptors) {
  std::promise<void> heard;
  auto a = attach({.messages = {{1, [&](const NeighbourPtr&, Message&&) { heard.set_value(); }}}});
  const Slot slot = a->slot() == 9 ? 10 : 9;
  const auto socket = raw_socket();
  raw_connect(socket, *a);
  raw_send(socket, raw_hello(slot));
  UniqueFd pipe_in, pipe_out;
  int ends_of_pipe[2];
  ASSERT_EQ(::pipe2(ends_of_pipe, O_CLOEXEC), 0);
  pipe_in.reset(ends_of_pipe[0]);
  pipe_out.reset(ends_of_pipe[1]);
  const int fd = pipe_out.get();
  raw_send(socket, encode_frame(FrameType::reply, 0, 4711, {}, 1), std::span(&fd, 1));
  raw_send(socket, encode_frame(FrameType::message, 1, 0, {}, 0));
  heard.get_future().wait();
  pipe_out.reset();
  char byte;
  EXPECT_EQ(::read(pipe_in.get(), &byte, 1), 0);  // no copy of the writing end is left
}

TEST_F(Faults, a_hello_that_claims_our_own_slot_is_refused) {
  auto a = attach();
  const auto socket = raw_socket();
  raw_connect(socket, *a);
  raw_send(socket, raw_hello(a->slot()));
  const auto received = [&] {
    std::vector<std::byte> packet(max_frame_bytes);
    const auto got = ::recv(socket.get(), packet.data(), packet.size(), 0);
    packet.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return parse_frame(packet, {});
  }();
  ASSERT_TRUE(received);
  EXPECT_EQ(received->type, FrameType::refuse);
  EXPECT_EQ(received->body.at(0), static_cast<std::byte>(Refusal::foreign));
}

TEST_F(Faults, callers_that_never_say_hello_are_bounded_and_do_not_keep_others_out_for_long) {
  auto a = attach({.messages = {echo(1)}});
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(raw_socket());
    raw_connect(idle.back(), *a);
  }
  on_progress(*a, [] {});
  idle.clear();
  auto b = attach();
  EXPECT_TRUE(connect(*b, a->slot())->call(1, {}, 10s));
}

// How often it went to sleep; being preempted on a busy machine does not count.
std::uint64_t switches_of_link_thread(SameHostLink& link) {
  std::uint64_t count = 0;
  on_progress(link, [&] {
    std::ifstream status("/proc/thread-self/status");
    for (std::string word; status >> word;) {
      std::uint64_t number;
      if (word == "voluntary_ctxt_switches:" && status >> number) count = number;
    }
  });
  return count;
}

clockid_t cpu_clock_of_link_thread(SameHostLink& link) {
  clockid_t clock{};
  on_progress(link, [&] { ::pthread_getcpuclockid(::pthread_self(), &clock); });
  return clock;
}
std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Lets time pass that is being measured; nothing is awaited.
void observe(std::chrono::milliseconds span) {
  ::usleep(static_cast<useconds_t>(std::chrono::microseconds(span).count()));
}

TEST_F(Faults, an_idle_link_never_wakes) {
  auto a = attach(), b = attach();
  connect(*a, b->slot());
  const auto before = switches_of_link_thread(*a);
  observe(100ms);
  const auto after = switches_of_link_thread(*a);
  EXPECT_LE(after - before, 3u);  // those that the second count itself opens
}

TEST_F(Faults, out_of_descriptors_a_caller_waits_without_our_spinning_and_is_served_when_there_are_some) {
  auto a = attach({.messages = {echo(1)}});
  const auto clock = cpu_clock_of_link_thread(*a);
  const auto socket = raw_socket();
  const Slot slot = a->slot() == 9 ? 10 : 9;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> hoard;
  for (;;) {
    UniqueFd one(::fcntl(0, F_DUPFD_CLOEXEC, 0));
    if (!one) break;
    hoard.push_back(std::move(one));
    if (hoard.size() == 1) {
      rlimit low = limit;
      low.rlim_cur = static_cast<rlim_t>(hoard.back().get()) + 16;
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    }
  }
  raw_connect(socket, *a);
  raw_send(socket, raw_hello(slot));
  const auto before = read_clock(clock);
  observe(200ms);
  const auto spent = read_clock(clock) - before;
  hoard.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_LT(spent, 50ms);
  char reply[max_frame_bytes];
  EXPECT_GT(::recv(socket.get(), reply, sizeof reply, 0), 0);
}

TEST_F(Faults, out_of_descriptors_a_message_arrives_without_its_and_the_connection_stays) {
  std::promise<std::size_t> first, second;
  std::atomic<int> count = 0;
  auto a = attach(), b = attach();
  b->on_message(7, [&](const NeighbourPtr&, Message&& message) {
    (count++ == 0 ? first : second).set_value(message.fds.size());
  });
  const auto to_b = connect(*a, b->slot());
  ASSERT_TRUE(to_b);
  const int fd = 0;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = 3;  // none above the three that are always open
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto sent = to_b->send(7, {}, {&fd, 1});
  const auto got = first.get_future().get();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(sent);
  EXPECT_EQ(got, 0U);
  ASSERT_TRUE(to_b->send(7, {}, {&fd, 1}));
  EXPECT_EQ(second.get_future().get(), 1U);
}

TEST_F(Faults, out_of_descriptors_attaching_says_so_and_what_helps) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  // Taken now: UBSan's own checks need descriptors.
  const SameHostLink::Options options{.directory = directory()};
  const UniqueFd next(::fcntl(0, F_DUPFD_CLOEXEC, 0));
  // One more descriptor each time: every place that opens one has its turn to fail.
  for (rlim_t room = 1; room < 12; ++room) {
    low.rlim_cur = static_cast<rlim_t>(next.get()) + room;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    auto link = SameHostLink::attach({.directory = options.directory});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (link) {
      EXPECT_GT(room, 4u);
      continue;
    }
    EXPECT_EQ(link.error().code, std::errc::too_many_files_open) << link.error().what;
    EXPECT_TRUE(link.error().what.ends_with("ulimit -n)")) << link.error().what;
  }
  attach().reset();
  EXPECT_FALSE(exists(directory()));
}

// In a child with a file system of its own, which has room for its root and nothing else.
TEST_F(Faults, on_a_full_file_system_attaching_says_so) {
  constexpr int refused = 77;
  std::filesystem::create_directories(directory());
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(refused);
    // What is mounted here must stay here. In a chroot / is no mount, /dev/shm is.
    constexpr auto ours = MS_REC | MS_PRIVATE;
    if (::mount(nullptr, "/", nullptr, ours, nullptr) != 0 &&
        ::mount(nullptr, "/dev/shm", nullptr, ours, nullptr) != 0)
      ::_exit(refused);
    if (::mount("full", directory().c_str(), "tmpfs", 0, "nr_inodes=1") != 0) ::_exit(refused);
    const auto link = SameHostLink::attach({.directory = directory() + "/link"});
    if (!link && link.error().code != std::errc::no_space_on_device)
      std::fputs(link.error().what.c_str(), stderr);
    ::_exit(link || link.error().code != std::errc::no_space_on_device);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == refused) GTEST_SKIP() << "a file system cannot be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace weir::link
