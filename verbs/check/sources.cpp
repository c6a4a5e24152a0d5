// Memory that is sent from, and changed before the program can know that the NIC has read it.
//
// A request's bytes are summed up when it is posted and when its completion is polled. Only what nobody but
// the program changes is looked at: regions without the right of remote WRITEs and atomics, into which no
// receive, READ or atomic was ever posted; and only on RC, since a datagram may be known to have arrived by
// other means.
#include "verbs/check/sources.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "verbs/check/findings.hpp"
#include "verbs/check/names.hpp"
#include "verbs/check/objects.hpp"

namespace weir::check {
namespace {

constexpr std::uint64_t max_summed = 4096;  // of a piece: half at each of its ends
// Of each queue pair's requests the first few are all looked at, then one in some.
constexpr std::uint32_t all_of_first = 256, one_in = 16;

struct Destinations {
  std::mutex mutex;
  std::unordered_set<std::uint32_t> lkeys;
};
Destinations& destinations() {
  static auto* const made = new Destinations;  // programs post until they are gone
  return *made;
}

bool is_destination(std::uint32_t lkey) {
  const std::lock_guard lock(destinations().mutex);
  return destinations().lkeys.contains(lkey);
}

// A program may have unmapped a region that it has not deregistered.
bool is_mapped(std::uint64_t begin, std::uint64_t bytes) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = begin / page * page;
  unsigned char resident[max_summed / 512 + 2];
  const std::uint64_t pages = (begin + bytes - first + page - 1) / page;
  return pages <= sizeof resident &&
         ::mincore(reinterpret_cast<void*>(first), begin + bytes - first, resident) == 0;
}

std::uint64_t add_words(std::uint64_t sum, const std::byte* from, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, std::min<std::uint64_t>(sizeof word, bytes - at));
    sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
    sum ^= sum >> 32;
  }
  return sum;
}

std::optional<std::uint64_t> add_piece(std::uint64_t sum, std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t half = bytes <= max_summed ? bytes : max_summed / 2;
  for (const std::uint64_t at : {begin, begin + bytes - half}) {
    if (!is_mapped(at, half)) return std::nullopt;
    sum = add_words(sum, reinterpret_cast<const std::byte*>(at), half);
    if (half == bytes) break;
  }
  return sum;
}

// nullopt: somebody else may change it, or it cannot be read.
std::optional<std::uint64_t> sum_of(const Pieces& pieces) {
  std::uint64_t sum = 1;
  for (const ibv_sge& piece : pieces.all()) {
    if (piece.length == 0) continue;
    const auto region = objects().region(piece.lkey);
    if (!region || !region->lives() || !region->covers(piece.addr, piece.length)) return std::nullopt;
    if ((region->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0) return std::nullopt;
    if (is_destination(piece.lkey)) return std::nullopt;
    const auto more = add_piece(sum, region->base + (piece.addr - region->addr), piece.length);
    if (!more) return std::nullopt;
    sum = *more;
  }
  return sum;
}

}  // namespace

void note_destinations(const Pieces& pieces) {
  const std::lock_guard lock(destinations().mutex);
  for (const ibv_sge& piece : pieces.all()) destinations().lkeys.insert(piece.lkey);
}

void note_source(QueuePairRecord& qp, PostedSend& send) {
  if (send.brings_data_back()) return note_destinations(send.pieces);
  if (qp.qp->qp_type != IBV_QPT_RC || send.is_inline() || send.pieces.all().empty()) return;
  const std::uint32_t number = qp.sources_seen++;
  if (number >= all_of_first && number % one_in != 0) return;
  send.source_sum = sum_of(send.pieces);
}

void check_source(const QueuePairRecord& qp, const PostedSend& send, const CallSite& polled_at) {
  if (!send.source_sum) return;
  const auto now = sum_of(send.pieces);
  if (!now || *now == *send.source_sum) return;
  const ibv_sge& first = send.pieces.all().front();
  Report(Rule::source_changed, "the memory of a request was changed before its completion was polled",
         "posted", send.posted_at.place())
      .fact("request", std::string(name_of(send.opcode)) + " of " + bytes_text(send.pieces.bytes()) +
                           ", wr_id " + hex(send.wr_id) + ", queue pair " + hex(qp.number))
      .fact("source", range_text(first.addr, first.length))
      .place("polled", polled_at.place())
      .print();
}

}  // namespace weir::check
