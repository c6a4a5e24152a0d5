// JSON for those who have no types of their own: `weir rpc` and the HTTP gateway. Converts arguments to
// MessagePack and results back, with the names of the server's types. Pure.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rpc::json {

// `schema` is "(...) -> TYPE" (rpc/codec/schema.hpp). Objects may only have fields that its types have,
// although the server would skip others. If it is empty or invalid, any JSON is accepted.
//
// Makes a body of the arguments. An array is the list of arguments; anything else is the only argument. Where
// the schema says bytes, "0x" and hexadecimal digits stand for bytes, as results show them. Where map keys
// are not text, each key is JSON within text.
std::expected<std::vector<std::byte>, std::string> body_from_json(std::string_view json,
                                                                  std::string_view schema);

// Why JSON cannot be given to this function: JSON becomes MessagePack, and its codec is another one.
std::optional<std::string> no_json_for(std::string_view function, std::string_view schema,
                                       std::string_view codec);

// A word of the command line as JSON: unchanged if it is JSON, else as text.
std::string json_of_word(const std::string& word);

// Encodes one value of a stream that the function reads.
std::expected<std::vector<std::byte>, std::string> item_from_json(std::string_view json,
                                                                  std::string_view schema);

// Whether a function with this schema reads a stream from its caller, or writes one.
bool takes_stream(std::string_view schema);
bool gives_stream(std::string_view schema);

enum class BodyOf { result, item };
enum class Layout { for_people, one_line };
// The result, or an item of a stream (always in one line), as JSON. If the schema is empty or does not fit,
// the value is shown without names.
std::expected<std::string, std::string> json_from_body(std::span<const std::byte> body,
                                                       std::string_view schema, BodyOf part,
                                                       Layout layout = Layout::for_people);

}  // namespace weir::rpc::json
