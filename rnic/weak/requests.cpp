#include "rnic/weak/requests.hpp"

#include <algorithm>
#include <utility>

namespace weir::rnic::weak {
namespace {

constexpr std::uint64_t us = 1'000;
constexpr std::uint64_t never_by_looks = ~0ull;
constexpr std::size_t max_parts = 16;

}  // namespace

// Nearly half of all steps are due at once, as on a NIC that is fast; most others within a few polls, so that
// a program that polls is not slow; few take a time.
Wait Requests::draw(Choices& choices) const {
  const std::uint32_t how = choices.pick(200);
  if (how < 90) return {};
  if (how < 150) return {looks_ + 1 + choices.pick(3), now_ns_ + (20 + choices.pick(80)) * us};
  if (how < 186) return {looks_ + 8 + choices.pick(64), now_ns_ + (50 + choices.pick(150)) * us};
  if (how < 199) return {never_by_looks, now_ns_ + (50 + choices.pick(250)) * us};
  return {never_by_looks, now_ns_ + limit_ns};
}

Wait Requests::draw_now(std::uint64_t kind) {
  Choices choices(weak_.plan.seed ^ kind, queue_, drawn_++);
  return draw(choices);
}

// Cut at the target's cache lines. A word that is aligned there stays whole.
std::vector<Part> Requests::draw_parts(Choices& choices, const Posted& posted) const {
  const std::uint64_t lines = (posted.remote_addr % line_bytes + posted.bytes + line_bytes - 1) / line_bytes;
  std::vector<Part> parts;
  if (lines < 2 || choices.one_in(3)) return parts;
  const std::size_t count = std::min<std::uint64_t>(lines, choices.one_in(2) ? 2 : max_parts);
  std::uint64_t at = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    // Part i ends at line i/count of the message.
    const std::uint64_t end =
        i == count ? posted.bytes : lines * i / count * line_bytes - posted.remote_addr % line_bytes;
    parts.push_back({.offset = at, .bytes = end - at});
    at = end;
  }
  if (choices.one_in(2))
    std::reverse(parts.begin(), parts.end());
  else
    for (std::size_t i = count; i > 1; --i)
      std::swap(parts[i - 1], parts[choices.pick(static_cast<std::uint32_t>(i))]);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (choices.one_in(3)) parts[i].spins = 1 + choices.pick(2000);
    parts[i].stops = choices.one_in(4);
  }
  return parts;
}

bool Requests::loses_datagram() {
  if (!has(Weakness::datagram_loss)) return false;
  Choices choices(weak_.plan.seed ^ 0x1055, queue_, drawn_++);
  const bool lost = choices.one_in(100);
  if (lost) weak_.tally.lost.fetch_add(1, std::memory_order_relaxed);
  return lost;
}

void Requests::admit(const Posted& posted) {
  Choices choices(weak_.plan.seed, queue_, end());
  Request& one = open_.emplace_back();
  one.progress.kind = posted.kind;
  one.progress.fenced = posted.fenced || !has(Weakness::unfenced);
  if (has(Weakness::delay)) {
    one.read = draw(choices);
    one.execute = draw(choices);
  }
  one.is_late = one.execute.looks > looks_;
  one.sample_again = has(Weakness::unfenced) && choices.one_in(2);
  one.keeps = posted.kind != Kind::local && posted.bytes <= max_kept_bytes;
  if (has(Weakness::lines) && posted.may_be_split && one.keeps) one.parts = draw_parts(choices, posted);
  weak_.tally.requests.fetch_add(1, std::memory_order_relaxed);
  if (one.is_late) weak_.tally.late.fetch_add(1, std::memory_order_relaxed);
  if (!one.parts.empty()) weak_.tally.split.fetch_add(1, std::memory_order_relaxed);
}

std::optional<std::uint64_t> Requests::next_timer(std::uint64_t after_noting_ns) {
  std::uint64_t next = now_ns_ + limit_ns;
  for (std::size_t i = 0; i < size(); ++i) {
    const Request& one = open_[i];
    const auto consider = [&](const Wait& wait) {
      if (!due(wait)) next = std::min(next, wait.at_ns);
    };
    if (one.progress.kind == Kind::gives && !one.progress.source_read) consider(one.read);
    if (!one.progress.executed) consider(one.execute);
    if (one.progress.executed && one.progress.brings() && !one.progress.landed) consider(one.land);
    if (one.moved != 0 && !one.progress.executed) consider(one.next_part);
  }
  next = std::max(next, now_ns_ + us);
  if (timer_ns_ > after_noting_ns && timer_ns_ <= next) return std::nullopt;
  return timer_ns_ = next;
}

}  // namespace weir::rnic::weak
