// Rounds of a poller, and what is left of one when somebody in it throws.
#include "rpc/poller.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::rpc {
namespace {

// Ready until it has been told so often.
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
  thrower->last = 4;  // added again, it is not taken for removed, and one that is added anew keeps run() busy
  ASSERT_TRUE(thrower->add());
  io.restart();
  io.run();
  EXPECT_EQ(thrower->told, 4);
}

// Also behind one of somebody's that threw, before or behind it.
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
      all.back()->last = 1000;  // far beyond the rounds that are looked at
      ASSERT_TRUE(all.back()->add());
    }
    all[2]->throws = row.throws;
    all[2]->throws_at_end = row.throws_at_end;
    // Between two turns of the io_context no round is under way.
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

// One that throws at its end has removed all, and keeps nobody.
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

// Takes longer than others are to be held up.
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

}  // namespace
}  // namespace weir::rpc
