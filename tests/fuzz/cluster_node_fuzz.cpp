// What a hostile cluster node may send to a gateway: its replies' frames are found at the same places however
// the bytes arrive, and where the client's own reader finds them. A reply about slots is read or refused, and
// only names possible slots and addresses.
//
// The first byte of the input is the number of bytes that arrive at a time.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "cli/client/cluster_slots.hpp"
#include "cli/client/reply.hpp"
#include "cli/client/reply_count.hpp"
#include "cluster/key_slot.hpp"
#include "cluster/redirect.hpp"
#include "kv/gateway/topology.hpp"
#include "kv/resp/reply_frame.hpp"

namespace {

using namespace weir::kv;
using namespace weir::kv::cluster;
using weir::cluster::may_be_host;
using weir::cluster::read_redirect;
using weir::cluster::slot_count;

void check(bool holds) {
  if (!holds) std::abort();
}

struct Frames {
  std::vector<std::string_view> replies;
  bool failed = false;
};

Frames frames_of(std::string_view bytes, std::size_t at_a_time) {
  Frames found;
  ReplyFrame frame;
  std::size_t begin = 0;
  for (std::size_t here = 0; here < bytes.size() && !found.failed;) {
    here = std::min(here + at_a_time, bytes.size());
    while (begin < here) {
      const auto status = frame.scan(bytes.substr(begin, here - begin));
      found.failed = status == ReplyFrame::Status::failed;
      if (status != ReplyFrame::Status::whole) break;
      found.replies.push_back(bytes.substr(begin, frame.size()));
      begin += frame.size();
      frame.next();
    }
  }
  return found;
}

void check_address(const NodeAddress& address) { check(address.port != 0 && may_be_host(address.host)); }

// The programs of cli/ read the same reply as a tree: what the gateway takes they take, and alike.
void check_client(std::string_view reply, const Topology* topology) {
  weir::client::ReplyParser parser;
  if (!parser.feed(std::as_bytes(std::span(reply)))) return;
  const auto parsed = parser.next();
  if (!parsed) return;
  const auto ranges = weir::client::read_cluster_slots(*parsed, "same");
  if (ranges)
    for (const SlotRange& range : *ranges) {
      check(range.first <= range.last && range.last < slot_count);
      check_address(range.primary);
    }
  if (!topology) return;
  check(ranges.has_value() && ranges->size() == topology->ranges.size());
  for (std::size_t i = 0; i < ranges->size(); ++i) {
    const SlotRange &ours = (*ranges)[i], &theirs = topology->ranges[i];
    check(ours.first == theirs.first && ours.last == theirs.last && ours.primary == theirs.primary);
  }
}

void look_into(std::string_view reply) {
  if (const auto redirect = read_redirect(reply, "same")) {
    check(redirect->slot < slot_count);
    check_address(redirect->to);
  }
  const auto topology = read_topology(reply, {"same", 1});
  check_client(reply, topology.has_value() ? &*topology : nullptr);
  if (!topology) return;
  for (const SlotRange& range : topology->ranges) {
    check(range.first <= range.last && range.last < slot_count);
    check_address(range.primary);
  }
  for (const NodeAddress& replica : topology->replicas) check_address(replica);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Frames whole = frames_of(bytes, bytes.size());
  const Frames split = frames_of(bytes, std::size_t{1} + data[0] % 16);
  check(whole.replies == split.replies && whole.failed == split.failed);
  for (const std::string_view reply : whole.replies) look_into(reply);

  // Each reader refuses a few replies that the other lets pass; what both take they take alike.
  weir::client::ReplyCounter counter;
  const auto counted = counter.count(std::as_bytes(std::span(bytes)));
  const auto pushes =
      std::ranges::count_if(whole.replies, [](std::string_view reply) { return reply.front() == '>'; });
  const bool attribute =
      std::ranges::any_of(whole.replies, [](std::string_view reply) { return reply.front() == '|'; });
  if (counted && !whole.failed && !attribute)
    check(*counted + static_cast<std::uint64_t>(pushes) == whole.replies.size());
  return 0;
}
