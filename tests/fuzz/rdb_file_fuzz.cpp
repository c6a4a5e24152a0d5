// Reads whole snapshots in pieces of 1 to 256 bytes (the first byte of the input chooses). The worst
// allowed result is a refusal.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kv/rdb/file_reader.hpp"

namespace {

using namespace weir::kv::rdb;

class Pieces final : public Source {
 public:
  Pieces(std::string_view bytes, std::size_t at_once) : bytes_(bytes), at_once_(at_once) {}
  std::size_t read(char* into, std::size_t most) override {
    const std::size_t size = std::min({most, at_once_, bytes_.size()});
    if (size != 0) std::memcpy(into, bytes_.data(), size);
    bytes_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view bytes_;
  std::size_t at_once_;
};

class Nobody final : public Target {
 public:
  void aux(std::string_view, std::string_view) override {}
  std::string select(std::uint64_t database) override { return database < 16 ? "" : "no such database"; }
  void sizes(std::uint64_t, std::uint64_t) override {}
  std::string record(std::string_view, weir::kv::Value value, const About&) override {
    if (!may_be_kept(value)) std::abort();
    return {};
  }
  std::string function(std::string_view) override { return {}; }
  bool go_on(std::uint64_t) override { return true; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Pieces source({reinterpret_cast<const char*>(data + 1), size - 1}, std::size_t{data[0]} + 1);
  Nobody target;
  static_cast<void>(read_file(source, {}, Checked::no, target));
  return 0;
}
