// A receiving connection, and the listener that it comes from.
//
// irecv() posts a receive for each buffer and writes the group's offers into the sender's memory with one
// WRITE. Each message consumes one receive and names its buffer in its immediate. Groups arrive in the order
// of the irecv() calls, so a message of group g consumes a receive of group g; a group of one may therefore
// receive a SEND directly into its buffer.
//
// Anyone may connect to a Listener: it rejects those who do not know its handle's secret, allows at most
// `max_handshakes` at a time, and gives each `handshake_timeout`.
#pragma once

#include <array>
#include <functional>
#include <list>
#include <memory>

#include "nccl/books.hpp"
#include "nccl/connection.hpp"

namespace weir::nccl {

class Receiver final : public Connection {
 public:
  static rdma::Result<std::unique_ptr<Receiver>> accept(std::shared_ptr<Nic> nic, rdma::CmId id,
                                                        const Hello& hello, FaultDice dice,
                                                        Clock::time_point deadline);
  // True once the peer has confirmed the connection; false: not yet.
  rdma::Result<bool> established(Clock::time_point now);

  // Posts a group of receives. *request is nullptr while `slots` groups are in progress. `optional`: the
  // caller detects the arrival of the data itself, so if the device delivers without the receiver's help the
  // request may be reported as done at once.
  Status irecv(std::span<void* const> data, std::span<const std::size_t> bytes, std::span<const int> tags,
               std::span<Region* const> regions, bool optional, Request** request);
  Status test(Request& request, int* done, int* bytes) override;

 private:
  static constexpr std::uint32_t receive_depth = slots * max_group;
  static constexpr std::uint32_t offer_depth = 128;
  static constexpr std::uint32_t signal_interval = 16;

  struct Receive : Request {
    std::uint8_t slot = 0;
    // Where a SEND goes, if the group has one buffer.
    ibv_sge buffer{};
    Clock::time_point post_at{};  // injected: when to post its receives
    Clock::time_point show_at{};  // injected delay
  };

  Receiver(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CompletionQueue cq, rdma::CmId id,
           FaultDice dice);
  rdma::Result<void> prepare();
  void on_success(const ibv_wc& completion) override;
  Status check(std::span<void* const> data, std::span<const std::size_t> bytes,
               std::span<Region* const> regions);
  Status post_receives(Receive& receive);
  Status post_offers(std::uint8_t slot, std::size_t count);
  Status withhold_or_post(Receive& receive);
  void post_withheld(Clock::time_point now);

  std::uint64_t peer_offers_ = 0;
  std::uint32_t peer_offers_rkey_ = 0;
  bool established_ = false;
  rdma::MemoryPool::Block rows_;  // the source of the WRITEs to the peer
  std::uint32_t rows_lkey_ = 0;
  std::uint32_t offers_posted_ = 0, offers_sent_ = 0;  // modulo 2^32
  GroupBook book_;
  std::array<Receive, slots> receives_;
  // Injected RNR storms: the receives of groups [withheld_, opened_) are not posted yet; they are posted in
  // order.
  std::uint64_t opened_ = 0, withheld_ = 0;
};

class Listener {
 public:
  using Clock = Connection::Clock;
  static constexpr std::size_t max_handshakes = 64;
  static constexpr std::chrono::seconds handshake_timeout{10};

  // Makes the dice for a new connection.
  using Dice = std::function<FaultDice()>;
  static rdma::Result<std::unique_ptr<Listener>> listen(std::shared_ptr<Nic> nic, std::uint64_t secret,
                                                        Dice dice);
  Handle handle() const;
  // Returns a connection whose handshake is complete; nullptr: none yet.
  rdma::Result<std::unique_ptr<Receiver>> accept(Clock::time_point now);

 private:
  Listener(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CmId id, std::uint64_t secret,
           Dice dice);
  void on_request(const rdma::CmEvent& event, Clock::time_point now);

  std::shared_ptr<Nic> nic_;
  rdma::EventChannel events_;
  rdma::CmId id_;
  std::uint64_t secret_;
  Dice dice_;
  std::list<std::unique_ptr<Receiver>> handshakes_;
};

}  // namespace weir::nccl
