#include "cli/shell/reply_text.hpp"

#include <fmt/format.h>

#include "cli/shell/quoting.hpp"

namespace weir::shell {
namespace {

using client::Reply;
using client::ReplyType;

std::string boolean_word(const Reply& reply) { return reply.text == "t" ? "true" : "false"; }

std::string_view empty_text(ReplyType type) {
  switch (type) {
    case ReplyType::map:
      return "(empty hash)\n";
    case ReplyType::set:
      return "(empty set)\n";
    case ReplyType::push:
      return "(empty push)\n";
    default:
      return "(empty array)\n";
  }
}

// The number of elements that get a number of their own.
std::size_t lines_of(const Reply& reply) {
  return reply.type == ReplyType::map ? reply.elements.size() / 2 : reply.elements.size();
}

char separator_of(ReplyType type) {
  return type == ReplyType::set ? '~' : type == ReplyType::map ? '#' : ')';
}

std::string formatted(const Reply& reply, const std::string& prefix);

// Numbered elements, with nested ones indented below their number; maps as key => value.
std::string formatted_elements(const Reply& reply, const std::string& prefix) {
  const bool map = reply.type == ReplyType::map;
  const auto count = lines_of(reply);
  if (count == 0) return std::string(empty_text(reply.type));
  const auto width = std::to_string(count).size();
  const auto inner = prefix + std::string(width + 2, ' ');
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    // The parent has already indented the line of the first element.
    text += fmt::format("{}{:>{}}{} ", i ? prefix : "", i + 1, width, separator_of(reply.type));
    text += formatted(reply.elements[map ? 2 * i : i], inner);
    if (!map) continue;
    text.pop_back();
    text += " => ";
    const auto& value = reply.elements[2 * i + 1];
    if (lines_of(value) > 1) text += "\n" + inner;
    text += formatted(value, inner);
  }
  return text;
}

std::string formatted(const Reply& reply, const std::string& prefix) {
  switch (reply.type) {
    case ReplyType::error:
      return "(error) " + reply.text + "\n";
    case ReplyType::status:
    case ReplyType::verbatim:
      return reply.text + "\n";
    case ReplyType::integer:
      return "(integer) " + reply.text + "\n";
    case ReplyType::real:
      return "(double) " + reply.text + "\n";
    case ReplyType::big_number:
      return "(big number) " + reply.text + "\n";
    case ReplyType::boolean:
      return "(" + boolean_word(reply) + ")\n";
    case ReplyType::null:
      return "(nil)\n";
    case ReplyType::string:
      return quoted(reply.text) + "\n";
    case ReplyType::array:
    case ReplyType::set:
    case ReplyType::push:
    case ReplyType::map:
      break;
  }
  return formatted_elements(reply, prefix);
}

std::string raw(const Reply& reply, const std::string& delimiter) {
  switch (reply.type) {
    case ReplyType::null:
      return {};
    case ReplyType::error:
      return reply.text + "\n";
    case ReplyType::boolean:
      return "(" + boolean_word(reply) + ")";
    default:
      break;
  }
  if (!reply.is_aggregate()) return reply.text;
  const bool map = reply.type == ReplyType::map;
  std::string text;
  for (std::size_t i = 0; i < reply.elements.size(); ++i) {
    if (i > 0) text += map && i % 2 ? std::string(" ") : delimiter;
    text += raw(reply.elements[i], delimiter);
  }
  return text;
}

std::string csv(const Reply& reply) {
  switch (reply.type) {
    case ReplyType::error:
      return "ERROR," + quoted(reply.text);
    case ReplyType::status:
    case ReplyType::string:
    case ReplyType::verbatim:
      return quoted(reply.text);
    case ReplyType::null:
      return "NULL";
    case ReplyType::boolean:
      return boolean_word(reply);
    default:
      break;
  }
  if (!reply.is_aggregate()) return reply.text;
  std::string text;
  for (const auto& element : reply.elements) text += (text.empty() ? "" : ",") + csv(element);
  return text;
}

// As quoted(), with every backslash doubled, because JSON has no \x.
std::string twice_quoted(std::string_view text) {
  std::string out;
  for (const char c : quoted(text)) out.append(c == '\\' ? 2 : 1, c);
  return out;
}

std::string json(const Reply& reply, std::string (*quote)(std::string_view));

std::string json_members(const Reply& reply, std::string (*quote)(std::string_view)) {
  std::string text = "{";
  for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
    const auto& key = reply.elements[i];
    // JSON's keys are strings: another key is written as the text of its JSON.
    const bool text_key = key.type == ReplyType::string || key.type == ReplyType::status ||
                          key.type == ReplyType::error || key.type == ReplyType::verbatim;
    if (i > 0) text += ',';
    text += text_key ? json(key, quote) : quote(json(key, quote));
    text += ':';
    text += json(reply.elements[i + 1], quote);
  }
  return text + "}";
}

std::string json(const Reply& reply, std::string (*quote)(std::string_view)) {
  switch (reply.type) {
    case ReplyType::error:
      return "error:" + quote(reply.text);  // not JSON, so that nobody takes it for a value
    case ReplyType::status:
    case ReplyType::string:
    case ReplyType::verbatim:
      return quote(reply.text);
    case ReplyType::null:
      return "null";
    case ReplyType::boolean:
      return boolean_word(reply);
    case ReplyType::integer:
    case ReplyType::real:
    case ReplyType::big_number:
      return reply.text;
    case ReplyType::map:
      return json_members(reply, quote);
    case ReplyType::array:
    case ReplyType::set:
    case ReplyType::push:
      break;
  }
  std::string text = "[";
  for (std::size_t i = 0; i < reply.elements.size(); ++i)
    text += (i ? "," : "") + json(reply.elements[i], quote);
  return text + "]";
}

}  // namespace

std::string reply_text(const client::Reply& reply, Output output, const Delimiters& delimiters, bool prose) {
  if (prose) return raw(reply, delimiters.element);
  switch (output) {
    case Output::formatted:
      return formatted(reply, "");
    case Output::raw:
      break;
    case Output::csv:
      return csv(reply) + "\n";
    case Output::json:
      return json(reply, json_quoted) + "\n";
    case Output::quoted_json:
      return json(reply, twice_quoted) + "\n";
  }
  return raw(reply, delimiters.element) + delimiters.reply;
}

bool answers_in_prose(const std::vector<std::string>& command) {
  struct Prose {
    std::string_view command;
    std::string_view subcommand;  // empty: any or none
  };
  constexpr Prose known[] = {{"info", ""},
                             {"lolwut", ""},
                             {"debug", "htstats"},
                             {"debug", "htstats-key"},
                             {"memory", "malloc-stats"},
                             {"memory", "doctor"},
                             {"cluster", "nodes"},
                             {"cluster", "info"},
                             {"client", "list"},
                             {"client", "info"},
                             {"latency", "graph"},
                             {"latency", "doctor"}};
  for (const auto& entry : known)
    if (same_word(command.front(), entry.command) &&
        (entry.subcommand.empty() || (command.size() > 1 && same_word(command[1], entry.subcommand))))
      return true;
  return false;
}

}  // namespace weir::shell
