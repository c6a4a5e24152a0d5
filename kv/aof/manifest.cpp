#include "kv/aof/manifest.hpp"

#include <algorithm>
#include <set>

#include "kv/resp/words.hpp"
#include "kv/text/number.hpp"

namespace weir::kv::aof {

namespace {

constexpr std::size_t longest_line = 1024;

enum class Kind : char { base = 'b', history = 'h', increment = 'i' };

struct Line {
  LogFile file;
  Kind kind{};
};

std::optional<Line> parse_line(std::string_view text) {
  const auto words = split_words(text);
  if (!words || words->size() < 6 || words->size() % 2 != 0) return std::nullopt;
  Line line;
  std::optional<Kind> kind;
  for (std::size_t i = 0; i < words->size(); i += 2) {
    const std::string& name = (*words)[i];
    const std::string& value = (*words)[i + 1];
    if (name == "file") {
      line.file.name = value;
    } else if (name == "seq") {
      line.file.sequence = parse_int(value).value_or(0);
    } else if (name == "type" && (value == "b" || value == "h" || value == "i")) {
      kind = static_cast<Kind>(value[0]);
    }
  }
  if (!is_plain_name(line.file.name) || line.file.sequence <= 0 || !kind) return std::nullopt;
  line.kind = *kind;
  return line;
}

std::string line_text(const LogFile& file, Kind kind) {
  const bool plain = std::ranges::all_of(
      file.name, [](unsigned char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\'; });
  return "file " + (plain ? file.name : quoted(file.name)) + " seq " + std::to_string(file.sequence) +
         " type " + static_cast<char>(kind) + '\n';
}

// The error if this file may not follow those of the manifest; empty: it may.
std::string add(Manifest& manifest, Line line) {
  switch (line.kind) {
    case Kind::base:
      if (manifest.base) return "Found duplicate base file information";
      manifest.base = std::move(line.file);
      break;
    case Kind::history:
      manifest.history.push_back(std::move(line.file));
      break;
    case Kind::increment:
      if (line.file.sequence <= manifest.last_increment()) return "Found a non-monotonic sequence number";
      manifest.increments.push_back(std::move(line.file));
      break;
  }
  return {};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos && name.size() <= 255;
}

std::expected<Manifest, std::string> parse_manifest(std::string_view text) {
  Manifest manifest;
  std::set<std::string> names;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || end > longest_line)
      return std::unexpected("The AOF manifest file contains too long line");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line.starts_with('#')) continue;
    auto parsed = parse_line(line);
    if (!parsed) return std::unexpected("Invalid AOF manifest file format");
    if (!names.insert(parsed->file.name).second) return std::unexpected("Found a file name twice");
    if (std::string wrong = add(manifest, std::move(*parsed)); !wrong.empty()) return std::unexpected(wrong);
  }
  if (names.empty()) return std::unexpected("Found an empty AOF manifest");
  return manifest;
}

std::string manifest_text(const Manifest& manifest) {
  std::string text;
  if (manifest.base) text += line_text(*manifest.base, Kind::base);
  for (const LogFile& file : manifest.history) text += line_text(file, Kind::history);
  for (const LogFile& file : manifest.increments) text += line_text(file, Kind::increment);
  return text;
}

}  // namespace weir::kv::aof
