// What the requester asks of a send queue: its work requests in order, the memory they name, and somebody to
// tell that they are done.
//
// WQEs are named by their count since the queue was made, modulo 2^32, as SendQueue does. All calls are made
// from inside the requester's own calls, under the lock that the caller holds for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/memory/gather.hpp"
#include "rnic/types.hpp"

namespace weir::rnic::packet {

struct WorkRequest {
  SendOpcode opcode = SendOpcode::send;
  bool solicited = false;
  bool fence = false;        // wait until every earlier READ and atomic has its answer
  std::uint32_t imm_be = 0;  // as posted; of a SEND that invalidates, the key in host order
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint64_t compare_add = 0, swap = 0;  // atomics
  std::uint32_t srqn = 0;                   // XRC
  bool signaled = true;                     // the program waits for its completion
};

class SendSource {
 public:
  // WQEs before this count may be sent. In SQD: up to Requester::begun().
  virtual std::uint32_t posted() const = 0;

  // Reads a WQE and checks the memory it names (lkeys, bounds, length, initiator depth). `pieces` of a READ
  // or an atomic are where the answer goes; an atomic's are 8 bytes. Asked once when the WQE begins, and
  // again whenever part of it is sent anew or its answer comes. Not success: the WQE fails with this status,
  // behind all before it.
  virtual WcStatus look_up(std::uint32_t wqe, WorkRequest&, Gather& pieces) = 0;

  // bind_window and local_invalidate: carried out here, in their turn.
  virtual WcStatus execute_local(std::uint32_t wqe) = 0;

  // Bytes of an answer into the WQE's memory (a READ's, an atomic's 8 in host order), `offset` from the start
  // of its pieces. false: the memory is gone.
  virtual bool scatter(std::uint32_t wqe, const Gather& pieces, std::uint64_t offset,
                       std::span<const std::byte>) = 0;

  // In order, each once. A status other than success is the last call: the queue pair is then in error, and
  // whoever owns the queue flushes the rest.
  virtual void complete(std::uint32_t wqe, WcStatus, std::uint64_t bytes) = 0;

 protected:
  ~SendSource() = default;
};

}  // namespace weir::rnic::packet
