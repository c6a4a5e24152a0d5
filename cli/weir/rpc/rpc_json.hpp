// JSON for `weir rpc`: arguments to MessagePack, results back, with the names that the server's types have.
// Pure.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::command {

// `schema` is "(...) -> TYPE" (rpc/codec/schema.hpp). Objects may only have fields that its types have; the
// server reads over others. Where it is empty or makes no sense, whatever is JSON is taken.
//
// The arguments as a body. An array is the list of arguments; anything else is the only one. Where the schema
// says bytes, text of hexadecimal digits behind 0x is those, as results show them; where a map's keys are no
// text, each key is JSON in text.
std::expected<std::vector<std::byte>, std::string> body_from_json(std::string_view json,
                                                                  std::string_view schema);

// JSON becomes MessagePack only: why a function of another codec cannot be called with it.
std::optional<std::string> no_json_for(std::string_view function, std::string_view schema,
                                       std::string_view codec);

// A word of the command line as JSON: what it is, if it is JSON, else as text.
std::string json_of_word(const std::string& word);

// One value of a stream that the function reads.
std::expected<std::vector<std::byte>, std::string> item_from_json(std::string_view json,
                                                                  std::string_view schema);

// Does a function of this schema read a stream of its caller's, or write one?
bool takes_stream(std::string_view schema);
bool gives_stream(std::string_view schema);

enum class BodyOf { result, item };
// The result, or an item of a stream (in one line), as JSON. Where the schema is empty or does not fit, the
// value is shown without names.
std::expected<std::string, std::string> json_from_body(std::span<const std::byte> body,
                                                       std::string_view schema, BodyOf part);

}  // namespace weir::command
