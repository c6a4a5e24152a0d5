// A link over one RDMA connection.
//
// Messages are SENDs into blocks of wire::message_bytes; their immediates return credits. A transfer is a
// series of WRITEs straight into the other end's memory, followed by its record as a WRITE_WITH_IMM into the
// other end's table, with the index as the immediate. A message and a record each consume one receive of the
// other end, so both wait for credits (rdma/channel/channel_books.hpp). If nothing else carries credits, an
// empty SEND does; it uses one of the spare receives.
//
// Expected memory is registered only for the duration of its transfer, so an rkey opens nothing but what was
// offered. Small transfers land in a table that the link owns, and are copied out once: that costs less than
// a registration.
//
// Ownership: the engine owns the link, as it does every connection; the user of the pointer calls leave().
// Threading: the engine's thread.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>

#include "rdma/channel/channel_books.hpp"
#include "rdma/device/peer_right.hpp"
#include "rdma/engine.hpp"
#include "rdma/engine/connection_life.hpp"
#include "tensor/link/link.hpp"
#include "tensor/link/outbox.hpp"

namespace weir::tensor {

struct RdmaLinkSettings {
  std::uint64_t generation = 0;  // this hub's; 0 for a peer
  std::chrono::milliseconds resolve_timeout{2000}, ack_timeout{250}, linger{1000}, keepalive{3000};
};

class RdmaLink final : public rdma::ConnectionLife, public Link {
 public:
  // Starts to connect. `events` receives the outcome: on_up() or on_end().
  static Result<RdmaLink*> connect(rdma::Engine& engine, const rdma::Endpoint& peer,
                                   const RdmaLinkSettings& settings, LinkEvents& events,
                                   std::function<void()> on_up);
  // Makes the server's end, for Arrivals.
  static rdma::Result<ConnectionLife*> accept(rdma::Engine& engine, const RdmaLinkSettings& settings);

  RdmaLink(rdma::Engine& engine, std::uint64_t tag, Side side, const RdmaLinkSettings& settings);
  ~RdmaLink() override;

  void set_events(LinkEvents& events);

  // Link:
  bool is_up() const override { return state_ == State::established; }
  void send(const wire::Message& message) override;
  void write(Transfer transfer) override;
  Result<wire::Memory> expect(std::uint32_t index, std::span<std::byte> memory) override;
  void forget(std::uint32_t index) override;
  Result<std::vector<wire::Memory>> expose(const Source& source) override;
  Result<void> read(std::uint32_t index, std::span<const wire::Memory> sources) override;
  bool can_read() const override { return true; }
  void leave() override;
  void break_off(const Error& cause) override;
  std::uint64_t generation() const override { return theirs_.generation; }
  rdma::Endpoint remote() const override { return remote_; }
  std::optional<std::uint64_t> arrived(std::uint32_t) const override { return std::nullopt; }

  // Called by the engine:
  void on_completion(const ibv_wc& completion) override;
  void on_tick(rdma::Clock::time_point now) override;
  void notify() override;

 private:
  // What a work request keeps alive until it completes.
  struct Posted {
    std::shared_ptr<const Source> source;
    bool message = false;               // returns its send block when done
    std::optional<std::uint32_t> read;  // set on the last READ of this index
  };
  // Memory that a transfer will fill.
  struct Expected {
    std::uint32_t index = 0;
    std::span<std::byte> memory;
    bool lands = false;     // received in our table, then copied
    rdma::PeerRight right;  // to write it, if it does not land in the table
  };
  struct Reading {
    std::uint32_t index = 0;
    std::vector<wire::Memory> sources;
    std::size_t source = 0;
    std::uint64_t in_source = 0;
    std::uint64_t done = 0;
  };

  // ConnectionLife:
  rdma::Result<void> prepare() override;
  std::uint8_t read_depth() const override { return 16; }
  std::optional<std::chrono::microseconds> rnr_wait() const override {
    return std::chrono::microseconds(640);
  }
  std::span<const std::byte> greeting() const override { return greeting_; }
  rdma::Result<void> greeted(std::span<const std::byte> bytes) override;
  void on_established() override;
  void on_abandoned() override;
  bool drained() override;
  void revoke_rights() override;
  void release_resources() override;
  void release_unread() override {}
  rdma::Error explain(const ibv_wc& completion) const override;

  // In rdma_link.cpp:
  void on_receive(const ibv_wc& completion);
  void on_record(std::uint32_t index);
  void on_bytes(std::span<const std::byte> message);
  void deliver_early();
  bool post_receive(std::uint32_t which);
  void broke(std::string what);
  // In rdma_link_send.cpp:
  void pump();
  bool grant(rdma::PeerRight& right);
  bool grant_expected();
  bool post_frame();
  bool post_data(Outgoing& outgoing);
  bool post_record(const Transfer& transfer);
  bool post_reads(Reading& reading);
  void acknowledge();
  bool post(ibv_send_wr& wr, Posted keep, bool signal);
  void on_send_done();
  std::uint32_t give_credits();

  const RdmaLinkSettings settings_;
  LinkEvents* events_ = nullptr;
  bool end_told_ = false;
  wire::Greeting theirs_;
  std::vector<std::byte> greeting_;

  rdma::MemoryPool::Block receive_block_, send_block_, table_block_;
  struct Lkeys {
    std::uint32_t receive = 0, send = 0, table = 0;
  } lkeys_;
  rdma::PeerRight table_;           // to write records, then landing places
  std::uint32_t next_receive_ = 0;  // receives complete in the order they were posted

  rdma::Credits credits_;
  rdma::Grants grants_;
  rdma::SendRing<Posted> ring_;
  std::uint32_t most_pieces_ = 1;
  std::uint32_t messages_posted_ = 0, messages_done_ = 0;  // their difference is the number of blocks in use
  std::deque<std::vector<std::byte>> early_;               // frames that came before they could be delivered
  Outbox outbox_;
  std::deque<Reading> reads_;
  std::array<Expected, wire::slots> expected_;
  bool to_grant_ = false;  // some right of expected_ may not be bound yet
  rdma::Clock::time_point next_keepalive_{}, stalled_since_{};
};

}  // namespace weir::tensor
