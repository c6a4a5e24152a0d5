#include "rpc/codec/enumerators.hpp"

#include <cstddef>

namespace weir::rpc {
namespace {

// Up to the next comma that is not within brackets, as of a template's arguments.
std::string_view take_one(std::string_view& rest) {
  int depth = 0;
  std::size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (depth < 0 || (c == ',' && depth == 0)) break;
  }
  const std::string_view one = rest.substr(0, at);
  rest.remove_prefix(at);
  return one;
}

}  // namespace

// GCC: "... [with E = State; E ...Values = {State::open, (State)1}; ...]", clang: "[E = State, Values =
// <State::open, (State)1>]".
std::string enumerators_text(std::string_view spelled, int first) {
  const std::size_t begin = spelled.find("Values = ");
  if (begin == std::string_view::npos) return {};
  std::string_view rest = spelled.substr(begin + std::string_view("Values = {").size());
  std::string text;
  for (int number = first;; ++number) {
    while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    std::string_view one = take_one(rest);
    if (!one.empty() && one.front() != '(') {
      one.remove_prefix(one.rfind(':') + 1);
      text.append(text.empty() ? "" : ", ").append(one).append(" = ").append(std::to_string(number));
    }
    if (rest.empty() || rest.front() != ',') return text;
    rest.remove_prefix(1);
  }
}

}  // namespace weir::rpc
