// Reads the manifest of the append-only log. An accepted one keeps the promises of manifest.hpp, and after
// writing it is read as the same one.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "kv/aof/manifest.hpp"

using weir::kv::aof::is_plain_name;
using weir::kv::aof::LogFile;
using weir::kv::aof::Manifest;

namespace {
void expect(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = weir::kv::aof::parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!manifest) return 0;
  std::set<std::string> names;
  const auto check = [&](const LogFile& file) {
    expect(is_plain_name(file.name) && file.sequence > 0 && names.insert(file.name).second);
  };
  if (manifest->base) check(*manifest->base);
  std::int64_t last = 0;
  for (const LogFile& file : manifest->increments) {
    check(file);
    expect(file.sequence > last);
    last = file.sequence;
  }
  for (const LogFile& file : manifest->history) check(file);
  const auto again = weir::kv::aof::parse_manifest(manifest_text(*manifest));
  expect(again && *again == *manifest);
  return 0;
}
