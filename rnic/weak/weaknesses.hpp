// What the weak NIC (`weir run --weak`) may do, although this NIC never does otherwise: the table.
//
// One row for each freedom that the specification leaves to a device, with the sentence that leaves it. The
// NIC, its tests and `weir seeds` all read this table. Level 1 is on: right programs cannot notice it. Level
// 2 is off unless it is asked for by name: either we know no sentence, or programs that nobody would call
// wrong depend on the contrary. What may be reordered in which order is in ordering.hpp. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace weir::rnic::weak {

enum class Weakness : std::uint8_t { delay, unfenced, lines, completions, failed_fields, datagram_loss };

struct WeaknessRow {
  Weakness weakness;
  std::string_view name;
  int level;
  std::string_view what;    // the NIC ...
  std::string_view clause;  // why it may
  std::string_view repair;  // what a program does that depends on the contrary
};

inline constexpr std::array table{
    WeaknessRow{
        Weakness::delay, "delay", 1,
        "executes a request some time after it was posted, and reads its memory at any time in between",
        "\"The buffers used by a WR can only be safely reused after the request is fully executed and a work "
        "completion has been retrieved\" (ibv_post_send(3), notes)",
        "poll the completion of a request, or of a later one of its queue pair, before its memory is "
        "changed and before its effect is relied on"},
    WeaknessRow{
        Weakness::unfenced, "unfenced", 1,
        "brings what a READ or atomic fetches after later requests ran; a READ may see later WRITEs",
        "only a fenced request waits for the READs and atomics before it (IBA vol. 1, 10.8.3.3 and table "
        "79; IBV_SEND_FENCE of ibv_post_send(3))",
        "set IBV_SEND_FENCE on the later request, or poll the completion of the READ or atomic first"},
    WeaknessRow{Weakness::lines, "lines", 1,
                "places and reads the cache lines of a WRITE or READ in any order, with pauses in between",
                "a reader may poll for data only where the queue pair's data is \"guaranteed to be written "
                "in-order\", and nothing is promised about the sending side (ibv_query_qp_data_in_order(3))",
                "wait for a completion (WRITE_WITH_IMM or a SEND behind the WRITE) instead of the last byte, "
                "or put a "
                "version or a checksum into each cache line"},
    WeaknessRow{
        Weakness::completions, "completions", 1,
        "shows a completion some polls later, and fewer of them in one poll",
        "a poll returns what the CQ contains, and an event comes \"upon the addition of a new CQE\", so not "
        "for one that was there before (ibv_poll_cq(3), ibv_req_notify_cq(3))",
        "poll again until the completion comes; after ibv_req_notify_cq() poll once more before waiting"},
    WeaknessRow{
        Weakness::failed_fields, "failed-fields", 1,
        "fills the undefined fields of a failed completion with 0xa5",
        "if the status is not IBV_WC_SUCCESS, \"only the following attributes are valid: wr_id, status, "
        "qp_num, and vendor_err\" (ibv_poll_cq(3))",
        "find what the request was by its wr_id"},
    WeaknessRow{
        Weakness::datagram_loss, "datagram-loss", 2, "loses one in a hundred datagrams",
        "datagrams are unreliable (IBV_QPT_UD); off, because benchmarks and examples of datagrams stop at "
        "the first lost one",
        "answer datagrams, and send again what was not answered"},
};

constexpr std::uint32_t bit(Weakness weakness) { return 1u << static_cast<unsigned>(weakness); }
constexpr std::uint32_t level_1() {
  std::uint32_t bits = 0;
  for (const WeaknessRow& row : table)
    if (row.level == 1) bits |= bit(row.weakness);
  return bits;
}
constexpr const WeaknessRow& row_of(Weakness weakness) { return table[static_cast<std::size_t>(weakness)]; }

// What `--weak` says: which choices are made, and among which weaknesses.
struct Plan {
  std::uint64_t seed = 0;
  std::uint32_t weaknesses = level_1();

  bool has(Weakness weakness) const { return (weaknesses & bit(weakness)) != 0; }
  bool operator==(const Plan&) const = default;
};

// Words between commas, the seed first: '42', '42,-lines' (all of level 1 but that), '42,+datagram-loss'
// (that too), '42,delay,lines' (these only), '42,none'. The error says which word is wrong.
std::expected<Plan, std::string> read_plan(std::string_view words);
// The words that read_plan() reads; as short as they can be.
std::string text_of(const Plan&);

}  // namespace weir::rnic::weak
