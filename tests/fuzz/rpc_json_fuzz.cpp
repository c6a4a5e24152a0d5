// What `weir rpc` and the HTTP gateway make of a server's answer: the server's types, a zero byte, and the
// result's body. The output is JSON for any input. The first part also serves as a user's JSON, which becomes
// one MessagePack array.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "rpc/codec/msgpack.hpp"
#include "rpc/json/json_body.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = std::min(input.find('\0'), size);
  const std::string_view text = input.substr(0, zero);
  const std::string_view rest = input.substr(std::min(zero + 1, size));
  const auto body = std::as_bytes(std::span(rest.data(), rest.size()));

  for (const auto part : {weir::rpc::json::BodyOf::result, weir::rpc::json::BodyOf::item}) {
    const auto plain = weir::rpc::json::json_from_body(body, "", part);
    const auto named = weir::rpc::json::json_from_body(body, text, part);
    if (plain.has_value() != named.has_value()) std::abort();
    if (named && nlohmann::json::parse(*named, nullptr, false).is_discarded()) std::abort();
  }

  static_cast<void>(weir::rpc::json::body_from_json(rest, text));
  static_cast<void>(weir::rpc::json::item_from_json(rest, text));
  if (const auto arguments = weir::rpc::json::body_from_json(text, "")) {
    weir::rpc::MsgpackReader reader(*arguments);
    std::size_t elements = 0;
    if (!reader.array(elements)) std::abort();
    for (std::size_t i = 0; i < elements; ++i)
      if (!reader.skip()) return 0;  // nested deeper than a server takes
    if (!reader.at_end()) std::abort();
  }
  return 0;
}
