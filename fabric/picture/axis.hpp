// Maps values to places on the page, and chooses the values that get a tick.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace weir::fabric {

struct Axis {
  double from = 0, to = 1;
  bool log = false;
  double low = 0, high = 1;  // on the page

  double at(double value) const {
    const double part =
        log ? (std::log10(std::max(value, from)) - std::log10(from)) / (std::log10(to) - std::log10(from))
            : (value - from) / (to - from);
    return low + part * (high - low);
  }

  std::vector<double> ticks() const {
    std::vector<double> list;
    if (log) {
      const double decades = std::log10(to / from);
      constexpr std::size_t few = 3;
      for (double power = std::floor(std::log10(from)); power <= std::log10(to) + 1e-9; ++power)
        for (const double digit : {1.0, 2.0, 5.0}) {
          if (decades > 2.5 && digit != 1) continue;
          const double tick = digit * std::pow(10, power);
          if (tick >= from * 0.999 && tick <= to * 1.001) list.push_back(tick);
        }
      if (list.size() >= few || decades >= 1) return list;
      list.clear();  // within a decade even steps are far enough apart, and there may be no 1, 2 or 5
                     // in it
    }
    const double rough = (to - from) / 6;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
    for (double tick = std::ceil(from / step - 1e-9) * step; tick <= to + step * 1e-9; tick += step)
      list.push_back(tick + 0.0);  // ceil may give -0.0, which would be written as "-0"
    return list;
  }
};

}  // namespace weir::fabric
