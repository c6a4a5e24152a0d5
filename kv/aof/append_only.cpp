#include "kv/aof/append_only.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kv/aof/loading_log.hpp"
#include "kv/aof/place_note.hpp"
#include "kv/call/server_parts.hpp"
#include "kv/clients/client.hpp"
#include "kv/core/kept.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/replication/replication.hpp"
#include "kv/scripts/scripts.hpp"

namespace weir::kv::aof {

namespace {
constexpr std::int64_t retry_after_ms = 5000;
}

AppendOnly::AppendOnly(ServerParts& server, const Disk& disk)
    : server_(server), writer_(server.io, disk, server.settings.bio_cpulist), timer_(server.io) {
  writer_.on_synced = [this] { server_.handle([this] { after_sync(); }); };
}

AppendOnly::~AppendOnly() { turn_off(); }

Sync AppendOnly::sync() const { return static_cast<Sync>(server_.settings.appendfsync); }

std::uint64_t AppendOnly::size() const { return on() ? files_->size_of_closed() + writer_.size() : 0; }

std::int64_t AppendOnly::rewriting_for_s() const {
  return rewriting() ? (server_.steady_ms - run_began_ms_) / 1000 : -1;
}

std::size_t AppendOnly::memory_of_rewrite() const {
  if (!rewriting()) return 0;
  return run_->memory() + (snapshot_ == nullptr ? 0 : snapshot_->memory());
}

std::expected<LoadResult, std::string> AppendOnly::start(const std::function<bool()>& go_on) {
  auto files = LogFiles::open(server_.settings, server_.surroundings.disk);
  if (!files) return std::unexpected(std::move(files.error()));
  files_ = std::make_unique<LogFiles>(std::move(*files));
  const bool found = !files_->empty();
  auto loaded = found ? load_log(server_, *files_, go_on) : load_snapshot(server_, go_on);
  if (loaded && *loaded != LoadResult::stopped) {
    if (auto begun = begin(!found && *loaded == LoadResult::loaded); !begun)
      loaded = std::unexpected(std::move(begun.error()));
  }
  if (!loaded || *loaded == LoadResult::stopped) {
    files_.reset();
    return loaded;
  }
  server_.snapshots->loaded(server_.snapshots->state().last_save_s);
  size_after_rewrite_ = size();
  server_.effects.listen(writer_);
  server_.refresh_time();
  server_.arm_timer();  // for keys that became due while nothing expired
  return loaded;
}

// Continues in the newest file. A log that begins with existing data first needs it in a base.
AppendOnly::Done AppendOnly::begin(bool with_base) {
  if (with_base) files_->begin_without_base();
  if (files_->manifest().increments.empty()) {
    if (auto done = begin_increment(); !done) return done;
  } else {
    auto file = files_->open_newest();
    if (!file) return std::unexpected(std::move(file.error()));
    writer_.begin(std::move(*file), files_->folder().size(files_->manifest().increments.back().name));
  }
  if (!with_base) return {};
  auto done = write_base();
  if (done) server_.log(LogLevel::notice, "there was no log yet: it begins with the snapshot");
  return done;
}

// While the newest file is empty, and in one piece: nobody is served meanwhile.
AppendOnly::Done AppendOnly::write_base() {
  const auto number = server_.snapshots->lend_walk(Snapshots::LentTo::log, [] {});
  if (!number) return std::unexpected("a snapshot is being taken");
  auto done =
      write_snapshot(server_.snapshots->source(), *number, Snapshot::Use::append_only_base, base_choice());
  server_.snapshots->walk_returned();
  return done ? files_->adopt_base() : done;
}

AppendOnly::Done AppendOnly::rewrite_at_once() {
  give_up_rewrite();
  if (auto done = switch_file(); !done) return done;
  if (auto done = write_base(); !done) return done;
  scheduled_ = false;
  state_.last_ok = true;
  return {};
}

AppendOnly::Done AppendOnly::load_again() {
  if (server_.snapshots->running() || writes_once_) return std::unexpected("a snapshot is being taken");
  if (server_.effects.untold() || server_.replication->history().kept())
    return std::unexpected("it cannot be loaded in a transaction or while replicas follow");
  if (!on()) return load_what_was_written_once();
  if (!flush()) return std::unexpected(writer_.failure());
  if (rewriting() || files_->lacks_base()) {
    if (auto done = rewrite_at_once(); !done) return done;
  }
  server_.effects.ignore(writer_);  // what is replayed is in the log
  auto done = load_anew(*files_);
  server_.effects.listen(writer_);
  return done;
}

AppendOnly::Done AppendOnly::load_what_was_written_once() {
  auto files = LogFiles::open(server_.settings, server_.surroundings.disk);
  if (!files) return std::unexpected(files.error());
  if (files->empty()) return std::unexpected("this server keeps no log, and BGREWRITEAOF has written none");
  return load_anew(*files);
}

AppendOnly::Done AppendOnly::load_anew(LogFiles& files) {
  for (const auto& db : server_.databases) db->clear();
  server_.scripts->flush_libraries();
  const auto loaded = load_log(server_, files, [] { return true; });
  server_.arm_timer();
  if (!loaded) return std::unexpected(loaded.error());
  return {};
}

AppendOnly::Done AppendOnly::turn_on() {
  if (on()) return {};
  give_up_rewrite();  // the log that it was to write once begins now
  if (server_.loading || server_.effects.untold())
    return std::unexpected("the log cannot be turned on while the server loads or a transaction runs");
  auto files = LogFiles::open(server_.settings, server_.surroundings.disk);
  if (!files) return std::unexpected(std::move(files.error()));
  files_ = std::make_unique<LogFiles>(std::move(*files));
  files_->begin_without_base();
  if (auto done = begin_increment(); !done) {
    files_.reset();
    return done;
  }
  server_.effects.listen(writer_);
  const auto begun = rewrite();
  if (begun) return {};
  turn_off();
  return std::unexpected(begun.error());
}

void AppendOnly::end_as_planned() {
  if (on() && refusal_.empty() && whole_at_end() && server_.history.kept())
    writer_.add_note(place_note(server_.history));
  turn_off();
}

// Without its base the log on the disk is that of the data before: the next start would find that.
bool AppendOnly::whole_at_end() {
  if (!files_->lacks_base()) return true;
  if (server_.effects.untold()) return false;  // a base would hold a part of a transaction
  server_.log(LogLevel::notice, "the log lacks its base, which is written before the end");
  const auto done = rewrite_at_once();
  if (!done) server_.log(LogLevel::warning, "the log ends without its base: " + done.error());
  return done.has_value();
}

void AppendOnly::turn_off() {
  const bool was_on = on();
  give_up_rewrite();
  scheduled_ = false;
  if (!was_on) return;
  server_.effects.ignore(writer_);
  writer_.end();
  files_.reset();
  refusal_.clear();
  waiters_.fail(server_, "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  timer_.cancel();
  timer_runs_ = false;
}

AppendOnly::Done AppendOnly::begin_increment() {
  auto file = files_->begin_increment();
  if (!file) return std::unexpected(std::move(file.error()));
  writer_.begin(std::move(*file), 0);
  return {};
}

// From now on effects go to a file that is still empty.
AppendOnly::Done AppendOnly::switch_file() {
  const bool written = writer_.needs_new_file() ? writer_.write() : flush();
  if (!written) return std::unexpected(writer_.failure());
  return writer_.size() == 0 ? Done{} : begin_increment();
}

SnapshotFile::Choice AppendOnly::base_choice() const {
  const Settings& settings = server_.settings;
  return {files_->folder().path(),
          files_->next_base(),
          settings.rdbcompression ? rdb::Compression::lzf : rdb::Compression::none,
          settings.rdbchecksum,
          server_.surroundings.disk,
          settings.bio_cpulist};
}

std::expected<AppendOnly::Begun, std::string> AppendOnly::rewrite() {
  if (rewriting()) return std::unexpected("Background append only file rewriting already in progress");
  // The work of an unfinished transaction would be in the base and in the file after it.
  const auto number =
      server_.effects.untold() || server_.script_suspended
          ? std::nullopt
          : server_.snapshots->lend_walk(Snapshots::LentTo::log, [this] { give_up_rewrite(); });
  if (!number) return rewrite_soon(), Begun::later;
  scheduled_ = false;
  if (auto done = on() ? switch_file() : begin_to_write_once(); !done) {
    server_.snapshots->walk_returned();
    state_.last_ok = false;
    next_try_ms_ = server_.steady_ms + retry_after_ms;
    server_.log(LogLevel::warning, "the log cannot be rewritten: " + done.error());
    arm_timer();
    return std::unexpected(std::move(done.error()));
  }
  run_began_ms_ = server_.steady_ms;
  run_ = std::make_unique<BackgroundSnapshot>(
      server_.io, server_.cycle_rate, base_choice(),
      [this](SnapshotFile::Outcome outcome) { rewrite_ended(std::move(outcome)); });
  snapshot_ =
      std::make_unique<Snapshot>(server_.snapshots->source(), *number, Snapshot::Use::append_only_base,
                                 [this](rdb::Encoded chunk) { run_->add(std::move(chunk)); });
  run_->begin([this] {
    if (snapshot_->step()) return true;
    snapshot_.reset();
    return false;
  });
  server_.log(LogLevel::notice, "the log is rewritten in the background");
  return Begun::now;
}

AppendOnly::Done AppendOnly::begin_to_write_once() {
  auto files = LogFiles::open(server_.settings, server_.surroundings.disk);
  if (!files) return std::unexpected(std::move(files.error()));
  files->begin_without_base();
  // A log ends with an increment, so an empty one follows the base.
  if (auto file = files->begin_increment(); !file) return std::unexpected(std::move(file.error()));
  files_ = std::make_unique<LogFiles>(std::move(*files));
  writes_once_ = true;
  return {};
}

void AppendOnly::end_writing_once() {
  if (!std::exchange(writes_once_, false)) return;
  if (files_->lacks_base()) files_->folder().remove(files_->manifest().increments.back().name);
  files_.reset();
}

AppendOnly::Done AppendOnly::begin_anew() {
  if (!on()) return {};
  give_up_rewrite();
  const bool written = writer_.needs_new_file() ? writer_.write() : flush();
  if (!written) return std::unexpected("the log cannot be kept: " + writer_.failure());
  files_->begin_without_base();
  next_try_ms_ = 0;
  rewrite_soon();
  return begin_increment();
}

void AppendOnly::rewrite_soon() {
  scheduled_ = true;
  arm_timer();
}

void AppendOnly::rewrite_ended(SnapshotFile::Outcome outcome) {
  snapshot_.reset();
  run_.reset();
  server_.handle([&] { adopt(std::move(outcome)); });
}

void AppendOnly::adopt(SnapshotFile::Outcome outcome) {
  server_.snapshots->walk_returned();
  if (outcome) outcome = files_->adopt_base();
  state_.last_ok = outcome.has_value();
  state_.last_took_s = (server_.steady_ms - run_began_ms_) / 1000;
  arm_timer();
  if (!outcome) {
    next_try_ms_ = server_.steady_ms + retry_after_ms;
    server_.log(LogLevel::warning, "the log could not be rewritten: " + outcome.error());
    return end_writing_once();
  }
  ++state_.rewrites;
  server_.log(LogLevel::notice, "the log was rewritten");
  if (writes_once_) return end_writing_once();
  writer_.recovered();
  note(true);
  size_after_rewrite_ = size();
  serve_waiters();
}

void AppendOnly::give_up_rewrite() {
  if (!rewriting()) return;
  snapshot_.reset();
  run_.reset();
  server_.snapshots->walk_returned();
  state_.last_ok = false;
  next_try_ms_ = server_.steady_ms + retry_after_ms;
  end_writing_once();
  server_.log(LogLevel::notice, "the rewrite of the log is given up");
}

bool AppendOnly::wants_rewrite() const {
  if (rewriting() || server_.steady_ms < next_try_ms_) return false;
  if (scheduled_ || writer_.needs_new_file() || files_->lacks_base()) return true;
  const Settings& settings = server_.settings;
  const std::uint64_t now = size();
  if (settings.auto_aof_rewrite_percentage == 0 || !refusal_.empty()) return false;
  if (now < static_cast<std::uint64_t>(settings.auto_aof_rewrite_min_size)) return false;
  const std::uint64_t grown = now - std::min(size_after_rewrite_, now);
  return grown * 100 >=
         size_after_rewrite_ * static_cast<std::uint64_t>(settings.auto_aof_rewrite_percentage);
}

bool AppendOnly::flush() { return note(writer_.flush(sync())); }
bool AppendOnly::commit() {
  arm_timer();
  return note(writer_.commit(sync(), server_.steady_ms));
}

// Decides whether commands that write are refused from now on.
bool AppendOnly::note(bool kept) {
  if (!kept && sync() == Sync::always) replies_lie_ = true;
  const std::string& failure = writer_.failure();
  const std::string refusal =
      !on() || failure.empty() ? "" : "MISCONF Errors writing to the AOF file: " + failure;
  if (refusal == refusal_) return kept;
  refusal_ = refusal;
  server_.log(LogLevel::warning, failure.empty() ? "AOF write error looks solved. The server can write again."
                                                 : "the log cannot be kept: " + failure +
                                                       ". Commands that write are refused until it can.");
  arm_timer();
  return kept;
}

bool AppendOnly::synced() {
  if (sync() == Sync::always && writer_.anything_gathered() && refusal_.empty()) commit();
  return !files_->lacks_base() && writer_.synced_position() == writer_.position();
}

void AppendOnly::wait_for_sync(const Client& client) {
  waiters_.add(server_, client);
  arm_timer();
  if (refusal_.empty() && flush()) writer_.sync_soon();
}

void AppendOnly::give_up_waiting(Client& client) const {
  const BlockedOn& wait = *client.blocked;
  client.reply.array(2);
  client.reply.integer(on() && has_base() && writer_.synced_position() >= wait.log_position ? 1 : 0);
  client.reply.integer(server_.replication->replicas().count_synced(wait.position));
}

void AppendOnly::after_sync() {
  if (!on()) return;
  note(true);
  if (writer_.anything_gathered() && refusal_.empty()) commit();
  serve_waiters();
  if (waiters_.any()) writer_.sync_soon();
}

void AppendOnly::serve_waiters() {
  if (waiters_.any() && !files_->lacks_base()) waiters_.serve(server_, writer_.synced_position());
}

void AppendOnly::arm_timer() {
  if ((!on() && !scheduled_) || std::exchange(timer_runs_, true)) return;
  timer_.expires_after(std::chrono::seconds(1));
  timer_.async_wait([this](const std::error_code& cancelled) {
    if (cancelled) return;
    timer_runs_ = false;
    server_.handle([this] { tick(); });
  });
}

void AppendOnly::tick() {
  if (!on()) {
    if (scheduled_ && !rewriting() && !server_.loading) static_cast<void>(rewrite());
    return arm_timer();
  }
  if (server_.loading) return;
  writer_.retry(sync());
  note(true);
  if (refusal_.empty()) commit();
  if (sync() == Sync::everysec) writer_.sync_soon();
  if (wants_rewrite()) static_cast<void>(rewrite());
  const bool unsynced = sync() == Sync::everysec && writer_.synced_position() != writer_.position();
  if (!refusal_.empty() || scheduled_ || files_->lacks_base() || writer_.anything_gathered() || unsynced)
    arm_timer();
}

std::shared_ptr<AppendOnly> make_append_only(ServerParts& server, const Disk& disk) {
  return std::make_shared<AppendOnly>(server, disk);
}
bool keep(AppendOnly& log) { return log.keep(); }
const std::string& refusal(const AppendOnly& log) { return log.refusal(); }
std::optional<LogPositions> positions(const AppendOnly& log) {
  if (!log.on()) return std::nullopt;
  return LogPositions{log.position(), log.writer().synced_position(), log.has_base()};
}
LogMemory memory(const AppendOnly& log) { return {log.writer().gathered_memory(), log.memory_of_rewrite()}; }
void give_up_waiting(const AppendOnly& log, Client& client) { log.give_up_waiting(client); }
std::expected<void, std::string> begin_anew(AppendOnly& log) { return log.begin_anew(); }
void turn_off(AppendOnly& log) { log.turn_off(); }

}  // namespace weir::kv::aof
