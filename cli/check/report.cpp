#include "cli/check/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/check/repair.hpp"
#include "cli/json_text.hpp"

namespace weir::check {
namespace {

std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? noun : plural);
}

std::string_view state_name(State state) {
  constexpr std::string_view names[] = {"whole", "truncated", "damaged", "refused", "missing"};
  return names[static_cast<std::size_t>(state)];
}

std::string contents(const SnapshotFound& snapshot) {
  std::string text = fmt::format("snapshot of version {}", snapshot.version);
  if (!snapshot.written_by.empty()) text += fmt::format(" by {}", snapshot.written_by);
  text += ": " + counted(snapshot.keys, "key", "keys");
  if (snapshot.expiring != 0) text += fmt::format(" ({} with a time to live)", snapshot.expiring);
  if (snapshot.databases > 1) text += fmt::format(" in {} databases", snapshot.databases);
  if (snapshot.functions != 0)
    text += ", " + counted(snapshot.functions, "library of functions", "libraries of functions");
  return text;
}

std::string contents(const CheckedFile& file) {
  std::string text = file.snapshot ? contents(*file.snapshot) : "";
  if (file.log) {
    text += (text.empty() ? "log: " : "; then a log: ") + counted(file.log->requests, "request", "requests");
    if (file.log->transactions != 0)
      text += ", " + counted(file.log->transactions, "transaction", "transactions");
  }
  return text;
}

void write_file(JsonText& json, const CheckedFile& file, bool cuttable) {
  json.line(4).begin_object().key("file").text(file.path).key("size").number(file.size);
  json.key("state").text(state_name(file.state)).key("why").text(file.why);
  if (const auto& found = file.snapshot) {
    json.key("snapshot").begin_object().key("version").number(found->version);
    json.key("written_by").text(found->written_by).key("databases").number(found->databases);
    json.key("keys").number(found->keys).key("expiring").number(found->expiring);
    json.key("functions").number(found->functions).end();
  }
  if (const auto& found = file.log) {
    json.key("log").begin_object().key("requests").number(found->requests);
    json.key("transactions").number(found->transactions).key("whole_bytes").number(file.whole_bytes);
    json.key("can_be_cut").boolean(cuttable).end();
  }
  json.end();
}

}  // namespace

bool CheckedSet::whole() const { return wrong.empty() && std::ranges::all_of(files, &CheckedFile::whole); }

bool CheckedSet::is_last(const CheckedFile& file) const {
  const auto behind = files.begin() + (&file - files.data()) + 1;
  return std::all_of(behind, files.end(), [](const CheckedFile& later) {
    return later.state != State::missing && later.size == 0;
  });
}

std::string report_text(const CheckedSet& set) {
  std::string text;
  if (!set.wrong.empty())
    text += fmt::format("{}: a manifest that is damaged: {}\n", set.manifest, set.wrong);
  for (const CheckedFile& file : set.files) {
    const std::string found = contents(file);
    text += fmt::format("{}: {}{}{}{}\n", file.path, found, found.empty() ? "" : "; ", state_name(file.state),
                        file.why.empty() ? "" : ": " + file.why);
  }
  return text;
}

std::string report_json(const std::vector<CheckedSet>& sets) {
  JsonText json;
  json.begin_object().key("whole").boolean(std::ranges::all_of(sets, &CheckedSet::whole));
  json.key("sets").begin_array();
  for (const CheckedSet& set : sets) {
    json.line(2).begin_object().key("manifest").text(set.manifest).key("wrong").text(set.wrong);
    json.key("files").begin_array();
    for (const CheckedFile& file : set.files) write_file(json, file, can_be_cut(file, set.is_last(file)));
    json.end().end();
  }
  return json.end().line(0).end().take() + '\n';
}

}  // namespace weir::check
