// What a sending and a receiving connection share: a reliable queue pair of its own, a completion queue that
// only this connection polls, and how it ends.
//
// A connection never blocks and has no thread: events are noticed when NCCL calls test(), or isend() and
// irecv() while they have nothing to do. The first failure ends the connection. It is logged once with its
// cause, and every later call returns its status, except that requests that were complete before still report
// success, and that a sender takes the offers of a peer that left (Sender::isend).
//
// Threading: one thread at a time for each connection, as NCCL calls it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "nccl/abi_types.hpp"
#include "nccl/fault_dice.hpp"
#include "nccl/nic.hpp"
#include "rdma/device/memory_pool.hpp"
#include "rdma/verbs/cm.hpp"

namespace weir::nccl {

class Connection;

// The request that isend() and irecv() return, for NCCL to pass to test().
struct Request {
  Connection* owner = nullptr;
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Whether a request is done. `bytes`, unless it is nullptr, gets the sizes that were sent or received.
  virtual Status test(Request& request, int* done, int* bytes) = 0;

  Nic& nic() { return *nic_; }
  Status status() const { return status_; }
  // Disconnects from the peer. Messages already sent still arrive. Memory of pending requests is not used any
  // more once the connection is destroyed.
  void hang_up();
  // The peer's process is inside an operation on our queue pair, so destroying it would block.
  bool busy() const;

 protected:
  struct Depths {
    std::uint32_t sends, receives;
  };
  Connection(std::shared_ptr<Nic> nic, rdma::EventChannel events, rdma::CompletionQueue cq, FaultDice dice,
             std::string role);

  static rdma::Result<rdma::CompletionQueue> make_cq(const Nic& nic, Depths depths);
  rdma::Result<void> make_queue_pair(Depths depths);
  rdma_conn_param parameters(const void* private_data, std::size_t bytes) const;
  void set_traffic_class(int traffic_class);

  // Takes all completions; on_success() gets the successful ones.
  void poll();
  virtual void on_success(const ibv_wc& completion) = 0;
  // Call when there is nothing to do: polls, and now and then makes the system call that finds a peer that
  // left.
  void idle();
  Status fail(Status status, const std::string& what);
  // Decides whether an injected fault ends the connection with this operation.
  void roll_fatal_dice();
  rdma::Error connect_failure(const rdma::CmEvent& event) const;

  std::shared_ptr<Nic> nic_;
  rdma::EventChannel events_;
  rdma::CompletionQueue cq_;
  rdma::MemoryPool pool_;
  rdma::CmId id_;
  FaultDice dice_;
  std::string role_;  // "send connection", for the log
  rdma::Endpoint peer_;
  Clock::time_point deadline_{};  // for the handshake
  std::uint32_t inline_bytes_ = 0;

 private:
  void on_failed(const ibv_wc& completion);
  void look_at_events();

  Status status_ = Status::success;
  std::uint32_t idle_calls_ = 0;  // since the last completion
};

}  // namespace weir::nccl
