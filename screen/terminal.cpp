#include "screen/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "screen/wrap.hpp"

namespace weir::screen {
namespace {

constexpr std::size_t min_columns = 20;  // below it nothing is readable either way

std::size_t stated_columns() {
  const char* const stated = std::getenv("COLUMNS");
  std::size_t columns = 0;
  if (stated) std::from_chars(stated, stated + std::string_view(stated).size(), columns);
  return columns;
}

}  // namespace

std::size_t columns_of(std::FILE* file) {
  std::size_t columns = stated_columns();
  winsize size{};
  if (columns == 0 && ::ioctl(::fileno(file), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns < min_columns ? 0 : columns;
}

void print_wrapped(std::FILE* file, std::string_view text) {
  const std::string shown = wrapped(text, columns_of(file));
  std::fwrite(shown.data(), 1, shown.size(), file);
}

std::string message(std::string_view text) {
  return ::isatty(STDERR_FILENO) ? wrapped(text, columns_of(stderr)) : std::string(text);
}

}  // namespace weir::screen
