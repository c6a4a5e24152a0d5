#include "kv/gateway/own_links.hpp"

#include <algorithm>
#include <utility>

namespace weir::kv::cluster {

NodeLink* OwnLinks::take(const NodeAddress& address, Protocol protocol, std::shared_ptr<Lane> lane,
                         std::size_t most) {
  // Take the most recently used one: the rest then get old enough to be closed.
  for (auto at = idle_.rbegin(); at != idle_.rend(); ++at) {
    if (at->link->address() != address || at->link->protocol() != protocol) continue;
    NodeLink* const link = at->link.get();
    taken_[link] = {std::move(at->link), std::move(lane)};
    idle_.erase(std::next(at).base());
    return link;
  }
  if (taken_.size() >= most) return nullptr;
  if (taken_.size() + idle_.size() >= most) {
    idle_.front().link->close();
    over_.push_back(std::move(idle_.front().link));
    idle_.pop_front();
  }
  auto made = make_link(address, protocol);
  NodeLink* const link = made.get();
  taken_[link] = {std::move(made), std::move(lane)};
  return link;
}

void OwnLinks::give_back(NodeLink& link) {
  const auto found = taken_.find(&link);
  if (link.ended() || !link.idle()) return drop(link);
  idle_.push_back({std::move(found->second.link), now_ms()});
  taken_.erase(found);
}

void OwnLinks::drop(NodeLink& link) {
  const auto found = taken_.find(&link);
  link.close();
  over_.push_back(std::move(found->second.link));
  taken_.erase(found);
}

void OwnLinks::link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) {
  if (const auto found = taken_.find(&link); found != taken_.end()) {
    const std::shared_ptr<Lane> lane = std::move(found->second.lane);
    over_.push_back(std::move(found->second.link));
    taken_.erase(found);
    return user_.own_link_ended(link, lane, why, std::move(unanswered), sent);
  }
  const auto found = std::ranges::find(idle_, &link, [](const Idle& idle) { return idle.link.get(); });
  over_.push_back(std::move(found->link));
  idle_.erase(found);
}

bool OwnLinks::hurried() const {
  return std::ranges::any_of(taken_, [](const auto& entry) { return entry.first->hurried(); });
}

std::vector<NodeAddress> OwnLinks::waited_at() const {
  std::vector<NodeAddress> nodes;
  for (const auto& [link, taken] : taken_)
    if (!link->idle()) nodes.push_back(link->address());
  std::ranges::sort(nodes);
  const auto rest = std::ranges::unique(nodes);
  nodes.erase(rest.begin(), rest.end());
  return nodes;
}

void OwnLinks::node_failed(const NodeAddress& address, const std::string& why) {
  std::vector<NodeLink*> there;
  for (const auto& [link, taken] : taken_)
    if (!link->idle() && link->address() == address) there.push_back(link);
  for (NodeLink* link : there) link->break_off(why);
}

void OwnLinks::look_at_clock() {
  const std::int64_t now = now_ms();
  std::erase_if(over_, [](const auto& link) { return link->finished(); });
  while (!idle_.empty() && (now - idle_.front().since_ms > keep_ms || now < idle_.front().since_ms)) {
    idle_.front().link->close();
    over_.push_back(std::move(idle_.front().link));
    idle_.pop_front();
  }
  std::vector<NodeLink*> links;
  for (const auto& [link, taken] : taken_) links.push_back(link);
  for (NodeLink* link : links) link->look_at_clock();
}

void OwnLinks::shut_down() {
  for (auto& [link, taken] : taken_) {
    link->close();
    over_.push_back(std::move(taken.link));
  }
  taken_.clear();
  for (Idle& idle : idle_) {
    idle.link->close();
    over_.push_back(std::move(idle.link));
  }
  idle_.clear();
}

}  // namespace weir::kv::cluster
