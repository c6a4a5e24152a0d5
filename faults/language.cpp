#include "faults/language.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "faults/call_names.hpp"
#include "faults/packet_kinds.hpp"
#include "faults/written_values.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::faults {
namespace {

using Read = std::expected<void, std::string>;  // the error is a sentence without the line

constexpr std::uint64_t max_psn = 0xffffff;
constexpr std::uint64_t max_count = 1'000'000'000'000;
constexpr std::uint64_t max_copies = 16, max_distance = 1000;

// Stores a value that was read, or passes on why it was not.
template <typename Value, typename Into>
Read store(std::expected<Value, std::string> read, Into& into) {
  if (!read) return std::unexpected(read.error());
  into = *read;
  return {};
}

template <typename Items>
std::vector<std::string_view> names_of(const Items& items) {
  std::vector<std::string_view> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

// ---- conditions

Read read_queue_pair(std::string_view value, Fault& fault) {
  if (value == "cm") {
    fault.where.qp = Range{management_qp, management_qp};
    return {};
  }
  return store(range(value, 1, max_count), fault.where.qp);
}

Read read_direction(std::string_view value, Fault& fault) {
  constexpr std::string_view directions[] = {"out", "in", "any"};
  if (value == "out") fault.where.direction = Direction::out;
  if (value == "in") fault.where.direction = Direction::in;
  if (std::ranges::find(directions, value) != std::end(directions)) return {};
  return std::unexpected("is out, in or any, not '" + std::string(value) + "'" +
                         did_you_mean(value, directions));
}

constexpr std::string_view any_kind = "any";

Read read_opcode(std::string_view value, Fault& fault) {
  if (value == any_kind) {
    fault.where.kind.reset();
    return {};
  }
  auto names = names_of(packet_kinds());
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) {
    names.push_back(any_kind);
    return std::unexpected("does not know '" + std::string(value) + "'" + did_you_mean(value, names) +
                           "; weir faults list names them");
  }
  fault.where.kind = static_cast<std::uint8_t>(found - names.begin());
  return {};
}

// A name out of a table of {name, value}.
template <typename Names>
auto named(std::string_view value, const Names& table, std::string_view what)
    -> std::expected<decltype(table.begin()), std::string> {
  const auto names = names_of(table);
  const auto found = std::ranges::find(names, value);
  if (found != names.end()) return table.begin() + (found - names.begin());
  return std::unexpected("wants " + std::string(what) + ", not '" + std::string(value) + "'" +
                         did_you_mean(value, names));
}

Read read_call(std::string_view value, Fault& fault) {
  const auto found = named(value, call_names(), "a call like ibv_post_send");
  if (!found) return std::unexpected(found.error());
  fault.where.call = (*found)->call;
  return {};
}

Read read_times(std::string_view value, Fault& fault) {
  if (value != "all") return store(number(value, max_count), fault.where.times);
  fault.where.times = max_count;
  return {};
}

Read read_every(std::string_view value, Fault& fault) {
  if (auto read = store(number(value, max_count), fault.where.every); !read) return read;
  if (*fault.where.every == 0) return std::unexpected("counts from 1");
  return {};
}

struct ConditionRule {
  Condition shown;
  Read (*read)(std::string_view value, Fault& fault);
};
constexpr ConditionRule condition_rules[] = {
    {{"qp", "the queue pair, by the order in which the program makes them; cm: connection management",
      "qp=1"},
     read_queue_pair},
    {{"psn",
      "the packet sequence number, counted from the queue pair's first; of requests, unless opcode= names "
      "others",
      "psn=5..9"},
     [](std::string_view value, Fault& fault) { return store(range(value, 0, max_psn), fault.where.psn); }},
    {{"direction", "out: it leaves this program, in: it arrives (default any)", "direction=out"},
     read_direction},
    {{"opcode", "the kind of packet (default any)", "opcode=ack"}, read_opcode},
    {{"call", "what refuse is about: ibv_post_send, ibv_post_recv, ibv_reg_mr, ibv_create_qp and others",
      "call=ibv_reg_mr"},
     read_call},
    {{"nth", "of those that meet the conditions so far, counted from 1", "nth=100"},
     [](std::string_view value, Fault& fault) { return store(range(value, 1, max_count), fault.where.nth); }},
    {{"every", "each so many of them", "every=50"}, read_every},
    {{"rate", "a share of them, drawn from the seed", "rate=1%"},
     [](std::string_view value, Fault& fault) { return store(share(value), fault.where.rate); }},
    {{"times", "how often at most, or all; with psn= for each packet (default then 1), else in all",
      "times=3"},
     read_times},
    {{"from", "not before this time since the program's NIC was made", "from=12ms"},
     [](std::string_view value, Fault& fault) { return store(duration(value), fault.where.from_ns); }},
    {{"until", "not from this time on", "until=40ms"},
     [](std::string_view value, Fault& fault) { return store(duration(value), fault.where.until_ns); }},
};

// ---- kinds

enum class Amount : std::uint8_t { none, optional, required };

struct KindRule {
  KindOfFault shown;
  Act act;
  Amount amount;
  Read (*read)(std::string_view word, Fault& fault) = nullptr;  // the amount
  std::uint64_t usual = 0;
  std::string_view required = {};  // a condition
};

Read read_delay(std::string_view word, Fault& fault) { return store(duration(word), fault.amount); }
Read read_copies(std::string_view word, Fault& fault) {
  if (auto read = store(number(word, max_copies), fault.amount); !read) return read;
  return fault.amount != 0 ? Read{} : std::unexpected("wants at least 1 further copy");
}
Read read_distance(std::string_view word, Fault& fault) {
  if (auto read = store(number(word, max_distance), fault.amount); !read) return read;
  return fault.amount != 0 ? Read{} : std::unexpected("wants at least 1 packet to pass");
}

Read read_error(std::string_view word, Fault& fault) {
  const auto found = named(word, error_names(), "an error like ENOMEM");
  if (!found) return std::unexpected(found.error());
  fault.amount = (*found)->number;
  return {};
}
Read read_status(std::string_view word, Fault& fault) {
  const auto found = named(word, status_names(), "a status like IBV_WC_RETRY_EXC_ERR");
  if (!found) return std::unexpected(found.error());
  fault.amount = (*found)->number;
  return {};
}

// Which conditions make sense for a fault.
bool is_allowed(Act act, std::string_view condition) {
  constexpr std::string_view of_time[] = {"from", "until"};
  constexpr std::string_view of_calls[] = {"qp", "nth", "every", "rate", "times", "from", "until"};
  const auto among = [&](const auto& names) {
    return std::ranges::find(names, condition) != std::end(names);
  };
  if (act == Act::kill || act == Act::stop) return condition == "from";
  if (act == Act::down) return among(of_time);
  if (is_about_calls(act)) return among(of_calls) || (act == Act::refuse && condition == "call");
  return condition != "call";
}

constexpr KindRule kind_rules[] = {
    {{"drop", "the packet is lost", "drop qp=1 psn=5"}, Act::drop, Amount::none},
    {{"duplicate", "it comes twice, or so many times more", "duplicate 2 qp=1 nth=10"},
     Act::duplicate,
     Amount::optional,
     read_copies,
     1},
    {{"corrupt", "one of its bits is changed on the way, so that its ICRC is wrong", "corrupt rate=0.1%"},
     Act::corrupt,
     Amount::none},
    {{"delay", "it comes so much later", "delay 80us opcode=ack every=10"},
     Act::delay,
     Amount::required,
     read_delay},
    {{"reorder", "the next packet of its queue pair, or so many, overtake it", "reorder 3 qp=1 psn=7"},
     Act::reorder,
     Amount::optional,
     read_distance,
     1},
    {{"mark", "a switch marks it: congestion experienced", "mark direction=in rate=5%"},
     Act::mark,
     Amount::none},
    {{"down",
      "the port is down: all packets are lost, IBV_EVENT_PORT_ERR, and IBV_EVENT_PORT_ACTIVE at its end",
      "down from=1s until=1.5s"},
     Act::down,
     Amount::none,
     nullptr,
     0,
     "from"},
    {{"refuse", "the call does nothing and returns this error", "refuse ENOMEM call=ibv_post_send nth=7"},
     Act::refuse,
     Amount::required,
     read_error,
     0,
     "call"},
    {{"complete", "what was done completes with this status, and its queue pair is in error",
      "complete IBV_WC_RETRY_EXC_ERR qp=1 nth=3"},
     Act::complete,
     Amount::required,
     read_status},
    {{"kill", "the program is killed (SIGKILL)", "kill from=500ms"},
     Act::kill,
     Amount::none,
     nullptr,
     0,
     "from"},
    {{"stop", "the program is stopped (SIGSTOP), as if it hung", "stop from=500ms"},
     Act::stop,
     Amount::none,
     nullptr,
     0,
     "from"},
};

template <typename Shown, typename Rules>
auto shown_of(const Rules& rules) {
  std::vector<Shown> shown;
  for (const auto& rule : rules) shown.push_back(rule.shown);
  return shown;
}

// ---- lines

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
  const ConditionRule& rule = condition_rules[found - names.begin()];
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
  const KindRule& rule = kind_rules[found - names.begin()];
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

std::span<const KindOfFault> kinds_of_faults() {
  static const auto all = shown_of<KindOfFault>(kind_rules);
  return all;
}

std::span<const Condition> conditions() {
  static const auto all = shown_of<Condition>(condition_rules);
  return all;
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
