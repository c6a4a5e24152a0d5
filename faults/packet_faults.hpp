// Decides which faults hit a packet that leaves or arrives, and counts them.
//
// The same packets in the same order get the same faults. A share of packets (`rate=`) is drawn from the seed
// and from the packet's identity: queue pair, direction, PSN and how often this packet was hit before. So the
// requests that are hit do not depend on when acknowledgements come, and a retransmission is drawn anew.
//
// Pure: time is passed in. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "faults/fault.hpp"
#include "faults/packet_kinds.hpp"

namespace weir::faults {

// A packet on its way past us, with our own queue pair: its sender if it leaves, else its destination.
struct Passing {
  Direction direction = Direction::out;
  std::uint32_t own_qpn = 0;         // ignored for one that arrives: its headers say it
  std::span<const std::byte> bytes;  // from the BTH on
  // The index of our own address, its source if it leaves, else its destination; nullopt: not known.
  std::optional<std::uint64_t> own_gid = {};
};

// What is to happen to it.
struct Verdict {
  bool drop = false, corrupt = false, alter = false, mark = false;
  std::uint64_t copies = 0;        // further ones
  std::uint64_t delay_ns = 0;      // 0: none
  std::uint64_t overtaken_by = 0;  // packets of its queue pair and direction; 0: none
  bool paused = false;             // waits until no pause is in force
  std::uint64_t drawn = 0;         // for choosing the bit to change
  bool is_untouched() const {
    return !drop && !corrupt && !alter && !mark && copies == 0 && delay_ns == 0 && overtaken_by == 0 &&
           !paused;
  }
};

// One packet that a fault hit.
struct Firing {
  std::uint64_t at_ns = 0;
  Direction direction = Direction::out;
  std::uint64_t qp = 0;  // by order of creation
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;  // counted from the first
  Headers headers;
  std::size_t bytes = 0;
  std::optional<std::uint64_t> own_gid = {};
};

class PacketFaults {
 public:
  // What became of one fault.
  struct Tally {
    std::uint64_t met = 0;  // packets that met qp, psn, direction, opcode and time
    std::uint64_t fired = 0;
    std::vector<Firing> firings;  // the first of them
  };

  // Remembers that many firings of each fault.
  explicit PacketFaults(Plan plan, std::size_t remembered = 10);

  // The program made a queue pair. A number that was used before begins anew.
  void queue_pair_made(std::uint32_t qpn);
  // Its first PSN of one direction, if known before its first packet.
  void first_psn(std::uint32_t qpn, Direction direction, std::uint32_t psn);

  // The order in which the program made that queue pair; 0: it did not.
  std::uint64_t order_of(std::uint32_t qpn) const;

  // Those that the program made, whose order is within that range; nullopt: all.
  std::vector<std::uint32_t> queue_pairs_in(const std::optional<Range>& orders) const;

  Verdict judge(const Passing& packet, std::uint64_t now_ns);

  const Plan& plan() const { return plan_; }
  std::span<const Tally> tallies() const { return tallies_; }
  std::uint64_t queue_pairs_made() const { return queue_pairs_made_; }
  std::uint64_t packets(Direction direction) const { return packets_[static_cast<std::size_t>(direction)]; }

 private:
  struct QueuePair {
    std::uint64_t order = 0;
    // Of requests that leave and that arrive; responses bear the PSN of the request.
    std::optional<std::uint32_t> first_psn[2];
  };
  // One packet as a fault sees it; all its transmissions have the same.
  struct Identity {
    std::uint32_t fault;
    std::uint32_t qpn;
    std::uint32_t psn;
    std::uint8_t direction;
    bool response;
    friend bool operator==(const Identity&, const Identity&) = default;
  };
  struct HashOf {
    std::size_t operator()(const Identity&) const;
  };

  std::optional<Firing> seen(const Passing& packet, std::uint64_t now_ns);
  static bool meets(const Where& wanted, const Firing& packet);
  bool fires(std::size_t fault, const Firing& packet);
  std::uint64_t draw(const Identity& packet, std::uint64_t hits) const;
  void count(std::size_t fault, const Firing& packet);

  const Plan plan_;
  const std::size_t remembered_;
  std::vector<Tally> tallies_;
  std::unordered_map<std::uint32_t, QueuePair> queue_pairs_;
  std::unordered_map<Identity, std::uint64_t, HashOf> hits_;  // of faults with a PSN or a rate; bounded
  std::uint64_t queue_pairs_made_ = 0;
  std::uint64_t packets_[2] = {};
};

}  // namespace weir::faults
