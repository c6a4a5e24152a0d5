// The peer that plays our responder, as the queue pair's owner sees it: on the same host, the process of the
// queue pair connected to ours executes its operations on our memory itself.
//
// During an operation, our context's hazard is odd. The initiator may be stopped or killed there, so every
// wait for it is bounded in time. Threading: any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "rnic/queue_pair/qp_common.hpp"
#include "rnic/same_host/current_cpu.hpp"

namespace weir::rnic {

// The longest a neighbour's operation can reasonably run: 2 GiB through the kernel.
inline constexpr std::uint64_t longest_operation_ns = 2'000'000'000;

class Initiator {
 public:
  explicit Initiator(const QpCommon& qp) : qp_(qp) {}

  Slot slot() const { return slot_.load(std::memory_order_relaxed); }
  void set_slot(Slot slot) { slot_.store(slot, std::memory_order_relaxed); }
  // xrc_recv: another process may have connected it.
  void note();

  // Returns once its current operation is over, or it is dead. False: it was still inside after that time;
  // whatever it may touch must then stay where it is.
  bool wait(std::uint64_t longest_ns) const;
  // It moved us to ERR and leaves its operation at once.
  bool leaves_at_once() const;
  // A count that changes with each operation; odd during one.
  std::uint32_t hazard() const { return qp_.ctx->hazard.load(std::memory_order_seq_cst); }
  // It is alive and still inside the operation that began at this count.
  bool still_inside(std::uint32_t hazard) const;
  // It was killed: end its operation here, because a process that takes over its slot would look as if it
  // were still inside.
  void end_operation();
  // Its last doorbell was rung on that CPU.
  bool on(Cpu cpu) const { return qp_.ctx->initiator_cpu.load(std::memory_order_relaxed) == cpu; }

 private:
  bool wait_for_datagram_senders() const;
  bool lives() const { return qp_.nic.host.peer(slot(), HostPort::Wait::no) != nullptr; }

  const QpCommon& qp_;
  std::atomic<Slot> slot_{0};
};

}  // namespace weir::rnic
