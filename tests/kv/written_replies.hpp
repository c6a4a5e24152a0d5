// Tests whose rows are requests with the replies that a server should give, both in one line.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "kv/resp/words.hpp"
#include "tests/kv/one_line.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {

struct Row {
  std::vector<std::string> before;
  std::string command;
  std::string reply;
};

inline constexpr const char* wrong_type =
    "-WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr const char* syntax_error = "-ERR syntax error";

class WrittenReplies : public ::testing::Test {
 protected:
  std::string say(std::string_view line) { return one_line(client.call(*split_words(line))); }
  void expect_replies(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.command);
      say("FLUSHALL");
      for (const std::string& line : row.before) ASSERT_NE(say(line)[0], '-') << line;
      EXPECT_EQ(say(row.command), row.reply);
    }
  }

  RunningServer server;
  WireClient client = server.connect();
};

}  // namespace weir::kv::testing
