#include "verbs/check/names.hpp"

#include <cstdio>
#include <iterator>

namespace weir::check {
namespace {

struct Bit {
  unsigned bit;
  const char* name;
};

constexpr Bit rights[] = {
    {IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE"},
    {IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE"},
    {IBV_ACCESS_REMOTE_READ, "REMOTE_READ"},
    {IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC"},
    {IBV_ACCESS_MW_BIND, "MW_BIND"},
    {IBV_ACCESS_ZERO_BASED, "ZERO_BASED"},
    {IBV_ACCESS_ON_DEMAND, "ON_DEMAND"},
    {IBV_ACCESS_HUGETLB, "HUGETLB"},
    {IBV_ACCESS_RELAXED_ORDERING, "RELAXED_ORDERING"},
};

constexpr Bit attributes[] = {
    {IBV_QP_STATE, "IBV_QP_STATE"},
    {IBV_QP_CUR_STATE, "IBV_QP_CUR_STATE"},
    {IBV_QP_EN_SQD_ASYNC_NOTIFY, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
    {IBV_QP_ACCESS_FLAGS, "IBV_QP_ACCESS_FLAGS"},
    {IBV_QP_PKEY_INDEX, "IBV_QP_PKEY_INDEX"},
    {IBV_QP_PORT, "IBV_QP_PORT"},
    {IBV_QP_QKEY, "IBV_QP_QKEY"},
    {IBV_QP_AV, "IBV_QP_AV"},
    {IBV_QP_PATH_MTU, "IBV_QP_PATH_MTU"},
    {IBV_QP_TIMEOUT, "IBV_QP_TIMEOUT"},
    {IBV_QP_RETRY_CNT, "IBV_QP_RETRY_CNT"},
    {IBV_QP_RNR_RETRY, "IBV_QP_RNR_RETRY"},
    {IBV_QP_RQ_PSN, "IBV_QP_RQ_PSN"},
    {IBV_QP_MAX_QP_RD_ATOMIC, "IBV_QP_MAX_QP_RD_ATOMIC"},
    {IBV_QP_ALT_PATH, "IBV_QP_ALT_PATH"},
    {IBV_QP_MIN_RNR_TIMER, "IBV_QP_MIN_RNR_TIMER"},
    {IBV_QP_SQ_PSN, "IBV_QP_SQ_PSN"},
    {IBV_QP_MAX_DEST_RD_ATOMIC, "IBV_QP_MAX_DEST_RD_ATOMIC"},
    {IBV_QP_PATH_MIG_STATE, "IBV_QP_PATH_MIG_STATE"},
    {IBV_QP_CAP, "IBV_QP_CAP"},
    {IBV_QP_DEST_QPN, "IBV_QP_DEST_QPN"},
    {IBV_QP_RATE_LIMIT, "IBV_QP_RATE_LIMIT"},
};

template <std::size_t N>
std::string text_of(const Bit (&names)[N], unsigned mask) {
  std::string text;
  for (const Bit& row : names) {
    if ((mask & row.bit) == 0) continue;
    text += (text.empty() ? "" : " ") + std::string(row.name);
    mask &= ~row.bit;
  }
  if (mask != 0) text += (text.empty() ? "" : " ") + hex(mask);
  return text.empty() ? "none" : text;
}

}  // namespace

std::string hex(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

std::string count_of(std::size_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string bytes_text(std::uint64_t bytes) { return count_of(bytes, "byte"); }

std::string range_text(std::uint64_t begin, std::uint64_t length) {
  return bytes_text(length) + " from " + hex(begin) + " to " + hex(begin + length);
}

std::string access_text(unsigned access) { return text_of(rights, access); }
std::string attributes_text(unsigned mask) { return text_of(attributes, mask); }

const char* name_of(ibv_wr_opcode opcode) {
  constexpr const char* names[] = {"WRITE",   "WRITE_WITH_IMM",   "SEND",          "SEND_WITH_IMM",
                                   "READ",    "COMPARE_AND_SWAP", "FETCH_AND_ADD", "LOCAL_INV",
                                   "BIND_MW", "SEND_WITH_INV",    "TSO",           "DRIVER1"};
  return static_cast<unsigned>(opcode) < std::size(names) ? names[opcode] : "operation";
}

const char* name_of(ibv_qp_state state) {
  constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return static_cast<unsigned>(state) < std::size(names) ? names[state] : "an unknown state";
}

const char* name_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    default:
      return "unknown";
  }
}

}  // namespace weir::check
