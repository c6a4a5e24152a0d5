#include "tensor/arrays/listing.hpp"

#include <charconv>
#include <utility>

namespace weir::tensor {
namespace {

// Takes a number and the character `behind` that must follow it.
bool take_number(std::string_view& text, char behind, std::uint64_t& number) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end == text.data() + text.size() || *end != behind) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

}  // namespace

std::vector<std::byte> encode_listing(std::span<const CatalogueEntry> entries) {
  std::string text;
  for (const CatalogueEntry& each : entries) {
    text +=
        std::to_string(each.version) + " " + std::to_string(each.bytes) + "\t" + each.what + "\t" + each.name;
    text += '\0';
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Result<std::vector<CatalogueEntry>> parse_listing(std::span<const std::byte> bytes) {
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<CatalogueEntry> entries;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) return fail(Errc::protocol, "a list of names that ends within a name");
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    CatalogueEntry entry;
    if (!take_number(line, ' ', entry.version) || !take_number(line, '\t', entry.bytes))
      return fail(Errc::protocol, "a list of names without numbers");
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return fail(Errc::protocol, "a list of names without a name");
    entry.what = line.substr(0, tab);
    entry.name = line.substr(tab + 1);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace weir::tensor
