// weir-check: checks whether the files that a server left on disk are whole.
// Exit status: 0 they are, 1 they are not, 2 wrong usage or nothing to read.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "cli/check/file_set.hpp"
#include "cli/check/options.hpp"
#include "cli/check/repair.hpp"
#include "cli/check/report.hpp"
#include "cli/client/standard_output.hpp"

namespace weir::check {
namespace {

constexpr int not_whole = 1, misused = 2;

int complain(const std::string& what, int status) {
  fmt::print(stderr, "weir-check: {}\n", what);
  return status;
}

std::expected<CheckedSet, std::string> check_set(const FileSet& wanted) {
  CheckedSet set{wanted.manifest, wanted.wrong, {}};
  for (const WantedFile& one : wanted.files) {
    std::error_code ignored;
    if (!wanted.manifest.empty() && !std::filesystem::exists(one.path, ignored)) {
      CheckedFile missing;
      missing.path = one.path;
      missing.state = State::missing;
      missing.why = "the manifest lists it";
      set.files.push_back(missing);
      continue;
    }
    auto file = check_file(one.path, one.expected);
    if (!file) return std::unexpected(std::move(file.error()));
    set.files.push_back(std::move(*file));
  }
  return set;
}

// The file of `set` that is not whole and can be cut; a log has at most one.
CheckedFile* file_to_cut(CheckedSet& set) {
  const auto found = std::ranges::find_if(
      set.files, [&](const CheckedFile& file) { return can_be_cut(file, set.is_last(file)); });
  return found == set.files.end() ? nullptr : &*found;
}

bool agreed(const CheckedFile& file) {
  fmt::print("Cut {} from {} to {} bytes? [y/N] ", file.path, file.size, file.whole_bytes);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

// False: it was impossible, and the reason was printed.
bool fix(CheckedSet& set, const Options& options) {
  CheckedFile* const file = file_to_cut(set);
  if (file == nullptr) {
    if (!set.whole()) fmt::print("nothing of it can be cut: only the end of a log can\n");
    return true;
  }
  if (!options.yes && !agreed(*file)) {
    fmt::print("{} is as it was\n", file->path);
    return true;
  }
  const auto kept = cut(*file);
  if (!kept) return complain(kept.error(), not_whole), false;
  fmt::print("{}: cut to {} bytes; what was cut is in {}\n", file->path, file->whole_bytes, *kept);
  file->state = State::whole;
  return true;
}

int run(std::span<const std::string> arguments) {
  Options options;
  if (const auto ended = read_options(arguments, options)) return *ended;
  const auto wanted = files_meant(options.path);
  if (!wanted) return complain(wanted.error(), misused);
  std::vector<CheckedSet> sets;
  bool whole = true;
  for (const FileSet& one : *wanted) {
    auto set = check_set(one);
    if (!set) return complain(set.error(), misused);
    if (!options.json) fmt::print("{}", report_text(*set));
    if (options.fix && !fix(*set, options)) return not_whole;
    whole = whole && set->whole();
    if (!options.json && !options.fix && file_to_cut(*set) != nullptr)
      fmt::print("weir-check --fix {} cuts that off\n", options.path);
    sets.push_back(std::move(*set));
  }
  if (options.json) fmt::print("{}", report_json(sets));
  return whole ? 0 : not_whole;
}

}  // namespace
}  // namespace weir::check

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  try {
    return weir::client::output_arrived("weir-check", weir::check::run(arguments));
  } catch (const std::system_error& problem) {  // from fmt::print
    std::fprintf(stderr, "weir-check: %s\n", problem.what());
    return weir::check::misused;
  }
}
