// What `weir stat` prints: a table for people, JSON and Prometheus text for programs. Pure functions of
// samples.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/weir/stat/nic_watch.hpp"

namespace weir::command {

// What one can sort by: the numbers of the table, in the order of its columns.
std::vector<std::string_view> sort_keys();

struct TableWish {
  std::string sort = "ops";        // one of sort_keys(), "pid" or "command"
  bool queue_pairs = true;         // a line for each, below its process
  std::size_t lines = SIZE_MAX;    // of the screen; what does not fit is said
  std::size_t first = 0;           // so many lines below the titles are scrolled past
  std::size_t columns = SIZE_MAX;  // of the screen: where not all numbers fit, what is wrong is shown first
  bool colour = false;             // yellow: RNRs and retries; red: errors
};
// `before` null: what was counted since each process began. Else per second, between the two samples; RNR,
// RETRY and ERROR, which have no place there, stay sums.
std::string as_table(const Sample& now, const Sample* before, const TableWish&);
// The same for a screen that scrolls: `first` is set back where it is beyond the end.
std::string as_screen(const Sample& now, const Sample* before, TableWish&);
// What each column means, a line each.
std::string columns_explained();
// Operations of all processes per second.
double operations_per_second(const Sample& now, const Sample& before);

// With `before`, also the rates of each process.
std::string as_json(const Sample& now, const Sample* before);

// The text format of Prometheus, version 0.0.4.
std::string as_prometheus(const Sample&);

// At most five characters: 999, 12.3k, 4.56M.
std::string short_number(double value);

}  // namespace weir::command
