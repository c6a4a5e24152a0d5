// What a sending and a receiving connection share: a reliable queue pair of their own, a completion queue
// that only they poll, and how they end.
//
// A connection never blocks and has no thread: whatever happened is found when NCCL calls test(), or isend()
// and irecv() while they have nothing to do. The first failure ends it (status() stays what it was), is
// logged once with its cause, and is what every later call returns; requests that were complete before still
// tell so.
//
// Threading: one thread at a time for each connection, as NCCL calls it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "rdma/device/memory_pool.hpp"
#include "rdma/verbs/cm.hpp"
#include "tensor/nccl/abi_types.hpp"
#include "tensor/nccl/fault_dice.hpp"
#include "tensor/nccl/nic.hpp"

namespace weir::nccl {

class Connection;

// What isend() and irecv() give NCCL to ask about.
struct Request {
  Connection* owner = nullptr;
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Whether a request is done; `bytes` gets the sizes of what was sent or received if it is not nullptr.
  virtual Status test(Request& request, int* done, int* bytes) = 0;

  Nic& nic() { return *nic_; }
  Status status() const { return status_; }
  // Tells the peer that it is over. What was sent is sent; the memory of what is under way is no longer used
  // once the connection is destroyed.
  void hang_up();
  // The peer's process is inside an operation on our queue pair: destroying it would wait for it.
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

  // Takes what completed. Successes go to on_success().
  void poll();
  virtual void on_success(const ibv_wc& completion) = 0;
  // While there is nothing to do: looks for a peer that left, now and then also where that costs a call.
  void idle();
  Status fail(Status status, const std::string& what);
  // Injected: whether this operation is to be the connection's end.
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
  Clock::time_point deadline_{};  // of the handshake
  std::uint32_t inline_bytes_ = 0;

 private:
  void on_failed(const ibv_wc& completion);
  void look_at_events();

  Status status_ = Status::success;
  std::uint32_t idle_calls_ = 0;  // since something completed
};

}  // namespace weir::nccl
