// Each rule names its wrong program, with the line, and says nothing about the right neighbour.
#include "verbs/check/rules.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/check/checked_program.hpp"

namespace weir::check_test {
namespace {

struct Row {
  std::string program;
  std::string says;  // what must be in the report, besides rule and line
};

std::string rule_of(const std::string& program) { return program.substr(0, program.find('.')); }

const Row rows[] = {
    {"remote-access.bounds", "it ends 32 bytes behind its region"},
    {"remote-access.region-rights", "the region has no REMOTE_WRITE"},
    {"remote-request.queue-pair-rights", "its queue pair has no REMOTE_WRITE"},
    {"remote-access.stale-key", "deregistered"},
    {"remote-access.domain", "another protection domain"},
    {"remote-access.byte-order", "with its bytes reversed"},
    {"remote-request.alignment", "no multiple of 8"},
    {"remote-request.depth", "max_dest_rd_atomic is 0"},
    {"remote-request.length", "longer than the receive"},
    {"remote-operation", "could not use its own memory"},
    {"local-protection", "it ends 1 byte behind its region"},
    {"receive-protection", "no IBV_ACCESS_LOCAL_WRITE"},
    {"local-length", "FETCH_AND_ADD"},
    {"receive-too-short", "32 bytes on queue pair"},
    {"read-depth-zero", "max_rd_atomic is 0"},
    {"receiver-not-ready", "rnr_retry is 1"},
    {"no-answer", "still in the state INIT"},
    {"failed-completion", "LOCAL_INV"},
    {"post-in-wrong-state", "in the state INIT"},
    {"send-queue-stuck", "it holds 8 requests"},
    {"send-queue-full", "8 of them signalled"},
    {"receive-queue-full", "it holds 8 receives"},
    {"sge-limit", "num_sge 3, but its max_send_sge is 2"},
    {"inline-limit", "inline request of 65, but its max_inline_data is 64"},
    {"wrong-opcode", "UC queue pairs have no READ"},
    {"no-address-handle", "without an address handle"},
    {"modify-refused", "from RESET to INIT needs IBV_QP_ACCESS_FLAGS"},
    {"missing-fence", "before the READ posted earlier"},
    {"source-changed", "WRITE of 64 bytes"},
    {"cq-overrun", "room for 3 completions, but 4 are in it"},
    {"in-use", "still need it"},
    {"destroyed-twice", "ibv_destroy_qp"},
    {"region-in-use", "deregistered although a work request"},
    {"freed-in-flight", "free() takes memory"},
    {"freed-while-registered", "free() takes memory that is registered"},
    {"event-not-acknowledged", "1 event of the CQ was taken"},
    {"acknowledged-too-many", "2 events of a CQ are acknowledged, and only 1 were taken"},
    {"slept-on-completion", "1 completion came before the CQ was armed"},
    {"leak-at-exit", "1 protection domain"},
};

// "programs.cpp:LINE" of the line that ends with the program's name.
std::string place_of(const std::string& program) {
  std::ifstream source(CHECK_SOURCE);
  int number = 0;
  for (std::string line; std::getline(source, line);) {
    ++number;
    if (line.ends_with("// " + program)) return "programs.cpp:" + std::to_string(number);
  }
  return "a line that does not exist";
}

const check::RuleText& text_of(const std::string& rule) {
  return *std::ranges::find(check::rules(), rule, &check::RuleText::name);
}

class CheckRule : public testing::TestWithParam<Row> {};

TEST_P(CheckRule, names_the_wrong_program_and_its_line) {
  const auto& [program, says] = GetParam();
  const check::RuleText& rule = text_of(rule_of(program));
  const Ended ended = run_checked(CHECK_PROGRAMS, program + " wrong");
  EXPECT_TRUE(ended.names(": weir: " + std::string(rule.name) + ": ")) << ended.printed;
  EXPECT_TRUE(ended.names(says)) << ended.printed;
  EXPECT_TRUE(ended.names(place_of(program))) << place_of(program) << "\n" << ended.printed;
  EXPECT_EQ(ended.status == 66, rule.severity == check::Severity::error) << ended.status << "\n"
                                                                         << ended.printed;
}

TEST_P(CheckRule, is_silent_about_the_right_neighbour) {
  const Ended ended = run_checked(CHECK_PROGRAMS, GetParam().program + " right");
  EXPECT_TRUE(ended.names("weir check: 0 errors, 0 risks, 0 notes;")) << ended.printed;
  EXPECT_EQ(ended.status, 0) << ended.printed;
}

INSTANTIATE_TEST_SUITE_P(, CheckRule, testing::ValuesIn(rows), [](const auto& row) {
  std::string name = row.param.program;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

// Each of these programs is run above, so a report that has one is named with rule and line.
TEST(CheckRules, collected_reports_have_a_program) {
  std::ifstream list(COLLECTED_REPORTS);
  int with_line = 0, by_weakness = 0, unnamed = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.starts_with('#')) continue;
    const std::string program = line.substr(line.find('\t') + 1);
    if (program == "-") {
      ++unnamed;
    } else if (program.starts_with("weak:")) {
      ++by_weakness;  // tests/weak
    } else {
      EXPECT_TRUE(std::ranges::any_of(rows, [&](const Row& row) { return row.program == program; })) << line;
      ++with_line;
    }
  }
  EXPECT_EQ(with_line, 45);
  EXPECT_EQ(by_weakness, 7);
  EXPECT_EQ(unnamed, 5);
}

TEST(CheckRules, each_has_a_wrong_program) {
  for (const check::RuleText& rule : check::rules())
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const Row& row) { return rule_of(row.program) == rule.name; }))
        << rule.name;
}

TEST(CheckAllocator, may_have_all_of_its_memory_registered) {
  const Ended ended = run_checked(CHECK_PROGRAMS, "frees-a-piece-of-a-region right");
  EXPECT_TRUE(ended.names("weir check: 0 errors, 0 risks, 0 notes;")) << ended.printed;
}

#ifdef CHECK_PROGRAMS_OF_JEMALLOC
// With these settings jemalloc unmaps what is freed at once, with its locks held.
Ended run_with_jemalloc(const std::string& words) {
  return run_checked(CHECK_PROGRAMS_OF_JEMALLOC, words,
                     "MALLOC_CONF=retain:false,dirty_decay_ms:0,muzzy_decay_ms:0 timeout 60");
}

TEST(CheckOtherAllocator, unmaps_memory_unseen) {
  const Ended ended = run_with_jemalloc("allocator-unmaps right");
  EXPECT_TRUE(ended.names("weir check: 0 errors, 0 risks, 0 notes;")) << ended.printed;
  EXPECT_EQ(ended.status, 0) << ended.printed;
}

TEST(CheckOtherAllocator, has_its_frees_checked) {
  const Ended ended = run_with_jemalloc("freed-in-flight wrong");
  EXPECT_TRUE(ended.names(": weir: freed-in-flight: ")) << ended.printed;
  EXPECT_TRUE(ended.names(place_of("freed-in-flight"))) << ended.printed;
  EXPECT_EQ(ended.status, 66) << ended.printed;
}
#endif

TEST(CheckReport, is_printed_once_for_a_place) {
  const Ended ended = run_checked(CHECK_PROGRAMS, "receive-queue-full wrong");
  EXPECT_TRUE(ended.names("1 repetition not shown")) << ended.printed;
  EXPECT_EQ(ended.printed.find("NOTE: weir: receive-queue-full"),
            ended.printed.rfind("NOTE: weir: receive-queue-full"));
}

TEST(CheckReport, is_suppressed_by_rule_and_function) {
  const test::ScratchDirectory scratch;
  std::ofstream(scratch.file("list")) << "# known\nlocal-protection:*\n";
  const Ended ended = run_checked(CHECK_PROGRAMS, "local-protection wrong",
                                  "WEIR_CHECK_SUPPRESSIONS=" + scratch.file("list"));
  EXPECT_EQ(ended.status, 0) << ended.printed;
  EXPECT_TRUE(ended.names("0 errors, 0 risks, 0 notes; 1 suppressed")) << ended.printed;
}

TEST(CheckReport, is_a_line_of_the_json_file) {
  const test::ScratchDirectory scratch;
  run_checked(CHECK_PROGRAMS, "local-protection wrong", "WEIR_CHECK_JSON=" + scratch.file("json"));
  std::ifstream file(scratch.file("json"));
  std::string line;
  std::getline(file, line);
  EXPECT_TRUE(line.starts_with("{\"rule\":\"local-protection\",\"severity\":\"error\",\"pid\":")) << line;
  EXPECT_TRUE(line.ends_with("}")) << line;
}

TEST(CheckStrict, takes_risks_for_errors) {
  EXPECT_EQ(run_checked(CHECK_PROGRAMS, "region-in-use wrong").status, 0);
  EXPECT_EQ(run_checked(CHECK_PROGRAMS, "region-in-use wrong", "WEIR_CHECK=strict").status, 66);
}

}  // namespace
}  // namespace weir::check_test
