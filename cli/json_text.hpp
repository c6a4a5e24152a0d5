// Writes JSON for the programs. Any thread.
//
// JsonText writes one value from front to back, in a layout that the caller chooses: programs need
// JSON, and people need lines. It adds commas, colons, quotes and brackets itself, so the output is
// valid JSON whatever is written.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

// Quotes a string. Names of processes and files may be any bytes; invalid UTF-8 becomes U+FFFD, so that
// every reader accepts the JSON.
std::string json_string(std::string_view text);

class JsonText {
 public:
  JsonText& begin_object() { return begin('{', '}'); }
  JsonText& begin_array() { return begin('[', ']'); }
  JsonText& end();  // ends the innermost object or array

  JsonText& key(std::string_view name);  // within an object, before its value
  JsonText& text(std::string_view value) { return element(json_string(value)); }
  JsonText& boolean(bool value) { return element(value ? "true" : "false"); }
  JsonText& number(std::integral auto value) { return element(std::to_string(value)); }
  JsonText& number(double value, int decimals);  // writes null for infinity and NaN, which JSON lacks

  // Starts a new line with that indentation before the next element or closing bracket.
  JsonText& line(std::size_t indentation);

  // Takes the complete value.
  std::string take() { return std::move(text_); }

 private:
  JsonText& begin(char opening, char closing);
  JsonText& element(std::string_view value);
  void part();  // writes the separator before an element

  std::string text_, closings_, line_;
  bool first_ = true, after_key_ = false;
};

}  // namespace weir
