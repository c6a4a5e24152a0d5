// What `weir stat` prints for given samples, and which command lines it accepts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/weir/stat/rate_history.hpp"
#include "cli/weir/stat/stat_options.hpp"
#include "cli/weir/stat/stat_text.hpp"

namespace weir::command {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Sample sample_at(double seconds, std::vector<WatchedProcess> processes) {
  Sample sample;
  sample.at =
      std::chrono::steady_clock::time_point(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(seconds)));
  sample.processes = std::move(processes);
  return sample;
}

WatchedProcess process(pid_t pid, std::uint64_t writes, std::uint64_t rnrs = 0) {
  WatchedProcess made;
  made.pid = pid;
  made.command = "program" + std::to_string(pid);
  made.incarnation = static_cast<std::uint64_t>(pid) * 1000;
  made.sums.writes = writes;
  made.sums.rnrs = rnrs;
  made.queue_pairs.push_back({0x4002, 0x8002, "RC", "RTS", made.sums});
  return made;
}

// The words of the line that begins with that word.
std::vector<std::string> words_of_line(const std::string& text, const std::string& first) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream(line);
    std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
    if (!words.empty() && words[0] == first) return words;
  }
  return {};
}

TEST(StatTable, shows_sums_when_there_is_nothing_to_compare_with) {
  const auto words = words_of_line(as_table(sample_at(0, {process(7, 1500, 3)}), nullptr, {}), "7");
  EXPECT_THAT(words, ElementsAre("7", "program7", "1", "QP", "1.50k", "0", "1.50k", "0", "0", "0", "0", "0",
                                 "0", "0", "0", "0", "3", "0", "0"));
}

TEST(StatTable, shows_operations_per_second_and_rnrs_in_all) {
  const Sample before = sample_at(10, {process(7, 1000, 3)}), now = sample_at(12, {process(7, 1500, 4)});
  const auto words = words_of_line(as_table(now, &before, {}), "7");
  ASSERT_EQ(words.size(), 19u);
  EXPECT_EQ(words[4], "250");
  EXPECT_EQ(words[16], "4");
}

TEST(StatTable, takes_a_process_in_an_old_ones_place_for_new) {
  Sample before = sample_at(0, {process(7, 1000)});
  before.processes[0].incarnation = 1;
  const Sample now = sample_at(1, {process(7, 10)});
  EXPECT_EQ(words_of_line(as_table(now, &before, {}), "7").at(4), "10");
}

TEST(StatTable, has_a_line_for_the_packets_of_a_queue_pair_that_has_any) {
  Sample now = sample_at(0, {process(7, 1500), process(8, 1)});
  WatchedQueuePair& qp = now.processes[0].queue_pairs[0];
  qp.peer_address = "10.9.0.2";
  qp.counters.packets_out = 12'345;
  qp.counters.packets_in = 99;
  qp.counters.packets_resent = 7;
  qp.counters.packets_repeated = 6;
  qp.counters.naks_in = 2;
  qp.counters.naks_out = 3;
  qp.counters.rnr_naks_out = 1;
  qp.counters.packets_dropped = 4;
  qp.counters.cnps_in = 8;
  const std::string text = as_table(now, nullptr, {});
  EXPECT_THAT(
      text, HasSubstr("\n    packets to 10.9.0.2: 12.3k out, 99 in, 7 sent again, 6 repeated by the peer, 5 "
                      "NAK, 1 RNR NAK, 8 CNP, 4 dropped\n"));
  EXPECT_EQ(text.find("packets"), text.rfind("packets")) << "one for a queue pair within the host";
  EXPECT_THAT(as_table(now, nullptr, {.queue_pairs = false}), Not(HasSubstr("packets")));
  EXPECT_THAT(as_json(now, nullptr), HasSubstr("\"peer_address\": \"10.9.0.2\""));
}

TEST(StatTable, says_which_packets_a_process_dropped_and_why) {
  Sample now = sample_at(0, {process(7, 1500), process(8, 1)});
  now.processes[0].sums.dropped_wrong_source = 12'345;
  now.processes[0].sums.dropped_by_kernel = 7;
  const std::string text = as_table(now, nullptr, {.queue_pairs = false});
  EXPECT_THAT(text, HasSubstr("\n    dropped: 12.3k wrong source, 7 by the kernel\n"));
  EXPECT_EQ(text.find("dropped:"), text.rfind("dropped:")) << "one for a process that dropped nothing";
  EXPECT_THAT(as_json(now, nullptr), HasSubstr("\"dropped_wrong_source\": 12345"));
}

TEST(StatTable, sorts_by_the_column_asked_for) {
  const Sample now = sample_at(0, {process(1, 5, 9), process(2, 50, 1), process(3, 500, 0)});
  const auto order = [&](const std::string& key) {
    const std::string text = as_table(now, nullptr, {.sort = key, .queue_pairs = false});
    std::string pids;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.find("program") != std::string::npos) pids += line[6];
    return pids;
  };
  EXPECT_EQ(order("ops"), "321");
  EXPECT_EQ(order("rnr"), "123");
  EXPECT_EQ(order("pid"), "123");
}

TEST(StatTable, says_how_much_did_not_fit) {
  const Sample now = sample_at(0, {process(1, 5), process(2, 50)});
  const std::string text = as_table(now, nullptr, {.lines = 4});
  EXPECT_EQ(std::ranges::count(text, '\n'), 4);
  EXPECT_THAT(text, HasSubstr("(3 more lines)"));
}

TEST(StatTable, scrolls_its_lines_below_the_titles_and_no_further_than_the_end) {
  Sample now = sample_at(0, {});
  for (int pid = 1; pid <= 9; ++pid) now.processes.push_back(process(pid, 5));
  struct Case {
    std::size_t first, first_after;
    std::string_view said;
  };
  constexpr Case cases[] = {{0, 0, "(6 more lines)"},
                            {1, 1, "(lines: 1 above, 5 below)"},
                            {6, 6, "(lines: 6 above, 0 below)"},
                            {SIZE_MAX, 6, "(lines: 6 above, 0 below)"}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.first);
    TableWish wish{.sort = "pid", .queue_pairs = false, .lines = 6, .first = one.first};
    const std::string text = as_screen(now, nullptr, wish);
    EXPECT_EQ(std::ranges::count(text, '\n'), 6);
    EXPECT_THAT(text, HasSubstr(one.said));
    EXPECT_EQ(wish.first, one.first_after);
    EXPECT_EQ(words_of_line(text, std::to_string(one.first_after + 1)).at(0),
              std::to_string(one.first_after + 1));
  }
  TableWish wide{.lines = 40, .first = 3};
  as_screen(now, nullptr, wide);
  EXPECT_EQ(wide.first, 0u) << "all fits";
}

TEST(RateHistory, draws_the_newest_rates_against_the_highest_of_them) {
  RateHistory history(RateHistory::Bars::ascii);
  EXPECT_EQ(history.line(80), "");
  for (const double rate : {0.0, 1.0, 500.0, 1000.0}) history.add(rate);
  EXPECT_EQ(history.line(80), "operations/s  _-#  now 1.00k, highest 1.00k");
  history.add(250);
  EXPECT_EQ(history.line(46), "operations/s -#.  now 250, highest 1.00k") << "room for three";
  EXPECT_EQ(history.line(30), "") << "room for none";
}

TEST(RateHistory, of_blocks_is_as_wide_as_one_of_letters) {
  RateHistory history(RateHistory::Bars::blocks);
  history.add(8);
  EXPECT_EQ(history.line(80), "operations/s \u2588  now 8, highest 8");
}

// A queue pair between hosts in the error state, and one of a process with the longest names.
Sample troubled() {
  Sample now = sample_at(0, {process(1'234'567, 123'456, 2), process(8, 1)});
  now.processes[0].command = "fifteen_letters";
  now.processes[0].sums.send_errors = 3;
  WatchedQueuePair& qp = now.processes[0].queue_pairs[0];
  qp = {0xfffffe, 0xfffffd, "XRC receive", "RESET", now.processes[0].sums};
  qp.peer_address = "fe80::1234:5678:9abc:def0";
  qp.counters.packets_out = qp.counters.packets_in = 12'345'678;
  return now;
}

TEST(StatTable, fits_the_screen_and_shows_what_is_wrong_whatever_its_width) {
  for (std::size_t columns = 50; columns < 140; ++columns) {
    std::istringstream lines(as_table(troubled(), nullptr, {.columns = columns}));
    std::string line;
    std::getline(lines, line);  // the number of lines
    std::getline(lines, line);
    EXPECT_TRUE(line.ends_with(" ERROR")) << columns;
    while (std::getline(lines, line))
      if (!line.starts_with('(')) {
        EXPECT_LE(line.size(), columns) << line;
      }
  }
}

TEST(StatTable, leaves_columns_out_by_rank_and_says_which) {
  const auto titles = [](const std::string& sort, std::size_t columns) {
    return words_of_line(as_table(troubled(), nullptr, {.sort = sort, .columns = columns}), "PID");
  };
  EXPECT_THAT(titles("ops", 80), ElementsAre("PID", "COMMAND", "OPS", "RECV", "SERVE", "OUT", "B", "IN", "B",
                                             "RNR", "RETRY", "ERROR"));
  EXPECT_THAT(titles("bell", 80), ElementsAre("PID", "COMMAND", "OPS", "SERVE", "OUT", "B", "IN", "B", "BELL",
                                              "RNR", "RETRY", "ERROR"))
      << "what it is sorted by is always shown";
  EXPECT_THAT(titles("ops", 10), ElementsAre("PID", "COMMAND", "OPS"));
  const std::string text = as_table(troubled(), nullptr, {.lines = 5, .columns = 80});
  EXPECT_THAT(text, HasSubstr("(no room in 80 columns: SEND WRITE READ ATOM BELL COMPL WAKE)\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 5);
  EXPECT_THAT(as_table(troubled(), nullptr, {}), Not(HasSubstr("no room")));
}

TEST(StatTable, colours_what_is_wrong_where_it_may) {
  const std::string text = as_table(troubled(), nullptr, {.queue_pairs = false, .colour = true});
  EXPECT_THAT(text, HasSubstr("\x1b[31m     3\x1b[0m"));
  EXPECT_THAT(text, HasSubstr("\x1b[33m     2\x1b[0m"));
  EXPECT_THAT(as_table(troubled(), nullptr, {}), Not(HasSubstr("\x1b")));
}

TEST(StatTable, gives_a_terminal_nothing_to_obey) {
  Sample now = sample_at(0, {process(7, 1)});
  now.processes[0].command = "\x1b[2Jgone\n";
  EXPECT_THAT(as_table(now, nullptr, {}), HasSubstr("7 ?[2Jgone? "));
}

TEST(StatTable, keeps_numbers_short) {
  const std::pair<double, std::string> rows[] = {{0, "0"},         {0.4, "0.4"},      {999, "999"},
                                                 {1000, "1.00k"},  {12345, "12.3k"},  {999'500, "1.00M"},
                                                 {99'950, "100k"}, {4.56e9, "4.56G"}, {1.8e19, "18.0E"}};
  for (const auto& [value, text] : rows) {
    EXPECT_EQ(short_number(value), text);
    EXPECT_LE(short_number(value).size(), 5u);
  }
}

TEST(StatExport, json_escapes_what_the_kernel_allows_in_names) {
  Sample now = sample_at(0, {process(7, 1)});
  now.processes[0].command = "a\"b\\c\n";
  EXPECT_THAT(as_json(now, nullptr), Not(HasSubstr("per_second")));
  EXPECT_THAT(as_prometheus(now), HasSubstr(R"(command="a\"b\\c\n")"));
}

TEST(StatExport, json_is_valid_whatever_a_process_is_called) {
  const std::string names[] = {"a\"b\\c\n", std::string("\x01\x1f\x7f\t", 4), "caf\xc3\xa9"};
  for (const std::string& name : names) {
    Sample now = sample_at(0, {process(7, 1)});
    now.processes[0].command = name;
    const auto read = nlohmann::json::parse(as_json(now, nullptr), nullptr, false);
    ASSERT_FALSE(read.is_discarded()) << as_json(now, nullptr);
    EXPECT_EQ(read["processes"][0]["command"], name);
  }
  Sample now = sample_at(0, {process(7, 1)});
  now.processes[0].command = "half a letter: \xc3";  // the kernel cuts names at 15 bytes
  const auto read = nlohmann::json::parse(as_json(now, nullptr), nullptr, false);
  ASSERT_FALSE(read.is_discarded()) << as_json(now, nullptr);
  EXPECT_EQ(read["processes"][0]["command"], "half a letter: \xef\xbf\xbd");
}

TEST(StatExport, json_has_rates_when_there_are_two_samples) {
  const Sample before = sample_at(0, {process(7, 100)}), now = sample_at(2, {process(7, 300)});
  const std::string text = as_json(now, &before);
  EXPECT_THAT(text, HasSubstr("\"per_second\": {\"sends\": 0.0, \"writes\": 100.0"));
  EXPECT_THAT(text, HasSubstr("\"seconds\": 2.000"));
}

TEST(StatExport, prometheus_names_each_metric_once_and_ends_lines) {
  const std::string text = as_prometheus(sample_at(0, {process(7, 1), process(8, 2)}));
  EXPECT_THAT(text,
              HasSubstr("weir_operations_total{pid=\"8\",command=\"program8\",operation=\"write\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("weir_rnrs_total{pid=\"7\",command=\"program7\"} 0\n"));
  std::vector<std::string> types;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("# TYPE")) types.push_back(line);
  auto sorted = types;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end()) << "a metric declared twice";
  EXPECT_TRUE(text.ends_with('\n'));
}

TEST(StatOptions, are_read) {
  const std::vector<std::string> words = {"--once", "--sort", "out", "--pid", "1,2",
                                          "--pid",  "3",      "-i",  "0.5"};
  const auto options = read_stat_options(words);
  ASSERT_TRUE(options) << options.error().text;
  EXPECT_TRUE(options->once);
  EXPECT_EQ(options->sort, "out");
  EXPECT_THAT(options->pids, ElementsAre(1, 2, 3));
  EXPECT_EQ(options->interval_s, 0.5);
}

TEST(StatOptions, that_make_no_sense_are_refused) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--sort", "size"},
                                                {"--interval", "0"},
                                                {"--pid", "x"},
                                                {"--json", "--prometheus"},
                                                {"--listen", ":0", "--prometheus"},
                                                {"--listen", "x"},
                                                {"--nosuch"},
                                                {"word"}}) {
    const auto options = read_stat_options(words);
    ASSERT_FALSE(options) << words[0];
    EXPECT_EQ(options.error().status, 2);
    EXPECT_THAT(options.error().text, HasSubstr("weir stat --help"));
  }
}

TEST(StatOptions, say_what_a_count_is_to_who_gives_none) {
  for (const std::string count : {"0", "-1", "x", "1.5", ""}) {
    const std::vector<std::string> words = {"--count", count};
    const auto options = read_stat_options(words);
    ASSERT_FALSE(options) << count;
    EXPECT_THAT(options.error().text,
                HasSubstr("--count: wants a whole number above 0, not '" + count + "'"));
  }
}

}  // namespace
}  // namespace weir::command
