#include "kv/aof/log_files.hpp"

#include "kv/settings/settings.hpp"

namespace weir::kv::aof {

namespace {
constexpr std::size_t largest_manifest = std::size_t{1} << 20;
}

std::expected<LogFiles, std::string> LogFiles::open(const Settings& settings, const Disk& disk) {
  if (!is_plain_name(settings.appendfilename))
    return std::unexpected("appendfilename can't be a path, just a filename");
  auto folder = Folder::open(settings.dir, settings.appenddirname, disk);
  if (!folder) return std::unexpected(std::move(folder.error()));
  LogFiles files(std::move(*folder), settings.appendfilename);
  auto done = files.read_manifest();
  if (done) done = files.take_old_file(settings.dir);
  if (!done) return std::unexpected(std::move(done.error()));
  return files;
}

std::expected<void, std::string> LogFiles::read_manifest() {
  if (!folder_.has(manifest_name())) return {};
  auto text = folder_.read(manifest_name(), largest_manifest);
  if (!text) return std::unexpected(std::move(text.error()));
  auto manifest = parse_manifest(*text);
  if (!manifest) return std::unexpected("the log's manifest " + manifest_name() + ": " + manifest.error());
  manifest_ = std::move(*manifest);
  return {};
}

// The manifest first says where the file belongs, then the file is moved there. If the process stops in
// between, the next start continues here.
std::expected<void, std::string> LogFiles::take_old_file(const std::string& parent) {
  const std::string old = parent + '/' + first_name_;
  if (empty() && is_file(old)) {
    if (auto done = store({.base = LogFile{first_name_, 1}, .increments = {}, .history = {}}); !done)
      return done;
  }
  if (!manifest_.base || manifest_.base->name != first_name_ || folder_.has(first_name_)) return {};
  return folder_.take(old, first_name_);
}

std::string LogFiles::name(std::int64_t sequence, std::string_view kind) const {
  return first_name_ + '.' + std::to_string(sequence) + '.' + std::string(kind);
}

std::expected<void, std::string> LogFiles::store(Manifest manifest) {
  auto done = folder_.replace(manifest_name(), manifest_text(manifest));
  if (done) manifest_ = std::move(manifest);
  return done;
}

std::expected<OwnedFd, std::string> LogFiles::open_newest() const {
  return folder_.open_to_append(manifest_.increments.back().name);
}

std::expected<OwnedFd, std::string> LogFiles::begin_increment() {
  const std::int64_t sequence = manifest_.last_increment() + 1;
  const LogFile increment{name(sequence, "incr.aof"), sequence};
  auto file = folder_.make(increment.name);
  if (!file) return file;
  Manifest manifest = manifest_;
  manifest.increments.push_back(increment);
  if (lacks_base_) {
    manifest_ = std::move(manifest);
  } else if (auto done = store(std::move(manifest)); !done) {
    return std::unexpected(std::move(done.error()));
  }
  return file;
}

std::string LogFiles::next_base() const { return name(manifest_.last_base() + 1, "base.rdb"); }

std::expected<void, std::string> LogFiles::adopt_base() {
  const LogFile base{next_base(), manifest_.last_base() + 1};
  Manifest manifest{base, {manifest_.increments.back()}, manifest_.history};
  if (manifest_.base) manifest.history.push_back(*manifest_.base);
  manifest.history.insert(manifest.history.end(), manifest_.increments.begin(),
                          manifest_.increments.end() - 1);
  if (auto done = store(std::move(manifest)); !done) return done;
  lacks_base_ = false;
  remove_history();
  return {};
}

// Deleted files stay listed until the manifest is next written, which does no harm.
void LogFiles::remove_history() {
  for (const LogFile& file : manifest_.history) folder_.remove(file.name);
  manifest_.history.clear();
}

std::uint64_t LogFiles::size_of_closed() const {
  std::uint64_t size = manifest_.base ? folder_.size(manifest_.base->name) : 0;
  for (const LogFile& file : manifest_.increments) {
    if (&file != &manifest_.increments.back()) size += folder_.size(file.name);
  }
  return size;
}

}  // namespace weir::kv::aof
