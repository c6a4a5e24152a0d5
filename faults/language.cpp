#include "faults/language.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "faults/conditions.hpp"
#include "faults/kinds_of_faults.hpp"
#include "faults/written_values.hpp"

namespace weir::faults {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view blanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(blanks); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

struct Complaint {
  std::string_view word;
  std::string what;
};

std::expected<void, Complaint> read_condition(std::string_view word, Fault& fault,
                                              std::set<std::string_view>& seen) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const auto names = names_of(conditions());
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    return std::unexpected(
        Complaint{word, "'" + std::string(name) + "' is no condition" + did_you_mean(name, names)});
  if (equals == word.npos)
    return std::unexpected(Complaint{
        word, "'" + std::string(name) + "' wants a value, as in " +
                  std::string(conditions()[static_cast<std::size_t>(found - names.begin())].example)});
  if (!is_allowed(fault.act, name))
    return std::unexpected(Complaint{word, "'" + std::string(name) + "' means nothing for '" +
                                               fault.text.substr(0, fault.text.find(' ')) + "'"});
  if (!seen.insert(name).second)
    return std::unexpected(Complaint{word, "'" + std::string(name) + "' is there twice"});
  const ConditionRule& rule = condition_rules()[static_cast<std::size_t>(found - names.begin())];
  if (const auto read = rule.read(word.substr(equals + 1), fault); !read)
    return std::unexpected(Complaint{word, std::string(name) + "= " + read.error()});
  return {};
}

// Conditions that mean nothing together, and what is meant where nothing is said.
std::expected<void, Complaint> settle(Fault& fault, const std::set<std::string_view>& seen) {
  Where& where = fault.where;
  const auto conflict = [&](std::string_view one, std::string_view other) {
    return seen.contains(one) && seen.contains(other);
  };
  for (const auto& [one, other] :
       {std::pair{"nth", "every"}, std::pair{"nth", "rate"}, std::pair{"every", "rate"}})
    if (conflict(one, other))
      return std::unexpected(
          Complaint{one, std::string(one) + "= and " + other + "= both choose packets; give one of them"});
  if (where.from_ns && where.until_ns && *where.until_ns <= *where.from_ns)
    return std::unexpected(Complaint{"until", "until= is not after from="});
  if (fault.act == Act::qp_error && !where.nth && !where.from_ns)
    return std::unexpected(
        Complaint{"qp-error", "'qp-error' wants nth= or from=, as in qp-error qp=1 nth=3"});
  if (where.times == 0u) return std::unexpected(Complaint{"times", "times=0 would never fire"});
  if (where.psn && !seen.contains("opcode")) (void)read_opcode("request", fault);
  if (where.psn && !where.times && !where.rate) where.times = 1;
  return {};
}

std::expected<Fault, Complaint> read_fault(std::span<const std::string_view> words) {
  const auto names = names_of(kinds_of_faults());
  const std::string_view name = words.front();
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    return std::unexpected(Complaint{name, "'" + std::string(name) + "' is no fault" +
                                               did_you_mean(name, names) + "; weir faults list shows them"});
  const KindRule& rule = kind_rules()[static_cast<std::size_t>(found - names.begin())];
  Fault fault{.act = rule.act, .amount = rule.usual, .where = {}, .text = {}};
  for (const std::string_view word : words) fault.text += (fault.text.empty() ? "" : " ") + std::string(word);
  auto rest = words.subspan(1);
  const bool has_amount = !rest.empty() && rest.front().find('=') == std::string_view::npos;
  if (rule.amount == Amount::required && !has_amount)
    return std::unexpected(Complaint{name, "'" + std::string(name) + "' wants to know how much, as in " +
                                               std::string(rule.shown.example)});
  if (rule.amount != Amount::none && has_amount) {
    if (const auto read = rule.read(rest.front(), fault); !read)
      return std::unexpected(Complaint{rest.front(), std::string(name) + " " + read.error()});
    rest = rest.subspan(1);
  }
  std::set<std::string_view> seen;
  for (const std::string_view word : rest)
    if (const auto read = read_condition(word, fault, seen); !read) return std::unexpected(read.error());
  if (!rule.required.empty() && !seen.contains(rule.required))
    return std::unexpected(Complaint{name, "'" + std::string(name) + "' wants " + std::string(rule.required) +
                                               "=, as in " + std::string(rule.shown.example)});
  if (const auto settled = settle(fault, seen); !settled) return std::unexpected(settled.error());
  return fault;
}

std::expected<std::uint64_t, Complaint> read_seed(std::span<const std::string_view> words) {
  if (words.size() != 2)
    return std::unexpected(Complaint{words.front(), "'seed' wants one number, as in seed 42"});
  const auto seed = number(words[1], UINT64_MAX);
  if (!seed) return std::unexpected(Complaint{words[1], "seed " + seed.error()});
  return *seed;
}

std::expected<void, Complaint> read_line(std::span<const std::string_view> words, Plan& plan) {
  if (words.front() == "seed") {
    const auto seed = read_seed(words);
    if (!seed) return std::unexpected(seed.error());
    plan.seed = *seed;
    return {};
  }
  if (plan.faults.size() == max_faults)
    return std::unexpected(
        Complaint{words.front(), "there are more than " + std::to_string(max_faults) + " faults"});
  auto fault = read_fault(words);
  if (!fault) return std::unexpected(fault.error());
  plan.faults.push_back(std::move(*fault));
  return {};
}

}  // namespace

std::string text_of(const Mistake& mistake) {
  return "line " + std::to_string(mistake.line) + ": " + mistake.what;
}

std::expected<Plan, Mistake> read_plan(std::string_view text) {
  Plan plan;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    rest = rest.substr(0, rest.find('#'));
    while (!rest.empty()) {
      const std::size_t semicolon = std::min(rest.find(';'), rest.size());
      const auto words = words_of(rest.substr(0, semicolon));
      rest.remove_prefix(std::min(semicolon + 1, rest.size()));
      if (words.empty()) continue;
      if (const auto read = read_line(words, plan); !read)
        return std::unexpected(Mistake{line, std::string(read.error().word), read.error().what});
      if (!plan.faults.empty() && plan.faults.back().line == 0) plan.faults.back().line = line;
    }
  }
  return plan;
}

}  // namespace weir::faults
