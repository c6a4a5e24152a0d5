// A log file as it may be found on the disk. However its bytes come, the reader sees the same requests and
// the same end; and a request that was read is written as the bytes it was read from.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "kv/aof/log_reader.hpp"
#include "kv/effects/request_text.hpp"

using weir::kv::aof::LogReader;

namespace {

struct Outcome {
  std::string requests;
  std::uint64_t whole = 0;
  LogReader::Next end{};
  bool operator==(const Outcome&) const = default;
};

Outcome read(std::string_view file, std::size_t step) {
  std::string_view rest = file;
  LogReader reader([&](char* place, std::size_t most) {
    const std::size_t n = std::min({most, step, rest.size()});
    std::memcpy(place, rest.data(), n);
    rest.remove_prefix(n);
    return n;
  });
  Outcome outcome;
  while ((outcome.end = reader.next()) == LogReader::Next::request) {
    std::string request;
    weir::kv::append_request(request, reader.arguments());
    if (file.find(request) == std::string_view::npos) std::abort();
    outcome.requests += request;
  }
  outcome.whole = reader.whole_bytes();
  if (outcome.whole > file.size()) std::abort();
  if (outcome.end == LogReader::Next::end && outcome.whole != file.size()) std::abort();
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!(read(file, file.size() + 1) == read(file, data[0] % 16 + 1))) std::abort();
  return 0;
}
