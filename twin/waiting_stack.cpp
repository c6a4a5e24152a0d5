#include "twin/waiting_stack.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace weir::twin {
namespace {

constexpr unsigned max_lines = 24;

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return plain != nullptr ? plain.get() : symbol;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

struct Source {
  std::string function, place;  // empty: unknown
};

// A path in single quotes for the shell; the module's name is the program's to choose.
std::string quoted(std::string_view path) {
  std::string text = "'";
  for (const char character : path)
    text += character == '\'' ? std::string("'\\''") : std::string(1, character);
  return text + "'";
}

// What addr2line says; nothing where there is no addr2line, or no debug information.
Source source_of(const std::string& module, std::uint64_t offset) {
  if (::access(module.c_str(), R_OK) != 0) return {};
  const std::string command = fmt::format("addr2line -Cfe {} {:#x} 2>/dev/null", quoted(module), offset);
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(::popen(command.c_str(), "re"), ::pclose);
  if (answer == nullptr) return {};
  std::array<char, 1024> line;
  Source source;
  if (std::fgets(line.data(), line.size(), answer.get()) != nullptr) source.function = line.data();
  if (std::fgets(line.data(), line.size(), answer.get()) != nullptr) source.place = line.data();
  for (std::string* text : {&source.function, &source.place}) {
    while (text->ends_with('\n')) text->pop_back();
    if (text->starts_with("??")) text->clear();
  }
  source.place = file_name(source.place);
  source.place.resize(std::min(source.place.find(" (discriminator"), source.place.size()));
  return source;
}

// What calls main(), or a thread's function.
bool is_beginning(std::string_view function) {
  return function.starts_with("__libc_start") || function == "start_thread" || function.starts_with("clone");
}

}  // namespace

std::string waiting_stack(std::string_view written, std::string_view indent) {
  std::istringstream lines{std::string(written)};
  std::string text;
  unsigned shown = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind, module, symbol;
    std::uint64_t offset = 0;
    words >> kind;
    if (kind == "nic") {
      text += fmt::format("{}{}\n", indent, line.substr(std::min<std::size_t>(line.size(), 4)));
      continue;
    }
    if (kind != "code" || !(words >> module >> std::hex >> offset >> symbol) || shown++ == max_lines)
      continue;
    const Source source = source_of(module, offset);
    std::string function = source.function;
    if (function.empty() && symbol != "?") function = demangled(symbol);
    if (function.empty()) function = fmt::format("{:#x}", offset);
    if (is_beginning(function)) continue;
    text +=
        fmt::format("{}{} ({})\n", indent, function, source.place.empty() ? file_name(module) : source.place);
  }
  return text;
}

}  // namespace weir::twin
