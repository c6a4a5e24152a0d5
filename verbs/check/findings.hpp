// A finding, and everything that happens with it: it is printed once for each rule and place and counted from
// then on, may be suppressed, goes into the JSON file, and decides the exit status.
//
// Threading: any thread, with any lock of the checker held; nothing here takes another one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verbs/check/place.hpp"
#include "verbs/check/rules.hpp"

namespace weir::check {

class Report {
 public:
  // `what` is the finding in one line; `at`, where the program did it.
  Report(Rule rule, std::string what, const char* done, const Place& at)
      : rule_(rule), what_(std::move(what)) {
    lines_.push_back({done, {}, at});
  }
  Report& fact(std::string label, std::string text) {
    lines_.push_back({std::move(label), std::move(text), std::nullopt});
    return *this;
  }
  Report& place(std::string label, const Place& at) {
    if (at.frames[0] != nullptr) lines_.push_back({std::move(label), {}, at});
    return *this;
  }
  void print() const;

 private:
  struct Line {
    std::string label, text;
    std::optional<Place> at;
  };
  std::string text(const std::vector<std::vector<Frame>>&, std::string_view suppression) const;
  std::string json(const std::vector<std::vector<Frame>>&) const;

  Rule rule_;
  std::string what_;
  std::vector<Line> lines_;
};

struct Findings {
  unsigned long errors = 0, risks = 0, notes = 0, suppressed = 0, repeated = 0;
};
Findings findings();
// In a forked child: what its parent found is not its own.
void forget_findings();
// One write to standard error, so that lines of several processes do not mix.
void print(std::string_view text);

}  // namespace weir::check
