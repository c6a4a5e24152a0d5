#include "kv/gateway/topology_reader.hpp"

#include <algorithm>
#include <utility>

namespace weir::kv::cluster {

namespace {
constexpr std::string_view slots_request = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
// Of 16,384 slots in as many ranges, with the names of primaries and replicas.
constexpr std::size_t longest_map = std::size_t{16} << 20;
}  // namespace

TopologyReader::TopologyReader(User& user, NodeAddress seed)
    : LinkKeeper(user), user_(user), seed_(std::move(seed)) {
  known_.push_back(seed_);
}

TopologyReader::~TopologyReader() = default;

void TopologyReader::shut_down() {
  wanted_ = false;
  if (link_ == nullptr) return;
  link_->close();
  over_.push_back(std::move(link_));
}

void TopologyReader::look_at_clock() {
  std::erase_if(over_, [](const auto& link) { return link->finished(); });
  const std::int64_t now = user_.now_ms();
  if (link_ != nullptr) {
    if (now - asked_ms_ > patience_ms) link_->break_off("it does not answer CLUSTER SLOTS");
    return;
  }
  const std::int64_t age = now - asked_ms_;
  if (asked_ms_ == 0 || age > usual_age_ms || age < 0 || (wanted_ && age >= between_ms)) ask_next();
}

void TopologyReader::ask_next() {
  wanted_ = false;
  asked_ms_ = user_.now_ms();
  const NodeAddress address = known_[turn_++ % known_.size()];
  LinkSettings settings = user_.link_settings();
  settings.connect_ms = patience_ms;
  settings.longest_reply = longest_map;
  link_ = make_link(address, std::move(settings));
  NodeLink& link = *link_;
  link.send({}, slots_request, false);
  link.dial();
}

void TopologyReader::link_ready(NodeLink& link) { link.flush(); }

void TopologyReader::replied(NodeLink& link, Request, std::string_view, std::string_view reply) {
  auto topology = read_topology(reply, link.address());
  const bool useful = topology && !topology->ranges.empty();
  if (useful) {
    known_.assign(1, seed_);
    const auto learn = [this](const NodeAddress& address) {
      if (known_.size() < Topology::most_nodes && std::ranges::find(known_, address) == known_.end())
        known_.push_back(address);
    };
    for (const SlotRange& range : topology->ranges) learn(range.primary);
    for (const NodeAddress& replica : topology->replicas) learn(replica);
    user_.map_read(*topology);
  } else {
    user_.map_not_read(link.address(), topology ? "it knows of no node with slots" : topology.error());
    wanted_ = true;
  }
  link.break_off({});
}

void TopologyReader::link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered,
                                bool) {
  if (!unanswered.empty()) {
    user_.map_not_read(link.address(), why);
    wanted_ = true;
  }
  over_.push_back(std::move(link_));
}

}  // namespace weir::kv::cluster
