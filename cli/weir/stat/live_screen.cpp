#include "cli/weir/stat/live_screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

namespace weir::command {
namespace {

std::atomic<bool> asked_to_end{false};
void note_end(int) { asked_to_end = true; }

constexpr std::string_view other_screen = "\x1b[?1049h\x1b[?25l", own_screen = "\x1b[?25h\x1b[?1049l";

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t took = ::write(STDOUT_FILENO, text.data(), text.size());
    if (took < 0 && errno != EINTR) return;
    if (took > 0) text.remove_prefix(static_cast<std::size_t>(took));
  }
}

// What terminals send for keys that have no character; a terminal may have either form of some.
constexpr std::pair<std::string_view, char> sequences[] = {
    {"\x1b[A", 'k'}, {"\x1bOA", 'k'}, {"\x1b[B", 'j'},  {"\x1bOB", 'j'}, {"\x1b[5~", 'b'}, {"\x1b[6~", ' '},
    {"\x1b[H", 'g'}, {"\x1bOH", 'g'}, {"\x1b[1~", 'g'}, {"\x1b[F", 'G'}, {"\x1bOF", 'G'},  {"\x1b[4~", 'G'}};

winsize screen_size() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row != 0 && size.ws_col != 0;
  return known ? size : winsize{24, 80, 0, 0};
}

}  // namespace

bool LiveScreen::possible() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

LiveScreen::LiveScreen() {
  struct sigaction action{};
  action.sa_handler = note_end;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::tcgetattr(STDIN_FILENO, &before_);
  termios single_keys = before_;
  single_keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &single_keys);
  put(other_screen);
}

LiveScreen::~LiveScreen() {
  put(own_screen);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

std::size_t LiveScreen::lines() const { return screen_size().ws_row; }

std::size_t LiveScreen::columns() {
  return ::isatty(STDOUT_FILENO) == 1 ? std::size_t{screen_size().ws_col} : SIZE_MAX;
}

void LiveScreen::draw(std::string_view text) const {
  std::string out = "\x1b[H";
  const std::size_t width = screen_size().ws_col;
  std::size_t column = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b' || escape) {  // to the letter that ends it
      out += c;
      escape = c < 'A' || c > 'z' || c == '[';
    } else if (c == '\n') {
      out += "\x1b[K\n";
      column = 0;
    } else if (const bool goes_on = (static_cast<unsigned char>(c) & 0xc0) == 0x80;  // of a UTF-8 character
               goes_on ? column <= width : column++ < width) {
      out += c;
    }
  }
  if (out.ends_with('\n')) out.pop_back();  // or the last line of a full screen would scroll
  put(out + "\x1b[J");
}

std::optional<char> LiveScreen::key(std::chrono::milliseconds limit) const {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = ::poll(&input, 1, static_cast<int>(limit.count()));
  if (asked_to_end) return 'q';
  if (ready <= 0) return std::nullopt;
  char pressed[8];
  const ssize_t got = ::read(STDIN_FILENO, pressed, sizeof pressed);
  if (got <= 0) return 'q';
  const std::string_view bytes(pressed, static_cast<std::size_t>(got));
  for (const auto& [sequence, letter] : sequences)
    if (bytes == sequence) return letter;
  return bytes[0] == '\x1b' ? '\0' : bytes[0];
}

}  // namespace weir::command
