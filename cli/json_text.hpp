// JSON, for what the programs write. Any thread.
//
// JsonText writes one value from front to back, in the layout that the caller gives: programs that read it
// want JSON, and people who look at it lines. Commas, colons, quotes and brackets are its own, so that what
// it writes is JSON whatever is written.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

// In quotes. Names of processes and files are any bytes: those that are no UTF-8 become U+FFFD, so that
// whoever reads the JSON can.
std::string json_string(std::string_view text);

class JsonText {
 public:
  JsonText& begin_object() { return begin('{', '}'); }
  JsonText& begin_array() { return begin('[', ']'); }
  JsonText& end();  // of the innermost that was begun

  JsonText& key(std::string_view name);  // within an object, before its value
  JsonText& text(std::string_view value) { return element(json_string(value)); }
  JsonText& boolean(bool value) { return element(value ? "true" : "false"); }
  JsonText& number(std::integral auto value) { return element(std::to_string(value)); }
  JsonText& number(double value, int decimals);  // null where it is none: JSON has no infinity

  // The next element, or the bracket that ends, begins a line, so far from its left.
  JsonText& line(std::size_t indentation);

  // Of the value, which is whole.
  std::string take() { return std::move(text_); }

 private:
  JsonText& begin(char opening, char closing);
  JsonText& element(std::string_view value);
  void part();  // what stands between the last element and the next

  std::string text_, closings_, line_;
  bool first_ = true, after_key_ = false;
};

}  // namespace weir
