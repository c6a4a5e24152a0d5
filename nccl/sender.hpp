// A sending connection: connects, reads the peer's offers and writes each message into the offered buffer.
//
// A message is one WRITE WITH IMMEDIATE into the offered buffer, or one SEND if it is small and its receive
// is posted. Its own completion ends its request, so a send of a group completes whether or not the others
// were made. The peer writes its offers into `offers_`; their sequence numbers show which are new.
#pragma once

#include <array>
#include <memory>

#include "nccl/books.hpp"
#include "nccl/connection.hpp"

namespace weir::nccl {

class Sender final : public Connection {
 public:
  // The most that NCCL has in progress: that many groups of that many sends.
  static constexpr std::size_t max_sends = std::size_t{max_requests} * max_group;
  // Messages up to this size use SEND where they can.
  static constexpr std::uint32_t send_bytes = 4096;

  struct Options {
    std::chrono::milliseconds ack_timeout, connect_timeout;
    int traffic_class = -1;
    FaultDice dice;
  };
  // Starts to connect; call connected() until it is.
  static rdma::Result<std::unique_ptr<Sender>> connect(std::shared_ptr<Nic> nic, const Handle& handle,
                                                       const Options& options, Clock::time_point now);
  // True once the peer accepted; false: not yet.
  rdma::Result<bool> connected(Clock::time_point now);

  // *request is nullptr while the peer has not offered a buffer for this tag. Of a message that is longer
  // than its receive only that much is sent, and test() reports it. After the peer's end there are requests
  // for the offers that it left open, which end with the error.
  Status isend(void* data, std::size_t bytes, int tag, const Region& region, Request** request);
  Status test(Request& request, int* done, int* bytes) override;

 private:
  struct Send : Request {
    std::uint32_t bytes = 0;
    bool done = false;
    Send* next_free = nullptr;
    Clock::time_point show_at{};  // injected delay
  };

  Sender(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CompletionQueue cq,
         const Options& options);
  rdma::Result<void> prepare();
  rdma::Result<void> step(const rdma::CmEvent& event);
  rdma::Result<void> request_connection();
  void on_success(const ibv_wc& completion) override;
  Status send_in_vain(const std::optional<Taken>& offer, Request** request);
  Status post(const Taken& offer, void* data, const Region& region, Send& send);

  Options options_;
  std::uint64_t secret_ = 0;
  bool established_ = false;
  rdma::MemoryPool::Block offers_;
  std::optional<rdma::MemoryRegion> offers_region_;
  std::optional<OfferBook> book_;
  std::array<Send, max_sends> sends_;
  Send* free_ = nullptr;
};

}  // namespace weir::nccl
