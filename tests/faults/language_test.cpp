#include "faults/language.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "faults/conditions.hpp"
#include "faults/kinds_of_faults.hpp"
#include "faults/packet_kinds.hpp"

namespace weir::faults {
namespace {

Fault read_one(std::string_view text) {
  const auto plan = read_plan(text);
  EXPECT_TRUE(plan) << text << ": " << (plan ? "" : text_of(plan.error()));
  if (!plan || plan->faults.size() != 1) return {};
  return plan->faults.front();
}

struct Good {
  std::string_view line;
  Act act;
  std::uint64_t amount;
  bool (*holds)(const Where&);
};

TEST(FaultLanguage, good_lines_say_what_they_mean) {
  const Good rows[] = {
      {"drop", Act::drop, 0, [](const Where& p) { return !p.qp && !p.psn && !p.times; }},
      {"drop qp=1 psn=5", Act::drop, 0,
       [](const Where& p) { return p.qp == Range{1, 1} && p.psn == Range{5, 5} && p.times == 1u; }},
      {"drop psn=0..16777215 times=all", Act::drop, 0,
       [](const Where& p) { return p.psn == Range{0, 0xffffff} && *p.times > 1'000'000; }},
      {"drop psn=5", Act::drop, 0, [](const Where& p) { return packet_kinds()[*p.kind].name == "request"; }},
      {"drop psn=5 opcode=any", Act::drop, 0, [](const Where& p) { return !p.kind; }},
      {"drop opcode=rnr-nak", Act::drop, 0,
       [](const Where& p) { return packet_kinds()[*p.kind].name == "rnr-nak"; }},
      {"drop qp=cm", Act::drop, 0, [](const Where& p) { return p.qp == Range{0, 0}; }},
      {"drop rate=1%", Act::drop, 0, [](const Where& p) { return p.rate == 0.01 && !p.times; }},
      {"drop rate=0.5 times=3", Act::drop, 0, [](const Where& p) { return p.rate == 0.5 && p.times == 3u; }},
      {"drop direction=out", Act::drop, 0, [](const Where& p) { return p.direction == Direction::out; }},
      {"drop direction=in", Act::drop, 0, [](const Where& p) { return p.direction == Direction::in; }},
      {"drop direction=any", Act::drop, 0, [](const Where& p) { return !p.direction; }},
      {"drop nth=3..5", Act::drop, 0, [](const Where& p) { return p.nth == Range{3, 5}; }},
      {"drop every=50", Act::drop, 0, [](const Where& p) { return p.every == 50u; }},
      {"drop from=12ms until=1.5s", Act::drop, 0,
       [](const Where& p) { return p.from_ns == 12'000'000u && p.until_ns == 1'500'000'000u; }},
      {"duplicate", Act::duplicate, 1, [](const Where&) { return true; }},
      {"duplicate 2 qp=2..3", Act::duplicate, 2, [](const Where& p) { return p.qp == Range{2, 3}; }},
      {"corrupt", Act::corrupt, 0, [](const Where&) { return true; }},
      {"alter", Act::alter, 0, [](const Where&) { return true; }},
      {"delay 80us", Act::delay, 80'000, [](const Where&) { return true; }},
      {"delay 3600s", Act::delay, 3'600'000'000'000, [](const Where&) { return true; }},
      {"reorder", Act::reorder, 1, [](const Where&) { return true; }},
      {"reorder 3", Act::reorder, 3, [](const Where&) { return true; }},
      {"mark", Act::mark, 0, [](const Where&) { return true; }},
      {"down from=1s until=1.5s", Act::down, 0, [](const Where& p) { return p.from_ns == 1'000'000'000u; }},
      {"refuse ENOMEM call=ibv_post_send nth=7", Act::refuse, ENOMEM,
       [](const Where& p) { return p.call == Call::post_send && p.nth == Range{7, 7}; }},
      {"complete IBV_WC_RETRY_EXC_ERR qp=1", Act::complete, 12,
       [](const Where& p) { return p.qp == Range{1, 1}; }},
      {"pause from=1s", Act::pause, 0, [](const Where& p) { return !p.until_ns; }},
      {"kill from=1s program=ib_*", Act::kill, 0, [](const Where&) { return true; }},
      {"gid-gone gid=0..2 from=1s", Act::gid_gone, 0, [](const Where& p) { return p.gid == Range{0, 2}; }},
      {"qp-error nth=3", Act::qp_error, 0, [](const Where& p) { return p.nth == Range{3, 3}; }},
      {"qp-error qp=1 from=1s", Act::qp_error, 0, [](const Where& p) { return p.from_ns == 1'000'000'000u; }},
      {"rnr", Act::rnr, 0, [](const Where&) { return true; }},
      {"rnr 2ms qp=1 nth=3", Act::rnr, 2'000'000, [](const Where& p) { return p.nth == Range{3, 3}; }},
      {"kill from=1ms", Act::kill, 0, [](const Where& p) { return p.from_ns == 1'000'000u; }},
      {"stop from=1ms", Act::stop, 0, [](const Where& p) { return p.from_ns == 1'000'000u; }},
      {" \tdrop  qp=1 # a remark; drop", Act::drop, 0, [](const Where& p) { return p.qp.has_value(); }},
      {"# first\n\ndrop\r\n", Act::drop, 0, [](const Where&) { return true; }},
  };
  for (const Good& row : rows) {
    const Fault fault = read_one(row.line);
    EXPECT_EQ(fault.act, row.act) << row.line;
    EXPECT_EQ(fault.amount, row.amount) << row.line;
    EXPECT_TRUE(row.holds(fault.where)) << row.line;
  }
}

struct Bad {
  std::string_view text;
  std::size_t line;
  std::string_view word, what;  // what: a part of the sentence
};

TEST(FaultLanguage, bad_lines_name_line_word_and_guess) {
  const Bad rows[] = {
      {"dorp qp=1", 1, "dorp", "'dorp' is no fault; did you mean 'drop'?"},
      {"drop\ndrop psm=5", 2, "psm=5", "'psm' is no condition; did you mean 'psn'?"},
      {"drop qp", 1, "qp", "'qp' wants a value, as in qp=1"},
      {"drop 5", 1, "5", "'5' is no condition"},
      {"drop qp=", 1, "qp=", "wants a number, not ''"},
      {"drop qp=0", 1, "qp=0", "counts from 1"},
      {"drop qp=-1", 1, "qp=-1", "wants a number"},
      {"drop qp=1x", 1, "qp=1x", "wants a number, not '1x'"},
      {"drop qp=1 qp=2", 1, "qp=2", "there twice"},
      {"drop psn=16777216", 1, "psn=16777216", "at most 16777215"},
      {"drop psn=9..5", 1, "psn=9..5", "ends before it begins"},
      {"drop psn=9..", 1, "psn=9..", "wants a number"},
      {"drop nth=0", 1, "nth=0", "counts from 1"},
      {"drop every=0", 1, "every=0", "counts from 1"},
      {"drop nth=1 every=2", 1, "nth", "give one of them"},
      {"drop rate=1% nth=2", 1, "nth", "give one of them"},
      {"drop rate=0", 1, "rate=0", "above 0"},
      {"drop rate=101%", 1, "rate=101%", "up to 1"},
      {"drop rate=nan", 1, "rate=nan", "like 0.01 or 1%"},
      {"drop rate=1ms", 1, "rate=1ms", "like 0.01 or 1%"},
      {"drop times=0", 1, "times", "never fire"},
      {"drop direction=outt", 1, "direction=outt", "did you mean 'out'?"},
      {"drop opcode=akc", 1, "opcode=akc", "did you mean 'ack'?"},
      {"drop from=5ms until=5ms", 1, "until", "not after from="},
      {"drop from=5", 1, "from=5", "wants a time like 80us"},
      {"drop from=-1s", 1, "from=-1s", "wants a time"},
      {"drop until=1e300s", 1, "until=1e300s", "at most 3600s"},
      {"delay", 1, "delay", "wants to know how much, as in delay 80us"},
      {"delay qp=1", 1, "delay", "wants to know how much"},
      {"delay 80", 1, "80", "wants a time like 80us"},
      {"duplicate 0", 1, "0", "at least 1"},
      {"duplicate 17", 1, "17", "at most 16"},
      {"reorder 0", 1, "0", "at least 1"},
      {"reorder 1001", 1, "1001", "at most 1000"},
      {"down", 1, "down", "'down' wants from=, as in down from=1s"},
      {"down from=1s qp=1", 1, "qp=1", "'qp' means nothing for 'down'"},
      {"kill from=1s until=2s", 1, "until=2s", "'until' means nothing for 'kill'"},
      {"refuse ENOMEM", 1, "refuse", "'refuse' wants call="},
      {"refuse ENOMEN call=ibv_reg_mr", 1, "ENOMEN", "did you mean 'ENOMEM'?"},
      {"refuse call=ibv_reg_mr", 1, "refuse", "wants to know how much"},
      {"refuse ENOMEM call=ibv_post_sent", 1, "call=ibv_post_sent", "did you mean 'ibv_post_send'?"},
      {"refuse ENOMEM call=ibv_reg_mr psn=1", 1, "psn=1", "'psn' means nothing for 'refuse'"},
      {"complete IBV_WC_RETRY_EXC", 1, "IBV_WC_RETRY_EXC", "did you mean 'IBV_WC_RETRY_EXC_ERR'?"},
      {"gid-gone gid=0", 1, "gid-gone", "'gid-gone' wants from="},
      {"drop program=", 1, "program=", "wants a name"},
      {"drop gid=0", 1, "gid=0", "'gid' means nothing for 'drop'"},
      {"qp-error qp=1", 1, "qp-error", "wants nth= or from="},
      {"qp-error nth=1 rate=1%", 1, "rate=1%", "'rate' means nothing for 'qp-error'"},
      {"rnr 2", 1, "2", "wants a time like 80us"},
      {"rnr psn=1", 1, "psn=1", "'psn' means nothing for 'rnr'"},
      {"drop call=ibv_reg_mr", 1, "call=ibv_reg_mr", "'call' means nothing for 'drop'"},
      {"seed", 1, "seed", "one number"},
      {"seed x", 1, "x", "wants a number"},
      {"drop; drop ; drpo", 1, "drpo", "did you mean 'drop'?"},
      {"# x\n\n drop\n delya 5us", 4, "delya", "did you mean 'delay'?"},
  };
  for (const Bad& row : rows) {
    const auto plan = read_plan(row.text);
    ASSERT_FALSE(plan) << row.text;
    EXPECT_EQ(plan.error().line, row.line) << row.text;
    EXPECT_EQ(plan.error().word, row.word) << row.text;
    EXPECT_NE(plan.error().what.find(row.what), std::string::npos) << row.text << ": " << plan.error().what;
  }
}

TEST(FaultLanguage, every_example_of_the_list_is_a_fault) {
  for (const auto& kind : kinds_of_faults()) (void)read_one(kind.example);
  for (const auto& condition : conditions())
    (void)read_one((condition.name == "call"  ? "refuse ENOMEM "
                    : condition.name == "gid" ? "gid-gone from=1s "
                                              : "drop ") +
                   std::string(condition.example));
  for (const auto& kind : packet_kinds()) (void)read_one("drop opcode=" + std::string(kind.name));
}

TEST(FaultLanguage, faults_know_their_line_and_text) {
  const auto plan = read_plan("seed 7\n drop  qp=1 # x\n\ndelay 1us; mark\n");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->seed, 7u);
  ASSERT_EQ(plan->faults.size(), 3u);
  EXPECT_EQ(plan->faults[0].text, "drop qp=1");
  EXPECT_EQ(plan->faults[0].line, 2u);
  EXPECT_EQ(plan->faults[2].text, "mark");
  EXPECT_EQ(plan->faults[2].line, 4u);
}

TEST(FaultLanguage, faults_of_other_programs_and_hosts_are_left_out) {
  const auto plan =
      read_plan("drop; drop program=a; drop program=ib_*; drop host=h1; drop program=a host=h*");
  ASSERT_TRUE(plan);
  struct Row {
    std::string_view program, host;
    std::size_t kept;
  };
  for (const Row& row :
       {Row{"a", "h1", 4}, Row{"a", "g1", 2}, Row{"ib_send_bw", "h2", 2}, Row{"aa", "g", 1}}) {
    Plan kept = *plan;
    keep_for(kept, row.program, row.host);
    EXPECT_EQ(kept.faults.size(), row.kept) << row.program << " on " << row.host;
  }
}

TEST(FaultLanguage, refuses_more_faults_than_max_faults) {
  std::string text;
  for (std::size_t i = 0; i < max_faults; ++i) text += "drop\n";
  EXPECT_TRUE(read_plan(text));
  const auto plan = read_plan(text + "drop");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().line, max_faults + 1);
}

}  // namespace
}  // namespace weir::faults
