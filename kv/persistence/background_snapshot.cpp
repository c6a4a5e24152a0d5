#include "kv/persistence/background_snapshot.hpp"

#include <asio/post.hpp>
#include <chrono>
#include <utility>

namespace weir::kv {

namespace {

constexpr std::int64_t slice_us = 500;
constexpr std::size_t ahead_of_disk = 16 << 20;  // encoded ahead of the disk at most

}  // namespace

BackgroundSnapshot::BackgroundSnapshot(asio::io_context& io, const CycleRate& cycle_rate,
                                       SnapshotFile::Choice choice, std::function<void(Outcome)> ended)
    : cycle_rate_(cycle_rate),
      ended_(std::move(ended)),
      timer_(io),
      self_(std::make_shared<BackgroundSnapshot*>(this)),
      file_(std::move(choice), [&io, self = std::weak_ptr(self_)](Outcome outcome) {
        asio::post(io, [self, outcome = std::move(outcome)]() mutable {
          if (const auto there = self.lock(); there && *there != nullptr)
            (*there)->finish(std::move(outcome));
        });
      }) {}

void BackgroundSnapshot::begin(std::function<bool()> step) {
  step_ = std::move(step);
  rest(0);
}

void BackgroundSnapshot::rest(std::int64_t us) {
  timer_.expires_after(std::chrono::microseconds(us));
  timer_.async_wait([self = std::weak_ptr(self_)](const std::error_code& cancelled) {
    if (cancelled) return;
    if (const auto there = self.lock(); there && *there != nullptr) (*there)->take_turn();
  });
}

void BackgroundSnapshot::take_turn() {
  if (!step_ || file_.failed()) return;  // the end is already on its way
  const double cycles_per_us = cycle_rate_.per_us();
  const std::uint64_t began = cycles_now();
  const auto spent_us = [&] {
    return static_cast<std::int64_t>(static_cast<double>(cycles_now() - began) / cycles_per_us);
  };
  if (const std::size_t waiting = file_.waiting_bytes(); waiting > ahead_of_disk) {
    if (waiting <= pending_most) return rest(1000);
    file_.abandon();
    return finish(std::unexpected("the disk is slower than clients change keys"));
  }
  bool more = true;
  while (more && spent_us() < slice_us) more = step_();
  if (more) return rest(spent_us());
  step_ = {};
  file_.finish();
}

void BackgroundSnapshot::finish(Outcome outcome) {
  *self_ = nullptr;  // ignore whatever the thread still reports
  timer_.cancel();
  step_ = {};
  file_.join();
  const auto ended = std::move(ended_);
  ended(std::move(outcome));  // may destroy this object
}

}  // namespace weir::kv
