#include "kv/gateway/own_links.hpp"

#include <algorithm>
#include <utility>

namespace weir::kv::cluster {

std::size_t OwnLinks::taken_by(const std::string& user) const {
  const auto found = taken_by_.find(user);
  return found == taken_by_.end() ? 0 : found->second;
}

NodeLink* OwnLinks::lend(std::unique_ptr<NodeLink> link, Borrower borrower) {
  NodeLink* const lent = link.get();
  ++taken_by_[borrower.user];
  taken_[lent] = {std::move(link), std::move(borrower)};
  return lent;
}

OwnLinks::Taken OwnLinks::take_back(NodeLink& link) {
  Taken taken = std::move(taken_.extract(&link).mapped());
  const auto count = taken_by_.find(taken.borrower.user);
  if (--count->second == 0) taken_by_.erase(count);
  return taken;
}

NodeLink* OwnLinks::take(const NodeAddress& address, Protocol protocol, Borrower borrower,
                         const Limits& limits) {
  if (taken_by(borrower.user) >= limits.one_user) return nullptr;
  // Take the most recently used one: the rest then get old enough to be closed.
  for (auto at = idle_.rbegin(); at != idle_.rend(); ++at) {
    if (at->link->address() != address || at->link->protocol() != protocol) continue;
    std::unique_ptr<NodeLink> link = std::move(at->link);
    idle_.erase(std::next(at).base());
    return lend(std::move(link), std::move(borrower));
  }
  if (taken_.size() >= limits.all) return nullptr;
  if (taken_.size() + idle_.size() >= limits.all) {
    idle_.front().link->close();
    over_.push_back(std::move(idle_.front().link));
    idle_.pop_front();
  }
  return lend(make_link(address, protocol), std::move(borrower));
}

void OwnLinks::give_back(NodeLink& link) {
  if (link.ended() || !link.idle()) return drop(link);
  idle_.push_back({std::move(take_back(link).link), now_ms()});
}

void OwnLinks::drop(NodeLink& link) {
  link.close();
  over_.push_back(std::move(take_back(link).link));
}

void OwnLinks::link_ended(NodeLink& link, const std::string& why, std::deque<Request> unanswered, bool sent) {
  if (taken_.contains(&link)) {
    Taken taken = take_back(link);
    over_.push_back(std::move(taken.link));
    return user_.own_link_ended(link, taken.borrower.lane, why, std::move(unanswered), sent);
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
  taken_by_.clear();
  for (Idle& idle : idle_) {
    idle.link->close();
    over_.push_back(std::move(idle.link));
  }
  idle_.clear();
}

}  // namespace weir::kv::cluster
