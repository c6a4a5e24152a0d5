#include "cli/benchmark/load_connection.hpp"

#include <algorithm>
#include <utility>

namespace weir::benchmark {
namespace {

using Clock = std::chrono::steady_clock;
using client::ErrorKind;

std::uint64_t nanoseconds(Clock::duration duration) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, std::chrono::nanoseconds(duration).count()));
}

}  // namespace

LoadConnection::LoadConnection(const LoadPlan& plan, LoadShare& share, LoadTarget& target,
                               KeyNumbers& numbers, const Greeting& greeting, std::size_t index)
    : plan_(plan),
      share_(share),
      target_(&target),
      numbers_(numbers),
      greeting_(greeting),
      counter_(plan.nodes.empty() ? client::ReplyCounter::Redirects::are_errors
                                  : client::ReplyCounter::Redirects::are_counted),
      next_request_(index * plan.pipeline),
      due_(plan.rate_per_s ? plan.pipeline : 0) {
  take_requests();
}

void LoadConnection::take_requests() {
  requests_ = target_->requests;
  own_digits_ = plan_.keyspace && requests_->has_random_digits();
  // The connection needs its own digits, because part of a batch may still wait to be written.
  if (own_digits_) requests_ = std::make_shared<RequestRing>(*requests_);
  next_request_ %= requests_->size();
}

bool LoadConnection::move(client::Reactor& reactor) {
  const bool elsewhere = next_target_ != target_;
  target_ = std::exchange(next_target_, nullptr);
  waits_for_map_ = false;
  take_requests();
  return !elsewhere || connect(reactor);
}

bool LoadConnection::connect(client::Reactor& reactor) {
  connection_.reset();
  counter_.begin_anew();
  awaited_ = 0;
  auto connection = reactor.open(target_->endpoint, *this, plan_.connect_limit);
  if (!connection) {
    share_.fail(std::move(connection.error()));
    return false;
  }
  connection_ = std::move(*connection);
  awaited_greetings_ = greeting_.replies;
  unsent_ = std::as_bytes(std::span(greeting_.bytes));
  unsent_from_front_ = {};
  flush();
  return true;
}

void LoadConnection::send_batch(LoadShare::Time now) {
  if (share_.to_send == 0 || next_target_ || waits_for_map_) return;
  if (now >= share_.stop) return share_.give_up_the_rest(now);
  sent_at_ = now;
  send(std::min<std::uint64_t>(plan_.pipeline, share_.to_send));
}

std::uint64_t LoadConnection::send_due(std::uint64_t most, LoadShare::Time now) {
  if (!unsent_.empty()) return 0;  // the server takes no bytes now, so do not queue more
  if (next_target_ || waits_for_map_) return 0;
  const auto count = std::min({most, plan_.pipeline - awaited_, share_.to_send});
  if (count == 0) return 0;
  for (std::uint64_t i = 0; i < count; ++i) due_[sent_++ % due_.size()] = share_.open_loop->take(now);
  send(count);
  return count;
}

void LoadConnection::send(std::uint64_t count) {
  awaited_ += count;
  share_.to_send -= count;
  share_.under_way += count;
  std::span<const std::byte>* const pieces[] = {&unsent_, &unsent_from_front_};
  for (auto* const piece : pieces) {
    const auto length = std::min<std::uint64_t>(count, requests_->size() - next_request_);
    if (own_digits_) requests_->renumber(next_request_, length, numbers_);
    *piece = requests_->bytes(next_request_, length);
    next_request_ = (next_request_ + length) % requests_->size();
    count -= length;
  }
  flush();
}

void LoadConnection::flush() {
  while (!unsent_.empty()) {
    // The device has read bytes that were not copied by the time their replies arrive; then they may change.
    unsent_ = unsent_.subspan(connection_->write(unsent_, greeted() ? requests_ : nullptr));
    if (!unsent_.empty()) return;
    std::swap(unsent_, unsent_from_front_);
  }
}

void LoadConnection::received(std::span<const std::byte> bytes) {
  auto replies = counter_.count(bytes);
  if (!replies) return share_.fail(std::move(replies.error()));
  if (counter_.errors()) [[unlikely]]
    return share_.fail({ErrorKind::refused, "Error from server: " + counter_.first_error()});
  if (awaited_greetings_) {
    awaited_greetings_ -= std::min(awaited_greetings_, *replies);
    return;
  }
  if (*replies == 0) return;
  if (*replies > awaited_)
    return share_.fail(
        {ErrorKind::protocol, "Protocol error: the server sent more replies than it got requests"});
  share_.nulls += counter_.take_nulls();
  const auto redirects = counter_.take_redirects();
  if (redirects.moved) share_.map_outdated = waits_for_map_ = true;
  answered(*replies, redirects.moved + redirects.asked, Clock::now());
}

// If replies arrived together it does not matter which ones were redirected: they have
// the same arrival time.
void LoadConnection::answered(std::uint64_t replies, std::uint64_t redirected, LoadShare::Time now) {
  const auto whole = replies - redirected;
  share_.under_way -= replies;
  share_.to_send += redirected;
  awaited_ -= replies;
  target_->answered += whole;
  target_->redirected += redirected;
  share_.done.store(share_.done.load(std::memory_order_relaxed) + whole, std::memory_order_relaxed);
  if (auto& schedule = share_.open_loop) {
    for (; redirected > 0; --redirected) schedule->give_back(due_[answered_++ % due_.size()]);
    for (auto left = whole; left > 0; --left)
      share_.latency.record(nanoseconds(now - due_[answered_++ % due_.size()]));
    schedule->room(now);
    if (now < share_.stop) send_due(schedule->due(now), now);
    return;
  }
  if (whole) share_.latency.record(nanoseconds(now - sent_at_), whole);
  if (awaited_ > 0) return;
  if (plan_.keep_alive) return send_batch(now);
  wants_reconnect_ = true;
}

}  // namespace weir::benchmark
