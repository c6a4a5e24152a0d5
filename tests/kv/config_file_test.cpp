// Configuration files: which load, which are refused and why, and what they include.
#include "kv/server/config_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kv/server/options.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

std::string reason_of(const std::string& text) {
  Settings settings;
  const auto applied = apply_config(settings, {{}, text});
  return applied ? "it loads" : applied.error().reason;
}

TEST(ConfigFile, refuses_to_promise_what_the_server_lacks) {
  for (const char* kept : {"appendonly yes", "cluster-enabled no"}) {
    EXPECT_EQ(reason_of(kept), "it loads");
  }
  EXPECT_EQ(reason_of("cluster-enabled yes"), "this server is no part of a cluster");
  EXPECT_EQ(reason_of("notify-keyspace-events KEz"), "it loads");
  EXPECT_EQ(reason_of("notify-keyspace-events Q"), "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
}

TEST(ConfigFile, may_name_a_primary) {
  EXPECT_EQ(reason_of("replicaof host 6379"), "it loads");
  EXPECT_EQ(reason_of("slaveof \"\""), "it loads");
  EXPECT_EQ(reason_of("replicaof no one"), "it loads");
  EXPECT_EQ(reason_of("replicaof 'two words' 6379"), "Invalid master host");
  EXPECT_EQ(reason_of("replicaof host"), "wrong number of arguments");
  EXPECT_EQ(reason_of("replicaof host port"), "Invalid master port");
  EXPECT_EQ(reason_of("replicaof host 65536"), "Invalid master port");
}

TEST(ConfigFile, names_the_line_that_is_wrong) {
  Settings settings;
  const auto wrong = apply_config(settings, {{}, "# fine\nport 7000\n\nfoo bar\n"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().line, 4u);
  EXPECT_EQ(wrong.error().text, "foo bar");
  EXPECT_EQ(settings.port, 7000);
  EXPECT_EQ(reason_of("requirepass \"abc"), "Unbalanced quotes in configuration line");
  EXPECT_TRUE(apply_config(settings, {{}, "client-output-buffer-limit pubsub 1mb 1kb 5"}));
  EXPECT_EQ(settings.pubsub_output.soft_bytes, 1024);
}

TEST(Config, refuses_a_text_of_several_words_whose_quotes_are_unbalanced) {
  RunningServer server;
  WireClient a = server.connect();
  EXPECT_EQ(a.call({"CONFIG", "SET", "client-output-buffer-limit", "normal \"1 0 0"}),
            "-ERR CONFIG SET failed (possibly related to argument 'client-output-buffer-limit') - Unbalanced "
            "quotes "
            "in buffer limit configuration.\r\n");
  EXPECT_EQ(reason_of("client-output-buffer-limit 'normal \"' 1 0 0"),
            "Invalid client class specified in buffer limit configuration.");
}

TEST(ConfigFile, of_debians_redis_loads_as_it_is) {
  const auto options = parse_options({WEIR_DEBIAN_REDIS_CONF});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->settings.bind, "127.0.0.1 -::1");
  EXPECT_EQ(options->settings.logfile, "/var/log/redis/redis-server.log");
  const auto& idle = options->settings.given_without_effect;
  for (const char* name : {"always-show-logo", "no-appendfsync-on-rewrite", "oom-score-adj-values", "hz"}) {
    EXPECT_TRUE(idle.contains(name)) << name;
  }
  EXPECT_FALSE(idle.contains("bind"));
}

TEST(ConfigFile, checks_the_form_of_what_has_no_effect) {
  EXPECT_EQ(reason_of("aof-load-truncated maybe"), "argument must be 'yes' or 'no'");
  EXPECT_EQ(reason_of("repl-timeout soon"), "argument couldn't be parsed into an integer");
  EXPECT_EQ(reason_of("repl-backlog-size big"), "argument must be a memory value");
  EXPECT_EQ(reason_of("slave-priority 7"), "it loads");
  EXPECT_EQ(reason_of("save \"\""), "it loads");
  EXPECT_EQ(reason_of("aof-load-truncated"), "Bad directive or wrong number of arguments");
}

TEST(ConfigFile, shows_what_was_given_without_effect_or_redis_default) {
  RunningServer server;
  WireClient client = server.connect();
  EXPECT_EQ(client.call({"CONFIG", "GET", "oom-score-adj"}), "*2\r\n$13\r\noom-score-adj\r\n$2\r\nno\r\n");
  EXPECT_EQ(client.call({"CONFIG", "SET", "oom-score-adj", "yes", "repl-backlog-size", "2mb"}), "+OK\r\n");
  EXPECT_EQ(client.call({"CONFIG", "GET", "oom-score-adj"}), "*2\r\n$13\r\noom-score-adj\r\n$3\r\nyes\r\n");
  EXPECT_EQ(client.call({"CONFIG", "GET", "repl-backlog-size"}),
            "*2\r\n$17\r\nrepl-backlog-size\r\n$7\r\n2097152\r\n");
}

class ConfigInclude : public ::testing::Test {
 protected:
  // A file of the folder; it is written as it is.
  std::string file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.file(name)).parent_path());
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }
  std::string error(const std::string& name) const {
    const auto options = parse_options({folder_.file(name)});
    return options ? "it loads" : options.error();
  }
  ScratchFolder folder_;
};

TEST_F(ConfigInclude, reads_the_file_at_that_place) {
  const std::string inner = file("inner", "port 2\ntimeout 7\n");
  const auto options = parse_options({file("outer", "port 1\ninclude " + inner + "\ntimeout 8\n")});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->settings.port, 2);
  EXPECT_EQ(options->settings.timeout_s, 8);
}

TEST_F(ConfigInclude, starts_a_relative_path_at_dir) {
  file("inner", "port 2\n");
  const auto options = parse_options({file("outer", "dir " + folder_.file("") + "\ninclude inner\n")});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->settings.port, 2);
}

TEST_F(ConfigInclude, takes_a_pattern_in_the_order_of_names_and_none_at_all) {
  file("parts/b", "port 2\n");
  file("parts/a", "port 1\ntimeout 3\n");
  const auto options = parse_options(
      {file("outer", "include " + folder_.file("parts/*") + "\ninclude " + folder_.file("nothing*") + "\n")});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->settings.port, 2);
  EXPECT_EQ(options->settings.timeout_s, 3);
}

TEST_F(ConfigInclude, names_the_file_and_line_that_is_wrong) {
  const std::string inner = file("inner", "\nfoo bar\n");
  file("outer", "include " + inner + "\n");
  const std::string text = error("outer");
  EXPECT_NE(text.find("inner, line 2:\n>>> 'foo bar'"), std::string::npos) << text;
}

TEST_F(ConfigInclude, says_that_a_file_is_missing) {
  file("outer", "port 1\ninclude /nowhere/x.conf\n");
  const std::string text = error("outer");
  EXPECT_NE(text.find("outer, line 2:"), std::string::npos) << text;
  EXPECT_NE(text.find("cannot read the configuration file /nowhere/x.conf: No such file"), std::string::npos)
      << text;
}

TEST_F(ConfigInclude, of_itself_is_refused) {
  file("a", "include " + folder_.file("b") + "\n");
  file("b", "include " + folder_.file("./a") + "\n");
  const std::string text = error("a");
  EXPECT_NE(text.find("a includes itself, here or through other files"), std::string::npos) << text;
}

TEST_F(ConfigInclude, goes_16_files_deep_and_no_further) {
  for (int i = 1; i < 17; ++i) {
    file("f" + std::to_string(i), "include " + folder_.file("f" + std::to_string(i + 1)) + "\n");
  }
  file("f17", "port 1\n");
  EXPECT_EQ(error("f2"), "it loads");
  EXPECT_NE(error("f1").find("more than 16 levels deep"), std::string::npos) << error("f1");
}

}  // namespace
}  // namespace weir::kv::testing
