#include "fabric/sim/traffic/goal_trace.hpp"

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace weir::fabric::sim {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::uint64_t largest_message = 4'000'000'000'000;
constexpr std::uint64_t longest_calc_ns = 1'000'000'000'000;

Words words_of(std::string_view line) {
  Words words;
  constexpr std::string_view blanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(blanks); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

std::optional<std::uint64_t> number(std::string_view word, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value > most) return std::nullopt;
  return value;
}

// A send or a receive that has not met its other half.
struct Half {
  std::uint32_t step;  // of a send its flow, of a receive its pause
  std::uint32_t line;
};
struct Route {
  std::uint32_t from, to;
  std::uint64_t tag;
  auto operator<=>(const Route&) const = default;
};

class GoalReader {
 public:
  GoalReader(const std::string& file, std::span<const std::uint32_t> hosts, Complaints& complaints)
      : file_(std::make_shared<const std::string>(file)), hosts_(hosts), complaints_(complaints) {}

  Trace read(std::string_view text) {
    while (!text.empty() && complaints_.none()) {
      ++line_;
      const auto end = text.find('\n');
      const auto words = words_of(text.substr(0, end));
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
      if (!words.empty() && !words.front().starts_with("//") && !words.front().starts_with('#')) read(words);
    }
    if (complaints_.none()) check_end();
    return complaints_.none() ? std::move(trace_) : Trace();
  }

 private:
  void complain(std::string what, std::string fix) {
    complaints_.add({file_, line_, 1}, std::move(what), std::move(fix));
  }

  void read(const Words& words) {
    if (words[0] == "num_ranks") return read_ranks(words);
    if (words[0] == "rank") return begin_rank(words);
    if (words[0] == "}") {
      rank_.reset();
      labels_.clear();
      return;
    }
    if (!rank_)
      return complain(fmt::format("'{}' is outside of a rank", words[0]), "write rank 0 { before it");
    if (words.size() == 3 && words[1] == "requires") return require(words[0], words[2]);
    if (words.size() == 3 && words[1] == "irequires")
      return complain("irequires cannot be replayed", "write requires");
    operation(words);
  }

  void read_ranks(const Words& words) {
    const auto count = words.size() == 2 ? number(words[1], 1u << 24) : std::nullopt;
    if (!count || *count == 0) return complain("num_ranks names no number of ranks", "write num_ranks 16");
    if (*count > hosts_.size())
      return complain(fmt::format("{} ranks are more than the {} hosts", *count, hosts_.size()),
                      "name as many hosts, or take a larger network");
    ranks_ = static_cast<std::uint32_t>(*count);
  }

  void begin_rank(const Words& words) {
    const auto rank = words.size() == 3 && words[2] == "{" ? rank_number(words[1]) : std::nullopt;
    if (ranks_ == 0) return complain("the file does not begin with num_ranks", "write num_ranks 16");
    if (!rank)
      return complain("this begins no rank", fmt::format("write rank 0 {{, up to rank {}", ranks_ - 1));
    if (rank_) return complain(fmt::format("rank {} has not ended", *rank_), "write } before the next rank");
    rank_ = rank;
  }

  std::optional<std::uint32_t> rank_number(std::string_view word) const {
    const auto value = number(word, std::uint64_t{ranks_} - 1);
    return ranks_ > 0 && value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
  }

  void operation(Words words) {
    std::string_view label;
    if (words.front().ends_with(':')) {
      label = words.front().substr(0, words.front().size() - 1);
      words.erase(words.begin());
    }
    std::optional<std::uint32_t> step;
    if (words.size() >= 2 && words[0] == "calc")
      step = calc(words);
    else if (words.size() >= 4 && (words[0] == "send" || words[0] == "recv"))
      step = message(words);
    else
      complain("this is no operation",
               "write calc NS, send BYTESb to RANK tag N, or recv BYTESb from RANK tag N");
    if (!step || label.empty()) return;
    if (!labels_.emplace(label, *step).second)
      complain(fmt::format("the label '{}' is there twice", label), "give each operation of a rank its own");
  }

  std::uint32_t add_pause(Ticks length) {
    trace_.pauses.push_back(length);
    return static_cast<std::uint32_t>(trace_.pauses.size() - 1) | pause_bit;
  }

  std::optional<std::uint32_t> calc(const Words& words) {
    const auto ns = number(words[1], longest_calc_ns);
    if (!ns) {
      complain(fmt::format("'{}' is no time to compute", words[1]), "write nanoseconds, such as calc 1000");
      return std::nullopt;
    }
    return add_pause(*ns * ticks_per_ns);
  }

  std::optional<std::uint32_t> message(const Words& words) {
    const bool sends = words[0] == "send";
    std::string_view size = words[1];
    if (size.ends_with('b')) size.remove_suffix(1);
    const auto bytes = number(size, largest_message);
    const auto peer = words[2] == (sends ? "to" : "from") ? rank_number(words[3]) : std::nullopt;
    std::optional<std::uint64_t> tag = 0;
    for (std::size_t i = 4; i + 1 < words.size(); i += 2)
      if (words[i] == "tag") tag = number(words[i + 1], ~std::uint64_t{0});
    if (!bytes || !peer || !tag || *peer == *rank_) {
      complain(fmt::format("this {}s nothing", words[0]),
               sends ? "write send BYTESb to RANK tag N, to another rank"
                     : "write recv BYTESb from RANK tag N, from another rank");
      return std::nullopt;
    }
    const Route route{sends ? *rank_ : *peer, sends ? *peer : *rank_, *tag};
    std::uint32_t step;
    if (sends) {
      step = static_cast<std::uint32_t>(trace_.flows.size());
      trace_.flows.push_back({hosts_[route.from], hosts_[route.to], std::max<std::uint64_t>(*bytes, 1), 0});
    } else {
      step = add_pause(0);
    }
    auto& others = sends ? receives_[route] : sends_[route];
    if (others.empty()) {
      (sends ? sends_ : receives_)[route].push_back({step, line_});
    } else {
      const std::uint32_t other = others.front().step;
      others.pop_front();
      trace_.order.push_back(sends ? Precedence{step, other} : Precedence{other, step});
    }
    return step;
  }

  void require(std::string_view after, std::string_view before) {
    for (const auto label : {after, before})
      if (!labels_.contains(std::string(label)))
        return complain(fmt::format("no operation of rank {} has the label '{}'", *rank_, label),
                        "label it above this line");
    trace_.order.push_back({labels_.at(std::string(before)), labels_.at(std::string(after))});
  }

  void check_end() {
    if (rank_) return complain(fmt::format("rank {} has not ended", *rank_), "write }");
    if (trace_.flows.empty()) return complain("nothing is sent", "write rank 0 { and a send in it");
    for (const bool sends : {true, false})
      for (const auto& [route, halves] : sends ? sends_ : receives_)
        for (const Half& half : halves) {
          line_ = half.line;
          return complain(fmt::format("rank {} {} of rank {} with tag {}, which {}", route.to,
                                      sends ? "receives nothing" : "receives", route.from, route.tag,
                                      sends ? "sends it" : "does not send it"),
                          "each send needs a recv with its tag, and each recv a send");
        }
  }

  const std::shared_ptr<const std::string> file_;
  const std::span<const std::uint32_t> hosts_;
  Complaints& complaints_;
  Trace trace_;
  std::uint32_t line_ = 0, ranks_ = 0;
  std::optional<std::uint32_t> rank_;
  std::unordered_map<std::string, std::uint32_t> labels_;  // of this rank
  std::map<Route, std::deque<Half>> sends_, receives_;
};

}  // namespace

Trace read_goal_trace(std::string_view text, const std::string& file, std::span<const std::uint32_t> hosts,
                      Complaints& complaints) {
  return GoalReader(file, hosts, complaints).read(text);
}

}  // namespace weir::fabric::sim
