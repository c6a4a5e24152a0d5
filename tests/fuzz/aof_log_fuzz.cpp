// Reads a log file as it may be found on the disk. However its bytes arrive, the reader sees the same
// requests and the same end, and a request is written back as the bytes that it was read from. A log that is
// cut where its whole part ends is whole.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "kv/aof/log_reader.hpp"
#include "kv/aof/log_steps.hpp"
#include "kv/resp/request_text.hpp"

using weir::kv::aof::LogReader;
using weir::kv::aof::LogSteps;

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

// How much of it is whole; `end`: how it ends.
std::uint64_t whole_of(std::string_view file, LogSteps::Next& end) {
  LogSteps steps([&](char* place, std::size_t most) {
    const std::size_t n = file.copy(place, most);
    file.remove_prefix(n);
    return n;
  });
  for (end = steps.next(); end == LogSteps::Next::step || end == LogSteps::Next::part; end = steps.next()) {
  }
  return steps.whole_bytes();
}

void check_cut(std::string_view file) {
  LogSteps::Next end{};
  const std::uint64_t whole = whole_of(file, end);
  if (whole > file.size()) std::abort();
  const std::string_view rest = file.substr(0, whole);
  if (whole_of(rest, end) != whole || end != LogSteps::Next::end) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (!(read(file, file.size() + 1) == read(file, data[0] % 16 + 1))) std::abort();
  check_cut(file);
  return 0;
}
