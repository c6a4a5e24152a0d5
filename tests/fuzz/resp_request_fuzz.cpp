// Parses requests of clients. However the bytes are split, the parser must see the same requests and the same
// error as when they come at once. The first byte chooses the split.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kv/resp/request.hpp"

namespace {

using weir::kv::Argument;
using weir::kv::RequestParser;

struct Outcome {
  std::vector<std::string> words;  // of all requests, each request ended by a marker
  std::string error;
  bool operator==(const Outcome&) const = default;
};

// Feeds the input in pieces of `step` bytes as a client's connection does: kept bytes stay in front, wanted
// ones go where the parser wants them.
Outcome run(std::string_view input, std::size_t step) {
  Outcome outcome;
  RequestParser parser;
  const RequestParser::Limits limits{4 << 20, (input.size() & 1) == 0};
  std::string pending;
  while (!input.empty()) {
    std::string_view piece = input.substr(0, step);
    input.remove_prefix(piece.size());
    for (auto place = parser.wanted(); !place.empty() && !piece.empty(); place = parser.wanted()) {
      const std::size_t direct = std::min(place.size(), piece.size());
      std::memcpy(place.data(), piece.data(), direct);
      parser.filled(direct);
      piece.remove_prefix(direct);
    }
    if (!parser.wanted().empty()) continue;
    pending.append(piece);
    std::size_t used = 0;
    for (;;) {
      const auto status = parser.parse(std::string_view(pending).substr(used), limits);
      if (status == RequestParser::Status::failed) {
        outcome.error = parser.error();
        return outcome;
      }
      if (status == RequestParser::Status::incomplete) {
        pending.resize(used + std::min(parser.kept(), pending.size() - used));
        break;
      }
      for (const Argument& argument : parser.arguments()) outcome.words.emplace_back(argument.text);
      outcome.words.emplace_back("--");
      used += parser.consumed();
      parser.next();
      if (used == pending.size()) break;
    }
    pending.erase(0, used);
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Outcome whole = run(input, input.size() + 1);
  if (!(run(input, data[0] % 64 + 1) == whole)) std::abort();
  return 0;
}
