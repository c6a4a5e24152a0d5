#include "cli/client/reply.hpp"

#include <algorithm>
#include <utility>

namespace weir::client {

std::optional<Reply> ReplyParser::next() {
  if (builder_.whole.empty()) return std::nullopt;
  auto reply = std::move(builder_.whole.front());
  builder_.whole.pop_front();
  return reply;
}

void ReplyParser::Builder::scalar(char type, std::string_view text) {
  place(Reply{static_cast<ReplyType>(type), std::string(text), {}});
}

void ReplyParser::Builder::bulk_begin(char type, std::uint64_t bytes) {
  bulk = Reply{type == '!' ? ReplyType::error : static_cast<ReplyType>(type), {}, {}};
  // Beyond this, memory grows only with the bytes that arrive.
  bulk.text.reserve(std::min<std::uint64_t>(bytes, 64 * 1024));
}

void ReplyParser::Builder::bulk_end() {
  constexpr std::size_t mark = 4;  // "txt:" or "mkd:"
  if (bulk.type == ReplyType::verbatim && bulk.text.size() >= mark && bulk.text[mark - 1] == ':')
    bulk.text.erase(0, mark);
  place(std::move(bulk));
}

void ReplyParser::Builder::aggregate(char type, std::uint64_t count) {
  const bool attribute = type == '|';
  const auto elements = attribute || type == '%' ? 2 * count : count;
  Reply reply{attribute ? ReplyType::map : static_cast<ReplyType>(type), {}, {}};
  if (elements == 0) {
    if (!attribute) place(std::move(reply));
    return;
  }
  reply.elements.reserve(std::min<std::uint64_t>(elements, 256));
  open.push_back({std::move(reply), elements, attribute});
}

void ReplyParser::Builder::place(Reply&& reply) {
  Reply value = std::move(reply);
  while (!open.empty()) {
    auto& parent = open.back();
    parent.reply.elements.push_back(std::move(value));
    if (--parent.missing > 0) return;
    const bool attribute = parent.attribute;
    value = std::move(parent.reply);
    open.pop_back();
    if (attribute) return;
  }
  whole.push_back(std::move(value));
}

}  // namespace weir::client
