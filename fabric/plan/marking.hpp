// ECN marks: where WRED starts and stops increasing, so that it acts before PFC.
//
// PFC counts at ingress, WRED at egress. When an ingress priority group reaches its XOFF limit T, its bytes
// are in at most `spread` egress queues, so the longest holds at least T / spread. So Kmax <= T / spread
// means that when PFC starts, a queue in front of it marks every packet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weir::fabric {

// 0 below Kmin, Pmax * (q - Kmin) / (Kmax - Kmin) between, 1 from Kmax on.
double mark_probability(double queue_bytes, double kmin_bytes, double kmax_bytes, double pmax);

struct MarkInput {
  std::uint64_t speed_bps = 0;         // of the egress port
  std::uint64_t xoff_limit_bytes = 0;  // T, with the expected number of congested queues
  std::uint32_t spread = 1;
  std::uint32_t cell_bytes = 1;
  std::optional<double> kmin_bytes = {}, kmax_bytes = {}, pmax = {};  // from the user
};

struct Marks {
  std::uint64_t kmin_bytes = 0, kmax_bytes = 0;
  double pmax = 0;
  std::uint64_t bound_bytes = 0;  // T / spread
  bool before_pfc = false;        // kmax_bytes <= bound_bytes
  std::string inequality;         // "Kmin 99,936 < Kmax 399,888 <= XOFF limit 3,287,712"
};

// HPCC's 100 KB and 400 KB per 25 Gb/s and Pmax 20 %, lowered if the bound requires it.
Marks place_marks(const MarkInput& in);

}  // namespace weir::fabric
