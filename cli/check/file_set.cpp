#include "cli/check/file_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "kv/aof/manifest.hpp"

namespace weir::check {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_manifest = std::size_t{1} << 20;  // as in the server
constexpr std::string_view manifest_suffix = ".manifest", snapshot_suffix = ".rdb", log_suffix = ".aof";

FileSet log_of(const fs::path& manifest) {
  FileSet set{manifest.string(), {}, {}};
  std::ifstream file(manifest, std::ios::binary);
  std::string text(largest_manifest + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > largest_manifest) return set.wrong = "it is too large for a manifest", set;
  const auto listed = kv::aof::parse_manifest(text);
  if (!listed) return set.wrong = listed.error(), set;
  const auto add = [&](const kv::aof::LogFile& one) {
    set.files.push_back({(manifest.parent_path() / one.name).string(), Expected::log});
  };
  if (listed->base) add(*listed->base);
  std::ranges::for_each(listed->increments, add);
  return set;
}

FileSet alone(const fs::path& file) {
  const std::string name = file.filename().string();
  const Expected expected = name.ends_with(snapshot_suffix) ? Expected::snapshot
                            : name.ends_with(log_suffix)    ? Expected::log
                                                            : Expected::anything;
  return {{}, {}, {{file.string(), expected}}};
}

// The files of a folder whose names end in `suffix`, sorted by name. Names that start with temp- belong to
// files that a server is still writing.
std::vector<fs::path> files_ending(const fs::path& folder, std::string_view suffix, std::error_code& error) {
  std::vector<fs::path> found;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (name.ends_with(suffix) && !name.starts_with("temp-") && entry->is_regular_file(ignored))
      found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

std::expected<std::vector<FileSet>, std::string> files_in(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> manifests = files_ending(folder, manifest_suffix, error);
  if (error) return std::unexpected(fmt::format("cannot read {}: {}", folder.string(), error.message()));
  const bool is_of_logs = !manifests.empty();
  std::vector<FileSet> sets;
  if (!is_of_logs) {
    for (const fs::path& file : files_ending(folder, snapshot_suffix, error)) sets.push_back(alone(file));
    for (const fs::path& below : folders_in(folder))
      std::ranges::move(files_ending(below, manifest_suffix, error), std::back_inserter(manifests));
  }
  std::ranges::transform(manifests, std::back_inserter(sets), log_of);
  if (manifests.empty())
    for (const fs::path& file : files_ending(folder, log_suffix, error)) sets.push_back(alone(file));
  if (sets.empty())
    return std::unexpected(fmt::format("there is no snapshot, log or manifest in {}", folder.string()));
  return sets;
}

}  // namespace

std::expected<std::vector<FileSet>, std::string> files_meant(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    return std::unexpected(fmt::format("cannot read {}: {}", path, std::strerror(ENOENT)));
  if (error) return std::unexpected(fmt::format("cannot read {}: {}", path, error.message()));
  if (fs::is_directory(status)) return files_in(path);
  return std::vector{path.ends_with(manifest_suffix) ? log_of(path) : alone(path)};
}

}  // namespace weir::check
