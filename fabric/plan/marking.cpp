#include "fabric/plan/marking.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabric/picture/page.hpp"

namespace weir::fabric {
namespace {

constexpr double kmin_at_25g = 100e3, kmax_at_25g = 400e3, usual_pmax = 0.2;
constexpr double most_kmin_share = 0.25;  // of Kmax, as in HPCC's figures

}  // namespace

double mark_probability(double queue_bytes, double kmin_bytes, double kmax_bytes, double pmax) {
  if (queue_bytes < kmin_bytes) return 0;
  if (queue_bytes >= kmax_bytes) return 1;
  return pmax * (queue_bytes - kmin_bytes) / (kmax_bytes - kmin_bytes);
}

Marks place_marks(const MarkInput& in) {
  const double scale = static_cast<double>(in.speed_bps) / 25e9;
  const auto whole_cells = [&in](double bytes) {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bytes) / in.cell_bytes) * in.cell_bytes;
  };
  Marks out{};
  out.bound_bytes = in.xoff_limit_bytes / in.spread;
  const double kmax = in.kmax_bytes.value_or(std::max(
      std::min(kmax_at_25g * scale, static_cast<double>(out.bound_bytes)), in.kmin_bytes.value_or(0)));
  out.kmax_bytes = whole_cells(kmax);
  out.kmin_bytes = whole_cells(in.kmin_bytes.value_or(std::min(kmin_at_25g * scale, kmax * most_kmin_share)));
  out.pmax = in.pmax.value_or(usual_pmax);
  out.before_pfc = out.kmax_bytes <= out.bound_bytes;
  const auto bound = in.spread == 1
                         ? fmt::format("XOFF limit {}", grouped(out.bound_bytes))
                         : fmt::format("{} = XOFF limit {} / {} congested egress ports of one ingress",
                                       grouped(out.bound_bytes), grouped(in.xoff_limit_bytes), in.spread);
  out.inequality = fmt::format("Kmin {} {} Kmax {} {} {}", grouped(out.kmin_bytes),
                               out.kmin_bytes < out.kmax_bytes ? '<' : '=', grouped(out.kmax_bytes),
                               out.before_pfc ? "<=" : ">", bound);
  return out;
}

}  // namespace weir::fabric
