#include "kv/persistence/snapshots.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "kv/core/gateway.hpp"
#include "kv/core/server_common.hpp"
#include "kv/core/server_whole.hpp"
#include "kv/effects/effects.hpp"

namespace weir::kv {

namespace {

constexpr std::int64_t retry_after_s = 5;

}  // namespace

Snapshots::Snapshots(SnapshotSource source, ServerWhole& whole)
    : server_(source.server), source_(source), whole_(whole), clock_timer_(server_.io) {}

SnapshotFile::Choice Snapshots::choice() const {
  const Settings& settings = server_.settings;
  return {settings.dir,
          settings.dbfilename,
          settings.rdbcompression ? rdb::Compression::lzf : rdb::Compression::none,
          settings.rdbchecksum,
          server_.surroundings.disk,
          settings.bio_cpulist};
}

Snapshots::Outcome Snapshots::save() {
  if (busy()) return std::unexpected("Background save already in progress");
  const std::uint64_t changes_before = source_.effects.changes();
  const std::int64_t began_s = server_.steady_ms / 1000;
  const Outcome outcome = write_snapshot(source_, ++number_, Snapshot::Use::file, choice());
  ended(outcome, changes_before, began_s);
  return outcome;
}

Snapshots::Outcome Snapshots::start() {
  if (busy()) return std::unexpected("Background save already in progress");
  running_ = std::make_unique<Running>();
  running_->changes_before = source_.effects.changes();
  running_->began_s = server_.steady_ms / 1000;
  running_->file =
      std::make_unique<BackgroundSnapshot>(server_.io, server_.cycle_rate, choice(), [this](Outcome outcome) {
        const auto running = std::exchange(running_, nullptr);
        running->snapshot.reset();
        whole_.handle([&] { ended(std::move(outcome), running->changes_before, running->began_s); });
      });
  Running& running = *running_;
  running.snapshot =
      std::make_unique<Snapshot>(source_, ++number_, Snapshot::Use::file,
                                 [&running](rdb::Encoded chunk) { running.file->add(std::move(chunk)); });
  running.file->begin([&running] {
    if (running.snapshot->step()) return true;
    running.snapshot.reset();
    return false;
  });
  server_.log(LogLevel::notice, "a snapshot of " + std::to_string(running.snapshot->keys_at_first()) +
                                    " keys begins in the background");
  return {};
}

void Snapshots::start_soon() {
  scheduled_ = true;
  if (!std::exchange(clock_is_watched_, true)) watch_clock();
}

std::optional<std::uint32_t> Snapshots::lend_walk(LentTo whom, std::function<void()> take_back) {
  if (busy()) return std::nullopt;
  take_back_ = std::move(take_back);
  lent_to_ = whom;
  return ++number_;
}

void Snapshots::abandon() {
  if (std::exchange(running_, nullptr) == nullptr) return;
  server_.log(LogLevel::notice, "the snapshot that was being taken is given up");
}

Snapshots::Outcome Snapshots::before_end(EndWish wish) {
  abandon();
  // During loading the data is on the disk, and only a part of it is here.
  const bool wanted = wish == EndWish::save || (wish == EndWish::as_configured && has_save_points());
  if (!wanted || server_.loading || server_.gateway != nullptr) return {};
  server_.log(LogLevel::notice, "saving a last snapshot");
  if (const auto take_back = take_back_) take_back();
  return save();
}

void Snapshots::ended(Outcome outcome, std::uint64_t changes_before, std::int64_t began_s) {
  const std::int64_t now_s = server_.steady_ms / 1000;
  state_.last_ok = outcome.has_value();
  state_.last_duration_s = now_s - began_s;
  if (outcome) {
    counting_since_s_ = now_s;
    state_.last_save_s = server_.now_ms / 1000;
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
    if (points_.empty() && !scheduled_) {
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
  if (std::exchange(scheduled_, false)) return static_cast<void>(start());
  const std::int64_t now_s = server_.steady_ms / 1000;
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
  changes_saved_ = source_.effects.changes();
  state_.last_save_s = saved_at_s;
}

std::uint64_t Snapshots::changes_since() const { return source_.effects.changes() - changes_saved_; }

std::int64_t Snapshots::running_for_s() const {
  return running_ == nullptr ? -1 : server_.steady_ms / 1000 - running_->began_s;
}

std::size_t Snapshots::memory() const {
  if (running_ == nullptr) return 0;
  return running_->file->memory() + (running_->snapshot == nullptr ? 0 : running_->snapshot->memory());
}

const Snapshot* Snapshots::current() const {
  return running_ == nullptr ? nullptr : running_->snapshot.get();
}

SnapshotFile::Outcome write_snapshot(SnapshotSource source, std::uint32_t number, Snapshot::Use use,
                                     SnapshotFile::Choice choice) {
  constexpr std::size_t unwritten_limit = 16 << 20;
  SnapshotFile::Outcome outcome;
  SnapshotFile file(std::move(choice), [&outcome](SnapshotFile::Outcome what) { outcome = std::move(what); });
  Snapshot snapshot(source, number, use, [&file](rdb::Encoded chunk) { file.add(std::move(chunk)); });
  while (snapshot.step() && !file.failed()) file.wait_until_below(unwritten_limit);
  file.finish();
  file.join();
  return outcome;
}

}  // namespace weir::kv
