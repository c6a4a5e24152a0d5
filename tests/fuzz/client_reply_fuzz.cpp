// What a hostile server can send: both readers of replies accept any bytes in any pieces, agree on the number
// of replies and on whether the stream is valid, and do not depend on the splits.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "cli/client/reply.hpp"
#include "cli/client/reply_count.hpp"

namespace {

using namespace weir::client;

struct Read {
  std::vector<Reply> replies;
  bool broken = false;
};

Read read_in_pieces(std::span<const std::byte> bytes, std::size_t piece) {
  ReplyParser parser;
  Read read;
  for (std::size_t at = 0; at < bytes.size() && !read.broken; at += piece) {
    read.broken = !parser.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    while (auto reply = parser.next()) read.replies.push_back(std::move(*reply));
  }
  return read;
}

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto whole = read_in_pieces(bytes, std::max<std::size_t>(size, 1));
  const auto split = read_in_pieces(bytes, 1 + size % 7);
  check(whole.replies == split.replies);
  check(whole.broken == split.broken);

  ReplyCounter counter;
  const auto counted = counter.count(bytes);
  check(counted.has_value() == !whole.broken);
  const auto pushes = std::ranges::count(whole.replies, ReplyType::push, &Reply::type);
  if (counted) check(*counted + static_cast<std::uint64_t>(pushes) == whole.replies.size());
  return 0;
}
