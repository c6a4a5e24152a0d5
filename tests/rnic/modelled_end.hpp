// One end of the connection of model_test.cpp: the real queue pair with its memory, and the
// state that the model expects.
#pragma once

#include "two_nics.hpp"

namespace weir::rnic::test {

inline constexpr std::uint32_t send_depth = 24, recv_depth = 16;
inline constexpr std::size_t slot_bytes = 9000, written_bytes = 64 * 1024;
inline constexpr std::size_t boundary_sizes[] = {0,    1,    35,   36,   37,   64,   255,
                                                 4095, 4096, 4097, 8191, 8192, 8193, 9000};

enum class Flaw { none, bad_rkey, bad_lkey, misaligned, too_long };

struct PlannedSend {
  std::uint64_t id;
  SendOpcode opcode;
  std::size_t from, length, to;
  std::uint32_t imm;
  bool signaled;
  Flaw flaw;
  AtomicOperands operands;

  bool is_atomic() const {
    return opcode == SendOpcode::compare_and_swap || opcode == SendOpcode::fetch_and_add;
  }
  bool fetches() const { return is_atomic() || opcode == SendOpcode::rdma_read; }
  bool takes_receive() const { return !fetches() && opcode != SendOpcode::rdma_write; }
  bool is_send() const { return opcode == SendOpcode::send || opcode == SendOpcode::send_with_imm; }
};

struct Expected {
  std::uint64_t id;
  WcStatus status;
  WcOpcode opcode;
  std::size_t from = 0, length = 0;  // where in the sender's source the payload of a receive is
  bool has_imm = false;
  std::uint32_t imm = 0;
};

// One end, real and modelled.
struct End {
  End(Nic& nic, Reach reach)
      : endpoint(nic, {.caps = {send_depth, recv_depth, 4, 4, 256}}),
        source(nic, written_bytes, all_access, reach),
        written(nic, written_bytes, all_access, reach),
        fetched(nic, written_bytes, all_access, reach),
        slots(nic, slot_bytes * recv_depth, all_access, reach),
        model_written(written_bytes),
        model_fetched(written_bytes) {}

  Endpoint endpoint;
  Memory source, written, fetched, slots;  // read by sends / target of WRITEs / of own READs / of SENDs

  std::deque<PlannedSend> sends;       // not executed yet
  std::deque<std::uint64_t> receives;  // posted and not taken
  std::deque<Expected> send_completions, receive_completions;
  std::vector<std::byte> model_written, model_fetched;
  std::uint64_t next_send = 0, next_receive = 0, freed = 0, polled_receives = 0;
  bool failed = false;
  bool paused = false;              // in sqd
  std::size_t under_way = 0;        // sends that the pause found begun
  std::size_t expected_drains = 0;  // events that pauses promised
};

}  // namespace weir::rnic::test
