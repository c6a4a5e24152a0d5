// What is left of a poller when somebody in it throws.
#include "rpc/poller.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <stdexcept>

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
    if (told <= throws) throw std::runtime_error("from within");
  }

  int told = 0, last = 1, throws = 0;

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

}  // namespace
}  // namespace weir::rpc
