// A stream of bytes split anywhere: the frame reader takes no more than it is given, and writes nowhere else.
// The first byte chooses the size of the steps.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tensor/link/stream_frames.hpp"

namespace {

using namespace weir::tensor;

// Expects 100,000 bytes under one index.
class Sink final : public FrameReader::Sink {
 public:
  bool on_greeting(std::span<const std::byte> greeting) override {
    return wire::parse_greeting(greeting).has_value();
  }
  bool on_message(std::span<const std::byte> message) override {
    while (!message.empty())
      if (!wire::take_message(message)) return false;
    return true;
  }
  std::span<std::byte> room_for(std::uint32_t index, std::uint64_t most) override {
    if (index != 65 || most > memory_.size() - received_) return {};
    return std::span(memory_).subspan(received_, static_cast<std::size_t>(most));
  }
  void filled(std::uint32_t index, std::size_t bytes) override {
    if (index != 65 || bytes > memory_.size() - received_) std::abort();
    received_ += bytes;
  }
  bool on_record(const wire::Record& record) override {
    received_ = 0;
    return record.index == 65;
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(100'000);
  std::size_t received_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t step = std::size_t{data[0]} * 64 + 1;
  std::span<const std::uint8_t> rest(data + 1, size - 1);
  Sink sink;
  FrameReader reader(sink);
  while (!rest.empty()) {
    const std::span<std::byte> room = reader.room();
    if (room.empty()) break;
    const std::size_t bytes = std::min({room.size(), rest.size(), step});
    std::memcpy(room.data(), rest.data(), bytes);
    rest = rest.subspan(bytes);
    if (!reader.came(bytes)) break;
  }
  return 0;
}
