// Threads that sleep until something arrives from another host: each is woken, whoever takes the event.
#include "sockets/far_arrivals.hpp"

#include <unistd.h>

#include <future>
#include <string>
#include <thread>

#include "tests/scratch_directory.hpp"
#include "tests/verbs/verbs_test.hpp"

namespace weir::sockets {
namespace {

using verbs_test::readable;

// A link that counts. Its queue pair is connected to another one of this process.
class FarArrivalsTest : public verbs_test::VerbsTest, private FarArrivals::Receiver {
 protected:
  FarArrivalsTest()
      : table_(Table::open(directory_.path(), why_not_)),
        arrivals(*new FarArrivals(*table_)),  // never freed
        seat_(arrivals.join(*this, context.get(), 0)),
        cq_(make_cq()),
        sender_(make_qp(cq_.get())) {
    ibv_qp_init_attr init = verbs_test::init_attr(cq_.get());
    init.recv_cq = seat_->queue;
    receiver_.reset(ibv_create_qp(pd.get(), &init));
    connect(sender_.get(), receiver_.get());
    for (std::uint64_t slot = 0; slot < 32; ++slot)
      EXPECT_EQ(verbs_test::post_recv(receiver_.get(), seat_->number * FarArrivals::receives_a_link + slot),
                0);
  }
  ~FarArrivalsTest() override {
    receiver_.reset();
    arrivals.leave(seat_->number);
  }

  void one_arrives() {
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(verbs_test::post(sender_.get(), request), 0);
  }
  bool is_audible() { return readable(arrivals.fd()); }
  int taken() const { return taken_; }

 private:
  bool take(const ibv_wc&) override {
    ++taken_;
    return false;
  }
  void answer() override {}

  std::string why_not_;
  test::ScratchDirectory directory_;
  std::unique_ptr<Table> table_;

 protected:
  FarArrivals& arrivals;

 private:
  std::optional<FarArrivals::Seat> seat_;
  verbs_test::Cq cq_;
  verbs_test::Qp sender_, receiver_;
  int taken_ = 0;
};

// Sleeps beside the thread of the test, until it is destroyed.
class OtherSleeper {
 public:
  explicit OtherSleeper(FarArrivals& arrivals)
      : thread_([this, &arrivals] {
          arrivals.will_sleep();
          asleep_.set_value();
          over_.get_future().wait();
          arrivals.awake();
        }) {
    asleep_.get_future().wait();
  }
  ~OtherSleeper() {
    over_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> asleep_, over_;
  std::thread thread_;
};

TEST_F(FarArrivalsTest, an_arrival_wakes_a_sleeper) {
  arrivals.will_sleep();
  EXPECT_FALSE(is_audible());
  one_arrives();
  EXPECT_TRUE(is_audible());
  arrivals.woken();
  arrivals.awake();
  EXPECT_FALSE(is_audible());
  EXPECT_EQ(taken(), 1);
}

// The service thread was woken, too, and takes the event before the sleeper has looked at the descriptor.
TEST_F(FarArrivalsTest, a_sleeper_is_woken_although_the_service_took_an_earlier_event) {
  ASSERT_TRUE(arrivals.plan().on_fd);
  one_arrives();
  arrivals.will_sleep();
  arrivals.take_event();
  EXPECT_FALSE(is_audible());
  one_arrives();
  EXPECT_TRUE(is_audible());
  arrivals.awake();
}

TEST_F(FarArrivalsTest, a_sleeper_is_woken_although_another_took_an_earlier_event) {
  const OtherSleeper other(arrivals);
  arrivals.will_sleep();
  one_arrives();
  arrivals.woken();
  arrivals.awake();
  EXPECT_FALSE(is_audible());
  one_arrives();
  EXPECT_TRUE(is_audible()) << "the other one sleeps on";
}

TEST_F(FarArrivalsTest, nothing_is_audible_if_nobody_sleeps) {
  arrivals.will_sleep();
  one_arrives();
  arrivals.woken();
  arrivals.awake();
  one_arrives();
  EXPECT_FALSE(is_audible());
  arrivals.look();
  EXPECT_EQ(taken(), 2);
}

}  // namespace
}  // namespace weir::sockets
