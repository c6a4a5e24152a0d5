// A terminal that is drawn over again and again, and gives single keys; put back as it was at the end.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

namespace weir::command {

class LiveScreen {
 public:
  LiveScreen();  // standard input and output are terminals
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  static bool possible();
  // What is wider than the screen is cut off; escape sequences take no room.
  void draw(std::string_view text) const;
  std::size_t lines() const;
  // Of the terminal that standard output is; SIZE_MAX where it is none.
  static std::size_t columns();
  // The key that was pressed within that time; none: time is over. 'q' also when a signal asks to end. Arrows
  // and the keys beside them come as vi's and less's letters: k j, b and space, g G.
  std::optional<char> key(std::chrono::milliseconds limit) const;

 private:
  termios before_{};
};

}  // namespace weir::command
