// The rates of the last looks, drawn as one line of bars. Pure: what is drawn depends on what was added.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace weir::command {

class RateHistory {
 public:
  enum class Bars { blocks, ascii };  // eighths of a block need a UTF-8 terminal

  explicit RateHistory(Bars bars) : bars_(bars) {}

  void add(double per_second);
  // "operations/s ▁▃▇█  now 1.2M, highest 3.4M", at most `columns` wide, the newest rate at the right. The
  // highest bar is the highest rate that is drawn. Empty while nothing was added.
  std::string line(std::size_t columns) const;

 private:
  static constexpr std::size_t most = 512;  // more than a terminal is wide
  std::deque<double> rates_;
  Bars bars_;
};

// Whether the environment's locale is one of UTF-8.
bool speaks_utf8();

}  // namespace weir::command
