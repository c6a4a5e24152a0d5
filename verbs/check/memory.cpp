// Memory that goes back to the system or to the allocator while the NIC may write there, or is registered,
// which registration caches do on purpose.
#include <string_view>

#include "verbs/check/checks.hpp"
#include "verbs/check/findings.hpp"
#include "verbs/check/names.hpp"

namespace weir::check {
namespace {

bool overlaps(const ibv_sge& piece, std::uint64_t begin, std::uint64_t bytes) {
  return piece.addr < begin + bytes && begin < piece.addr + piece.length;
}

// Where a request was posted that names this memory and is not complete, on a queue pair that still works.
std::optional<CallSite> posted_into(std::uint64_t begin, std::uint64_t bytes, std::string& what) {
  for (const auto& qp : all_queue_pairs()) {
    const std::lock_guard lock(qp->mutex);
    const auto names = [&](const auto& posted) {
      for (const ibv_sge& piece : posted.pieces.all())
        if (overlaps(piece, begin, bytes)) return true;
      return false;
    };
    std::optional<CallSite> found;
    for (const PostedSend& send : qp->sends) {
      // What only is sent may be known to have arrived by other means, like the peer's answer (UCX's UD).
      if (!send.brings_data_back() || !names(send)) continue;
      found = send.posted_at;
      what = std::string(name_of(send.opcode)) + ", wr_id " + hex(send.wr_id) + ", queue pair " +
             hex(qp->number);
      break;
    }
    for (const PostedReceive& receive : qp->receives) {
      if (found || !names(receive)) continue;
      found = receive.posted_at;
      what = "receive, wr_id " + hex(receive.wr_id) + ", queue pair " + hex(qp->number);
    }
    if (!found) continue;
    const ibv_qp_state state = state_of(qp->qp);
    if (state != IBV_QPS_ERR && state != IBV_QPS_RESET) return found;
  }
  return std::nullopt;
}

}  // namespace

void about_to_free(const void* memory, std::size_t bytes, const char* call) {
  const bool unmaps = std::string_view(call) == "munmap";
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  const auto region = objects().region_at(begin, bytes);
  if (!region) return;
  std::string request;
  const auto posted_at = posted_into(begin, bytes, request);
  const bool in_flight = posted_at.has_value();
  // Where the region goes on behind the block, the memory of an allocator is registered, and a piece of it
  // only changes hands.
  const bool is_all = region->base >= begin && region->base + region->length <= begin + bytes;
  if (!in_flight && !is_all && !unmaps) return;
  Report report(in_flight ? Rule::freed_in_flight : Rule::freed_while_registered,
                std::string(call) + "() takes memory that " +
                    (in_flight ? "a work request that is not complete names" : "is registered"),
                "called", place_here());
  report.fact("memory", range_text(begin, bytes));
  if (in_flight) report.fact("request", request).place("posted", posted_at->place());
  report
      .fact("region", range_text(region->base, region->length) + ", lkey " + hex(region->lkey) + ", rights " +
                          access_text(region->access))
      .place("registered", region->registered)
      .print();
}

}  // namespace weir::check
