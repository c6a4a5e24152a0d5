// A peer on another host that knows the ring of another connection, its address and its key.
#include <array>
#include <optional>

#include "sockets/far_link.hpp"
#include "tests/cm/cm_fixture.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::sockets {
namespace {

// Plain verbs: takes the greeting of a link and then writes what it likes.
class Peer {
 public:
  explicit Peer(std::uint16_t port) : id_(cm::make_id(events_)) {
    cm::resolve(id_, events_, port);
    cm::make_qp(id_);
    region_ = rdma_reg_msgs(id_.get(), memory_.data(), memory_.size());
    EXPECT_EQ(rdma_post_recv(id_.get(), nullptr, memory_.data(), far_message_bytes, region_), 0);
    auto asked = cm::parameters();
    EXPECT_EQ(rdma_connect(id_.get(), &asked), 0);
  }
  ~Peer() { rdma_dereg_mr(region_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void await_connection() { events_.expect(RDMA_CM_EVENT_ESTABLISHED); }
  // Where the link receives.
  FarHello hello() {
    ibv_wc done{};
    EXPECT_EQ(rdma_get_recv_comp(id_.get(), &done), 1);
    return read_hello(std::span(memory_).first(done.byte_len)).value();
  }
  ibv_wc_status write(const FarHello& to) {
    EXPECT_EQ(rdma_post_write(id_.get(), nullptr, memory_.data(), 8, region_, 0, to.ring_address, to.rkey),
              0);
    ibv_wc done{};
    EXPECT_EQ(rdma_get_send_comp(id_.get(), &done), 1);
    return done.status;
  }

 private:
  cm::Events events_;
  cm::IdRef id_;
  std::array<std::byte, 4096> memory_{};
  ibv_mr* region_ = nullptr;
};

class FarStranger : public testing::Test {
 protected:
  struct Connected {
    std::unique_ptr<Peer> peer;
    std::unique_ptr<FarLink> link;
  };
  Connected connect(std::uint32_t port) {
    Key key;
    key.low.port = port;
    key.high.port = port + 1;
    Connected made{std::make_unique<Peer>(cm::port_of(listener_)), nullptr};
    rdma_cm_id* id = events_.expect(RDMA_CM_EVENT_CONNECT_REQUEST)->id;
    made.link = FarLink::make(*table_, table_->claim(key, true).value(), id, *arrivals_, 64 << 10);
    auto accepted = cm::parameters();
    EXPECT_EQ(rdma_accept(id, &accepted), 0);
    made.peer->await_connection();
    events_.expect(RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_TRUE(made.link->greet({}));
    return made;
  }

 private:
  std::string why_not_;
  test::ScratchDirectory directory_;
  std::unique_ptr<Table> table_ = Table::open(directory_.path(), why_not_);
  FarArrivals* const arrivals_ = new FarArrivals(*table_);  // never freed
  cm::Events events_;
  cm::IdRef listener_ = cm::make_listener(events_);
};

TEST_F(FarStranger, cannot_write_into_the_ring_of_another_link) {
  const Connected neighbour = connect(1000), attacker = connect(2000);
  const FarHello neighbours = neighbour.peer->hello(), own = attacker.peer->hello();
  EXPECT_EQ(attacker.peer->write(own), IBV_WC_SUCCESS);
  EXPECT_EQ(attacker.peer->write(neighbours), IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(neighbour.peer->write(neighbours), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace weir::sockets
