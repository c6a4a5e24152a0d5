// Flow steering: which Ethernet frames go to which of this process's raw packet queue pairs
// (ibv_create_flow(3)).
//
// Each process keeps its own rules in its segment, and the sender of a frame looks into the segments of all
// processes (raw_packet.cpp), as with multicast groups. Threading: add and remove from any thread; neighbours
// read rules while they change, so a rule's queue pair is stored last and cleared first.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "rnic/memory/qp_entries.hpp"
#include "rnic/memory/segment.hpp"

namespace weir::rnic {

struct FlowMatch {
  std::uint32_t priority;  // 0 comes first
  FrameWords value, mask;  // value has no bit that mask has not
};

class Steering {
 public:
  explicit Steering(Segment& segment) : segment_(segment) {}

  // A number to remove it by; nothing when the table is full.
  std::optional<std::uint32_t> add(std::uint32_t qp_index, const FlowMatch&);
  void remove(std::uint32_t rule);
  void forget(std::uint32_t qp_index);  // all its rules

 private:
  QpEntries<SteeringRule> rules() const;

  Segment& segment_;
  std::mutex mutex_;
};

}  // namespace weir::rnic
