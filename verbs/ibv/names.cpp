// Names of enumerators, and the arithmetic of rates.
#include <array>
#include <cstddef>

#include "verbs/ibv/objects.hpp"

namespace {

template <std::size_t N>
const char* name_in(const std::array<const char*, N>& names, int value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N && names[index] != nullptr ? names[index] : "unknown";
}

constexpr std::array<const char*, 24> wc_status = {"success",
                                                   "local length error",
                                                   "local QP operation error",
                                                   "local EE context operation error",
                                                   "local protection error",
                                                   "Work Request Flushed Error",
                                                   "memory management operation error",
                                                   "bad response error",
                                                   "local access error",
                                                   "remote invalid request error",
                                                   "remote access error",
                                                   "remote operation error",
                                                   "transport retry counter exceeded",
                                                   "RNR retry counter exceeded",
                                                   "local RDD violation error",
                                                   "remote invalid RD request",
                                                   "aborted error",
                                                   "invalid EE context number",
                                                   "invalid EE context state",
                                                   "fatal error",
                                                   "response timeout error",
                                                   "general error",
                                                   "TM error",
                                                   "TM software rendezvous"};

constexpr std::array<const char*, 20> event_type = {"CQ error",
                                                    "local work queue catastrophic error",
                                                    "invalid request local work queue error",
                                                    "local access violation work queue error",
                                                    "communication established",
                                                    "send queue drained",
                                                    "path migrated",
                                                    "path migration request error",
                                                    "local catastrophic error",
                                                    "port active",
                                                    "port error",
                                                    "LID change",
                                                    "P_Key change",
                                                    "SM change",
                                                    "SRQ catastrophic error",
                                                    "SRQ limit reached",
                                                    "last WQE reached",
                                                    "client reregistration",
                                                    "GID table change",
                                                    "WQ fatal"};

constexpr std::array<const char*, 9> node_type = {nullptr,
                                                  "InfiniBand channel adapter",
                                                  "InfiniBand switch",
                                                  "InfiniBand router",
                                                  "iWARP NIC",
                                                  "usNIC",
                                                  "usNIC UDP",
                                                  "unspecified",
                                                  nullptr};

constexpr std::array<const char*, 6> port_state = {"no state change", "down",   "init",
                                                   "armed",           "active", "active defer"};

// enum ibv_rate, as a multiple of 2.5 Gb/s and in Mb/s (IBA 9.11.1); 0: not a whole multiple.
struct Rate {
  ibv_rate rate;
  int multiple;
  int mbps;
};
constexpr std::array<Rate, 23> rates = {{{IBV_RATE_2_5_GBPS, 1, 2500},
                                         {IBV_RATE_5_GBPS, 2, 5000},
                                         {IBV_RATE_10_GBPS, 4, 10000},
                                         {IBV_RATE_20_GBPS, 8, 20000},
                                         {IBV_RATE_30_GBPS, 12, 30000},
                                         {IBV_RATE_40_GBPS, 16, 40000},
                                         {IBV_RATE_60_GBPS, 24, 60000},
                                         {IBV_RATE_80_GBPS, 32, 80000},
                                         {IBV_RATE_120_GBPS, 48, 120000},
                                         {IBV_RATE_14_GBPS, 0, 14062},
                                         {IBV_RATE_56_GBPS, 0, 56250},
                                         {IBV_RATE_112_GBPS, 0, 112500},
                                         {IBV_RATE_168_GBPS, 0, 168750},
                                         {IBV_RATE_25_GBPS, 0, 25781},
                                         {IBV_RATE_100_GBPS, 0, 103125},
                                         {IBV_RATE_200_GBPS, 0, 206250},
                                         {IBV_RATE_300_GBPS, 0, 309375},
                                         {IBV_RATE_28_GBPS, 0, 28125},
                                         {IBV_RATE_50_GBPS, 0, 53125},
                                         {IBV_RATE_400_GBPS, 0, 425000},
                                         {IBV_RATE_600_GBPS, 0, 637500},
                                         {IBV_RATE_MAX, 0, 0},
                                         {IBV_RATE_MAX, 0, 0}}};

}  // namespace

extern "C" {

const char* ibv_wc_status_str(ibv_wc_status status) { return name_in(wc_status, status); }
const char* ibv_event_type_str(ibv_event_type event) { return name_in(event_type, event); }
const char* ibv_node_type_str(ibv_node_type type) { return name_in(node_type, type); }
const char* ibv_port_state_str(ibv_port_state state) { return name_in(port_state, state); }

int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& r : rates)
    if (r.rate == rate && r.multiple != 0) return r.multiple;
  return -1;
}
ibv_rate mult_to_ibv_rate(int multiple) {
  for (const Rate& r : rates)
    if (r.multiple == multiple && multiple != 0) return r.rate;
  return IBV_RATE_MAX;
}
int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& r : rates)
    if (r.rate == rate && r.mbps != 0) return r.mbps;
  return -1;
}
ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& r : rates)
    if (r.mbps == mbps && mbps != 0) return r.rate;
  return IBV_RATE_MAX;
}

}  // extern "C"
