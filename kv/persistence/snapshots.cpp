#include "kv/persistence/snapshots.hpp"

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <chrono>
#include <utility>

#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

constexpr std::int64_t slice_us = 500;
constexpr std::size_t ahead_of_disk = 16 << 20;  // so much is encoded before it is written
constexpr std::int64_t retry_after_s = 5;

}  // namespace

Snapshots::Snapshots(Server& server)
    : server_(server),
      turn_timer_(server.io),
      clock_timer_(server.io),
      self_(std::make_shared<Snapshots*>(this)) {}

SnapshotFile::Choice Snapshots::choice() const {
  const Settings& settings = server_.settings;
  return {settings.dir, settings.dbfilename,
          settings.rdbcompression ? rdb::Compression::lzf : rdb::Compression::none, settings.rdbchecksum};
}

std::unique_ptr<Snapshot> Snapshots::begin(SnapshotFile& file) {
  return std::make_unique<Snapshot>(server_, ++number_, Snapshot::Use::file,
                                    [&file](rdb::Encoded chunk) { file.add(std::move(chunk)); });
}

Snapshots::Outcome Snapshots::save() {
  if (busy()) return std::unexpected("Background save already in progress");
  const std::uint64_t changes_before = server_.effects.changes();
  const std::int64_t began_s = server_.now_ms / 1000;
  Outcome outcome;
  {
    SnapshotFile file(choice(), [&outcome](Outcome what) { outcome = std::move(what); });
    const auto snapshot = begin(file);
    while (snapshot->step() && !file.failed()) file.wait_until_below(ahead_of_disk);
    file.finish();
    file.join();
  }
  ended(outcome, changes_before, began_s);
  return outcome;
}

Snapshots::Outcome Snapshots::start() {
  if (busy()) return std::unexpected("Background save already in progress");
  running_ = std::make_unique<Running>();
  running_->changes_before = server_.effects.changes();
  running_->began_s = server_.now_ms / 1000;
  const auto number = number_ + 1;
  running_->file = std::make_unique<SnapshotFile>(
      choice(), [&io = server_.io, self = std::weak_ptr(self_), number](Outcome outcome) {
        asio::post(io, [self, number, outcome = std::move(outcome)]() mutable {
          const auto snapshots = self.lock();
          if (!snapshots || (*snapshots)->number_ != number) return;
          Snapshots& all = **snapshots;
          const auto running = std::exchange(all.running_, nullptr);
          if (running == nullptr) return;
          all.turn_timer_.cancel();
          running->snapshot.reset();
          running->file->join();
          all.server_.refresh_time();
          all.ended(std::move(outcome), running->changes_before, running->began_s);
          all.server_.end_round();
        });
      });
  running_->snapshot = begin(*running_->file);
  server_.log(LogLevel::notice, "a snapshot of " + std::to_string(running_->snapshot->keys_at_first()) +
                                    " keys begins in the background");
  rest(0);
  return {};
}

std::optional<std::uint32_t> Snapshots::lend_walk(std::function<void()> take_back) {
  if (busy()) return std::nullopt;
  take_back_ = std::move(take_back);
  return ++number_;
}

void Snapshots::abandon() {
  turn_timer_.cancel();
  if (running_ == nullptr) return;
  const auto running = std::exchange(running_, nullptr);
  running->snapshot.reset();
  running->file->abandon();
  server_.log(LogLevel::notice, "the snapshot that was being taken is given up");
}

Snapshots::Outcome Snapshots::before_end(EndWish wish) {
  abandon();
  // What is being loaded is on the disk, and here only a part of it is.
  const bool wanted = wish == EndWish::save || (wish == EndWish::as_configured && has_save_points());
  if (!wanted || server_.loading) return {};
  server_.log(LogLevel::notice, "saving a last snapshot");
  if (const auto take_back = take_back_) take_back();
  return save();
}

void Snapshots::rest(std::int64_t us) {
  turn_timer_.expires_after(std::chrono::microseconds(us));
  turn_timer_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) take_turn();
  });
}

void Snapshots::take_turn() {
  if (running_ == nullptr || running_->snapshot == nullptr) return;
  SnapshotFile& file = *running_->file;
  if (file.failed()) return;  // its end is on the way
  const double cycles_per_us = server_.cycle_rate.per_us();
  const std::uint64_t began = cycles_now();
  const auto spent_us = [&] {
    return static_cast<std::int64_t>(static_cast<double>(cycles_now() - began) / cycles_per_us);
  };
  if (const std::size_t waiting = file.waiting_bytes(); waiting > ahead_of_disk) {
    if (waiting > pending_most) {
      const auto running = std::exchange(running_, nullptr);
      running->snapshot.reset();
      running->file->abandon();
      return ended(std::unexpected("the disk is slower than clients change keys"), running->changes_before,
                   running->began_s);
    }
    return rest(1000);
  }
  bool more = true;
  while (more && spent_us() < slice_us) more = running_->snapshot->step();
  if (more) return rest(spent_us());
  file.finish();
  running_->snapshot.reset();
}

void Snapshots::ended(Outcome outcome, std::uint64_t changes_before, std::int64_t began_s) {
  const std::int64_t now_s = server_.now_ms / 1000;
  state_.last_ok = outcome.has_value();
  state_.last_duration_s = now_s - began_s;
  if (outcome) {
    state_.last_save_s = counting_since_s_ = now_s;
    ++state_.saves;
    changes_saved_ = changes_before;
    server_.log(LogLevel::notice, "a snapshot is on the disk");
  } else {
    next_try_s_ = now_s + retry_after_s;
    server_.log(LogLevel::warning, "a snapshot failed: " + outcome.error());
  }
}

void Snapshots::settings_changed() {
  const std::array words{server_.settings.save};
  points_ = read_save_points(words).value_or(std::vector<SavePoint>{});
  if (counting_since_s_ == 0) counting_since_s_ = server_.started_ms / 1000;
  if (!points_.empty() && !std::exchange(clock_is_watched_, true)) watch_clock();
}

void Snapshots::watch_clock() {
  clock_timer_.expires_after(std::chrono::seconds(1));
  clock_timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled) return;
    if (points_.empty()) {
      clock_is_watched_ = false;
      return;
    }
    server_.refresh_time();
    look_at_clock();
    watch_clock();
  });
}

void Snapshots::look_at_clock() {
  if (busy() || server_.loading || server_.script_suspended) return;
  const std::int64_t now_s = server_.now_ms / 1000;
  if (!state_.last_ok && now_s < next_try_s_) return;
  const auto changes = static_cast<std::int64_t>(changes_since());
  const auto due = std::ranges::find_if(points_, [&](const SavePoint& point) {
    return changes >= point.changes && changes > 0 && now_s - counting_since_s_ > point.seconds;
  });
  if (due == points_.end()) return;
  server_.log(LogLevel::notice, std::to_string(due->changes) + " changes in " + std::to_string(due->seconds) +
                                    " seconds: saving");
  static_cast<void>(start());
}

bool Snapshots::refuses_writes() const {
  return !state_.last_ok && has_save_points() && server_.settings.stop_writes_on_bgsave_error;
}

void Snapshots::loaded(std::int64_t saved_at_s) {
  changes_saved_ = server_.effects.changes();
  state_.last_save_s = saved_at_s;
}

std::uint64_t Snapshots::changes_since() const { return server_.effects.changes() - changes_saved_; }

std::int64_t Snapshots::running_for_s() const {
  return running_ == nullptr ? -1 : server_.now_ms / 1000 - running_->began_s;
}

const Snapshot* Snapshots::current() const {
  return running_ == nullptr ? nullptr : running_->snapshot.get();
}

}  // namespace weir::kv
