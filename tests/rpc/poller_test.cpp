// Rounds of a poller, and what remains of a round if a handler throws.
#include "rpc/transport/poller.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "waiting/turn.hpp"

namespace weir::rpc {
namespace {

// Ready until it was called that often.
class Counted final : public Poller::Watcher {
 public:
  explicit Counted(Poller& poller) : poller_(poller), fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Counted() override { close(fd_); }
  bool add() { return poller_.add(fd_, *this, EPOLLIN); }
  void ready(std::uint32_t) override {
    if (++told == last) poller_.remove(fd_, *this);
    ++open_rounds;
    if (told <= throws) throw std::runtime_error("from within");
  }
  void round_ended() override {
    --open_rounds;
    ++ended;
    if (ended <= throws_at_end) throw std::runtime_error("from within");
  }

  int told = 0, last = 1, throws = 0;
  int open_rounds = 0, ended = 0, throws_at_end = 0;

 private:
  Poller& poller_;
  const int fd_;
};

TEST(PollerTest, an_exception_leaves_run_and_the_poller_goes_on) {
  asio::io_context io(1);
  Poller& poller = Poller::of(io);
  const auto thrower = std::make_shared<Counted>(poller), other = std::make_shared<Counted>(poller);
  thrower->last = 3;
  thrower->throws = 3;  // the last one just after it was removed
  other->last = 10;
  ASSERT_TRUE(thrower->add() && other->add());
  int caught = 0;
  for (bool done = false; !done;) try {
      io.run();
      done = true;
    } catch (const std::runtime_error&) {
      ++caught;
    }
  EXPECT_EQ(caught, 3);
  EXPECT_EQ(thrower->told, 3);
  EXPECT_EQ(other->told, 10);
  thrower->last = 4;  // added again, so it no longer counts as removed; a new addition keeps run() busy
  ASSERT_TRUE(thrower->add());
  io.restart();
  io.run();
  EXPECT_EQ(thrower->told, 4);
}

// Also after another watcher has thrown, before or after it.
TEST(PollerTest, every_round_that_was_begun_ends) {
  struct Row {
    const char* what;
    int throws, throws_at_end;
  };
  for (const Row& row : {Row{"nobody throws", 0, 0}, Row{"when asked", 3, 0}, Row{"at the end", 0, 3}}) {
    SCOPED_TRACE(row.what);
    asio::io_context io(1);
    Poller& poller = Poller::of(io);
    std::vector<std::shared_ptr<Counted>> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(std::make_shared<Counted>(poller));
      all.back()->last = 1000;  // far more than the rounds of this test
      ASSERT_TRUE(all.back()->add());
    }
    all[2]->throws = row.throws;
    all[2]->throws_at_end = row.throws_at_end;
    // Between two turns of the io_context no round is in progress.
    for (int i = 0; i < 50; ++i) try {
        io.poll_one();
      } catch (const std::runtime_error&) {
      }
    for (const auto& each : all) {
      EXPECT_GT(each->told, 3);
      EXPECT_EQ(each->open_rounds, 0);
      EXPECT_EQ(each->ended, each->told);
    }
    for (const auto& each : all) each->last = each->told + 1;
    io.run();
  }
}

// A watcher that throws at its end has removed everything, and delays no other.
class RemovesAll final : public Poller::Watcher {
 public:
  explicit RemovesAll(Poller& poller) : poller_(poller), fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~RemovesAll() override { close(fd_); }
  bool add() { return poller_.add(fd_, *this, EPOLLIN); }
  void ready(std::uint32_t) override {}
  void round_ended() override {
    for (RemovesAll* each : all) poller_.remove(each->fd_, *each);
    throw std::runtime_error("from within");
  }
  std::vector<RemovesAll*> all;

 private:
  Poller& poller_;
  const int fd_;
};

TEST(PollerTest, keeps_nobody_who_is_removed_when_a_round_is_left_by_an_exception) {
  asio::io_context io(1);
  Poller& poller = Poller::of(io);
  auto one = std::make_shared<RemovesAll>(poller), two = std::make_shared<RemovesAll>(poller);
  ASSERT_TRUE(one->add() && two->add());
  one->all = two->all = {one.get(), two.get()};
  EXPECT_THROW(io.run(), std::runtime_error);
  EXPECT_EQ(one.use_count(), 1);
  EXPECT_EQ(two.use_count(), 1);
}

// Takes longer than others may be delayed.
class Slow final : public Poller::Watcher {
 public:
  Slow(Poller& poller, std::vector<std::string>& heard, std::string name)
      : poller_(poller), heard_(heard), name_(std::move(name)), fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Slow() override { close(fd_); }
  bool add() { return poller_.add(fd_, *this, EPOLLIN); }
  void ready(std::uint32_t) override {
    heard_.push_back(name_ + " ready");
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < until) {
    }
  }
  void round_ended() override {
    heard_.push_back(name_ + " ended");
    poller_.remove(fd_, *this);
  }

 private:
  Poller& poller_;
  std::vector<std::string>& heard_;
  const std::string name_;
  const int fd_;
};

TEST(PollerTest, one_that_takes_long_ends_its_round_before_the_others_are_asked) {
  asio::io_context io(1);
  std::vector<std::string> heard;
  const auto one = std::make_shared<Slow>(Poller::of(io), heard, "one");
  const auto two = std::make_shared<Slow>(Poller::of(io), heard, "two");
  ASSERT_TRUE(one->add() && two->add());
  io.run();
  EXPECT_EQ(heard, (std::vector<std::string>{"one ready", "one ended", "two ready", "two ended"}));
}

TEST(PollerTest, others_have_their_turn_after_a_round_that_took_long) {
  asio::io_context io(1);
  class Busy final : public Poller::Watcher {
   public:
    void ready(std::uint32_t) override {
      ++told;
      const auto until = std::chrono::steady_clock::now() + 2 * waiting::Turn::length;
      while (std::chrono::steady_clock::now() < until) {
      }
    }
    int told = 0;
    const int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  };
  const auto busy = std::make_shared<Busy>();
  ASSERT_TRUE(Poller::of(io).add(busy->fd, *busy, EPOLLIN));
  for (int i = 1; i <= 5; ++i) {
    io.poll_one();
    EXPECT_LE(busy->told, i) << "rounds went on while other handlers waited";
  }
  EXPECT_GT(busy->told, 0);
  Poller::of(io).remove(busy->fd, *busy);
  close(busy->fd);
}

// While it polled by itself Asio did not watch.
TEST(PollerTest, one_that_was_busy_is_woken_from_its_sleep) {
  asio::io_context io(1);
  Poller& poller = Poller::of(io);
  class Number final : public Poller::Watcher {
   public:
    void ready(std::uint32_t) override {
      if (++told < busy) return;
      eventfd_t value = 0;
      eventfd_read(fd, &value);
    }
    const int busy = 100;
    int told = 0;
    const int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  };
  const auto number = std::make_shared<Number>();
  ASSERT_TRUE(poller.add(number->fd, *number, EPOLLIN));
  while (number->told < number->busy) io.run_one();
  while (io.poll_one() > 0) {  // until it sleeps
  }
  eventfd_write(number->fd, 1);
  while (number->told == number->busy) io.run_one();
  EXPECT_EQ(number->told, number->busy + 1);
  poller.remove(number->fd, *number);
  close(number->fd);
}

// One end of a connection that sends `answer` at the end of a round in which data arrived.
class Answering final : public Poller::Watcher {
 public:
  Answering(Poller& poller, std::vector<std::string>& heard, std::string name)
      : poller_(poller), heard_(heard), name_(std::move(name)) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw std::system_error(errno, std::generic_category());
    fd_ = ends[0];
    peer = ends[1];
  }
  ~Answering() override {
    leave();
    close(peer);
  }
  bool add() { return poller_.add(fd_, *this, EPOLLIN); }
  void leave() {
    if (fd_ < 0) return;
    poller_.remove(fd_, *this);
    close(std::exchange(fd_, -1));
  }
  void say(std::string_view text) const { ASSERT_EQ(write(peer, text.data(), text.size()), ssize(text)); }
  std::string answered() const {
    std::string text(1 << 20, ' ');
    const ssize_t got = read(peer, text.data(), text.size());
    return text.substr(0, got < 0 ? 0 : static_cast<std::size_t>(got));
  }
  // Writes until it accepts no more; returns how much that was.
  std::size_t fill() const {
    const std::string text(1000, '-');
    std::size_t filled = 0;
    for (ssize_t sent; (sent = send(fd_, text.data(), text.size(), MSG_DONTWAIT)) > 0;)
      filled += static_cast<std::size_t>(sent);
    return filled;
  }

  bool expects_little() override {
    if (when_asked) when_asked();
    return true;
  }
  void received(std::span<const std::byte> place, ssize_t got, int) override {
    heard_.push_back(name_ + " got " +
                     std::string(reinterpret_cast<const char*>(place.data()), static_cast<std::size_t>(got)));
    if (others_end) others_end->leave();
    if (throws) throw std::runtime_error("from within");
  }
  void ready(std::uint32_t) override { heard_.push_back(name_ + " ready"); }
  void round_ended() override {
    for (const std::string& answer : answers)
      heard_.push_back(
          name_ + (poller_.send_soon(*this, std::as_bytes(std::span(answer))) ? " will send" : " may send"));
    if (leaves) leave();
  }
  void unsent(std::span<const std::byte> rest) override {
    left.append(reinterpret_cast<const char*>(rest.data()), rest.size());
  }

  int peer = -1;
  std::vector<std::string> answers{"answer"};
  std::string left;
  bool leaves = false, throws = false;
  std::function<void()> when_asked;
  Answering* others_end = nullptr;

 private:
  Poller& poller_;
  std::vector<std::string>& heard_;
  const std::string name_;
  int fd_ = -1;
};

class AnsweringTest : public testing::Test {
 protected:
  // A round in which `many` of them are ready.
  void round(std::size_t many = 2) {
    for (std::size_t i = 0; i < many; ++i) all[i]->say("x");
    io.run_one();
  }
  void SetUp() override {
    Poller::of(io).hold_answers(std::chrono::hours(1));
    for (const auto& each : all) ASSERT_TRUE(each->add());
  }
  void TearDown() override {
    for (const auto& each : all) each->leave();
  }

  asio::io_context io{1};
  std::vector<std::string> heard;
  const std::vector<std::shared_ptr<Answering>> all{
      std::make_shared<Answering>(Poller::of(io), heard, "one"),
      std::make_shared<Answering>(Poller::of(io), heard, "two"),
      std::make_shared<Answering>(Poller::of(io), heard, "three")};
  Answering& one = *all[0];
  Answering& two = *all[1];
};

TEST_F(AnsweringTest, what_several_say_is_sent_when_all_were_told_what_came) {
  round();
  EXPECT_EQ(heard, (std::vector<std::string>{"one got x", "two got x", "one will send", "two will send"}));
  EXPECT_EQ(one.answered(), "answer");
  EXPECT_EQ(two.answered(), "answer");
}

TEST_F(AnsweringTest, who_has_waited_long_is_told_before_the_others_hear_what_came) {
  Poller::of(io).hold_answers(std::chrono::microseconds(0));
  round();
  EXPECT_EQ(heard, (std::vector<std::string>{"one got x", "one may send", "two got x", "two may send"}));
}

TEST_F(AnsweringTest, what_one_alone_says_is_its_own_to_send) {
  round(1);
  EXPECT_EQ(heard, (std::vector<std::string>{"one got x", "one may send"}));
}

TEST_F(AnsweringTest, a_second_answer_of_a_round_is_not_taken) {
  one.answers = {"first", "second"};
  round();
  EXPECT_EQ(heard, (std::vector<std::string>{"one got x", "two got x", "one will send", "one may send",
                                             "two will send"}));
  EXPECT_EQ(one.answered(), "first");
}

TEST_F(AnsweringTest, more_than_there_is_room_for_is_not_taken) {
  one.answers = {std::string(100'000, 'x')};
  round();
  EXPECT_EQ(heard, (std::vector<std::string>{"one got x", "two got x", "one may send", "two will send"}));
  EXPECT_EQ(two.answered(), "answer");
}

TEST_F(AnsweringTest, who_leaves_has_said_it) {
  one.leaves = true;
  round();
  EXPECT_EQ(one.answered(), "answer");
  EXPECT_EQ(two.answered(), "answer");
}

TEST_F(AnsweringTest, what_the_socket_does_not_take_comes_back) {
  const std::size_t filled = one.fill();
  round();
  EXPECT_EQ(one.answered(), std::string(filled, '-'));
  EXPECT_EQ(one.left, "answer");
  EXPECT_EQ(two.left, "");
}

TEST_F(AnsweringTest, who_was_removed_in_the_round_hears_nothing) {
  one.others_end = &two;
  round();
  EXPECT_EQ(heard, (std::vector<std::string>{"one got x", "one will send"}));
}

TEST_F(AnsweringTest, who_is_removed_while_others_are_asked_is_not_received_from) {
  std::array<int, 2> next{-1, -1};  // with the descriptor that gets free
  two.when_asked = [this, &next] {
    one.leave();
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, next.data()), 0);
    ASSERT_EQ(write(next[1], "for another", 11), 11);
  };
  round();
  std::array<char, 20> got;
  EXPECT_EQ(read(next[0], got.data(), got.size()), 11);
  EXPECT_EQ(heard, (std::vector<std::string>{"two got x", "two will send"}));
  close(next[0]);
  close(next[1]);
}

TEST_F(AnsweringTest, what_was_received_is_handed_on_though_one_throws) {
  one.throws = true;
  EXPECT_THROW(round(3), std::runtime_error);
  io.run_one();
  EXPECT_EQ(heard, (std::vector<std::string>{"one got x", "two got x", "three got x", "one will send",
                                             "two will send", "three will send"}));
}

// Also after an exception, because nothing else would remove them later.
TEST_F(AnsweringTest, who_has_left_is_kept_by_nobody) {
  std::weak_ptr<Answering> last;
  {
    std::vector<std::string> unheard;
    asio::io_context other(1);
    auto alone = std::make_shared<Answering>(Poller::of(other), unheard, "alone");
    last = alone;
    ASSERT_TRUE(alone->add());
    alone->others_end = alone.get();
    alone->throws = true;
    alone->say("x");
    EXPECT_THROW(other.run(), std::runtime_error);
    alone.reset();
    EXPECT_TRUE(last.expired());
  }
}

}  // namespace
}  // namespace weir::rpc
