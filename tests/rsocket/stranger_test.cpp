// A client over plain verbs that has a connection of its own and knows the addresses and keys of another.
#include <array>

#include "tests/rsocket/fixture.hpp"
#include "verbs/rsocket/stream_wire.hpp"

namespace weir::rsocket {
namespace {

using cm::Events;
using cm::IdRef;

// Speaks rsocket(7)'s greeting, and from then on writes what it likes.
class Stranger {
 public:
  explicit Stranger(sockaddr_in to) : id_(cm::make_id(events_)) {
    cm::resolve(id_, events_, ntohs(to.sin_port));
    cm::make_qp(id_);
    region_ = rdma_reg_msgs(id_.get(), memory_.data(), memory_.size());
    const RemoteBuffer own{reinterpret_cast<std::uintptr_t>(memory_.data()), region_->rkey, 2};
    Greeting mine{.credits = 4, .buffer_list = own, .first_buffer = own};
    mine.first_buffer.length = static_cast<std::uint32_t>(memory_.size());
    const auto greeting = encode(mine);
    rdma_conn_param asked{};
    asked.private_data = greeting.data();
    asked.private_data_len = greeting.size();
    asked.rnr_retry_count = 7;
    EXPECT_EQ(rdma_connect(id_.get(), &asked), 0);
    const cm::EventRef up = events_.expect(RDMA_CM_EVENT_ESTABLISHED);
    const auto theirs = parse_greeting(
        {static_cast<const std::byte*>(up->param.conn.private_data), up->param.conn.private_data_len});
    EXPECT_TRUE(theirs);
    if (theirs) greeting_ = *theirs;
  }
  ~Stranger() {
    if (region_ != nullptr) rdma_dereg_mr(region_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // Where the other end receives, as it told this connection.
  const Greeting& theirs() const { return greeting_; }
  ibv_wc_status write(const RemoteBuffer& to) {
    EXPECT_EQ(rdma_post_write(id_.get(), nullptr, memory_.data(), 8, region_, 0, to.address, to.key), 0);
    ibv_wc done{};
    EXPECT_EQ(rdma_get_send_comp(id_.get(), &done), 1);
    return done.status;
  }

 private:
  Events events_;
  IdRef id_;
  std::array<std::byte, 4096> memory_{};
  ibv_mr* region_ = nullptr;
  Greeting greeting_;
};

TEST(RsocketStranger, cannot_write_where_another_stream_receives) {
  const Rsocket listener = listening();
  const sockaddr_in at = name_of(listener);
  Stranger neighbour(at);
  struct Row {
    const char* what;
    RemoteBuffer to;
  };
  for (const Row& row : {Row{"its receive buffer", neighbour.theirs().first_buffer},
                         Row{"its list of buffers", neighbour.theirs().buffer_list}}) {
    Stranger attacker(at);
    EXPECT_EQ(attacker.write(row.to), IBV_WC_REM_ACCESS_ERR) << row.what;
  }
  EXPECT_EQ(neighbour.write(neighbour.theirs().first_buffer), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weir::rsocket
