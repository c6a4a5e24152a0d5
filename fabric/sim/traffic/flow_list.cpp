#include "fabric/sim/traffic/flow_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "fabric/topology/quantity.hpp"

namespace weir::fabric::sim {
namespace {

constexpr double largest_flow = 4e12;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const auto comma = line.find(',');
    auto cell = line.substr(0, comma);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ') || cell.ends_with('\r')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == line.npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  Reader(const std::string& file, Complaints& complaints)
      : file_(std::make_shared<const std::string>(file)), complaints_(complaints) {}

  std::vector<FlowRow> read(std::string_view text) {
    std::vector<FlowRow> rows;
    while (!text.empty()) {
      ++line_;
      const auto end = text.find('\n');
      const auto cells = cells_of(text.substr(0, end));
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      if (cells.size() == 1 && cells.front().empty()) continue;
      if (!from_) {
        if (!heading(cells)) return {};
      } else if (auto row = flow(cells)) {
        rows.push_back(std::move(*row));
      }
    }
    if (rows.empty() && complaints_.none())
      complain("no flow in the file", "write a heading, from,to,bytes,start_us, and a line for each flow");
    return rows;
  }

 private:
  using Column = std::optional<std::size_t>;

  void complain(std::string what, std::string fix) {
    complaints_.add({file_, line_, 1}, std::move(what), std::move(fix));
  }

  bool heading(const std::vector<std::string_view>& cells) {
    const auto column = [&](std::initializer_list<std::string_view> names) -> Column {
      for (const auto name : names)
        if (const auto at = std::ranges::find(cells, name); at != cells.end())
          return static_cast<std::size_t>(at - cells.begin());
      return std::nullopt;
    };
    from_ = column({"from", "source"});
    to_ = column({"to", "destination"});
    bytes_ = column({"bytes"});
    start_ = column({"start"});
    start_us_ = column({"start_us"});
    if (from_ && to_ && bytes_) return true;
    complain("the first line names no columns 'from', 'to' and 'bytes'",
             "begin the file with a heading such as from,to,bytes,start_us");
    return false;
  }

  std::optional<FlowRow> flow(const std::vector<std::string_view>& cells) {
    const auto cell = [&](Column column) {
      return column && *column < cells.size() ? cells[*column] : std::string_view();
    };
    FlowRow row{{file_, line_, 1}, std::string(cell(from_)), std::string(cell(to_)), 0, 0};
    const auto bytes = read_quantity(cell(bytes_), Unit::bytes);
    if (!bytes || *bytes < 1 || *bytes > largest_flow) {
      complain(fmt::format("'{}' is no size of a flow", cell(bytes_)), "write a number of bytes, or \"1MB\"");
      return std::nullopt;
    }
    row.bytes = static_cast<std::uint64_t>(*bytes);
    if (!start_ && !start_us_) return row;
    const auto text = cell(start_ ? start_ : start_us_);
    if (text.empty()) return std::nullopt;
    const auto ns = read_quantity(start_ ? std::string(text) : std::string(text) + "us", Unit::nanoseconds);
    if (!ns || *ns < 0 || *ns > longest_run_ns) {
      complain(fmt::format("'{}' is no time of a start", text),
               start_ ? "write a time such as 10us" : "write microseconds, such as 10.5");
      return std::nullopt;
    }
    row.start = from_ns(*ns);
    return row;
  }

  std::shared_ptr<const std::string> file_;
  Complaints& complaints_;
  std::uint32_t line_ = 0;
  Column from_, to_, bytes_, start_, start_us_;
};

}  // namespace

std::vector<FlowRow> read_flow_list(std::string_view text, const std::string& file, Complaints& complaints) {
  return Reader(file, complaints).read(text);
}

}  // namespace weir::fabric::sim
