// Configuration files: which load, which are refused and why, and what they include.
#include "kv/settings/config_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kv/settings/options.hpp"
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

// The names that CONFIG GET '*' knows in Redis 6.2 to 8 and Valkey 8 and 9, under which their files set them.
TEST(ConfigFile, may_name_every_setting_of_other_servers) {
  std::ifstream names(WEIR_SETTINGS_OF_OTHERS);
  ASSERT_TRUE(names.is_open());
  std::size_t count = 0;
  for (std::string name; std::getline(names, name); ++count) EXPECT_NE(find_setting(name), nullptr) << name;
  EXPECT_GT(count, 250u);
}

TEST(ConfigFile, takes_each_setting_without_effect_at_its_default) {
  for (const SettingSpec& spec : setting_specs()) {
    const auto* idle = std::get_if<IdleSetting>(&spec.kind);
    if (idle == nullptr) continue;
    EXPECT_FALSE(idle->why.empty()) << spec.name;
    EXPECT_EQ(reason_of(std::string(spec.name) + " \"" + std::string(idle->initial) + '"'), "it loads")
        << spec.name;
  }
}

TEST(ConfigFile, refuses_what_asks_for_a_missing_feature_and_says_why) {
  struct {
    const char* line;
    const char* reason;
  } rows[] = {
      {"tls-ciphers \"\"", "it loads"},
      {"tls-ciphers DEFAULT:!MEDIUM", "OpenSSL's configuration chooses the ciphers (openssl.cnf)"},
      {"tls-protocols \"TLSv1.2 TLSv1.3\"", "it loads"},
      {"tls-protocols TLSv1.3", "TLS 1.2 and 1.3 are spoken"},
      {"supervised systemd", "it loads"},
      {"supervised upstart",
       "the server says to systemd that it is ready wherever NOTIFY_SOCKET is set; it does not stop itself "
       "for "
       "upstart"},
      {"locale-collate \"\"", "it loads"},
      {"locale-collate de_DE", "SORT ALPHA orders texts by their bytes"},
      {"shutdown-on-sigterm default", "it loads"},
      {"shutdown-on-sigterm \"nosave now\"",
       "SIGTERM ends the server as SHUTDOWN does; use SHUTDOWN for another way"},
      {"log-format logfmt", "the log has one format"},
      {"import-mode yes", "there is no import mode: keys expire while they are imported, too"},
      {"socket-mark-id 0", "it loads"},
      {"primaryauth secret", "it loads"},
      {"server_cpulist 0-2:2,4", "it loads"},
      {"bio_cpulist 1", "it loads"},
      {"bio-cpulist x", "argument must be a list of CPUs such as 0-2,4"},
      {"enable-module-command yes", "it loads"},
      {"rename-command FLUSHALL \"\"",
       "commands keep their names here; ACL rules refuse them to users: user default -flushall"},
      {"rdb-dialect valkey", "it loads"},
      {"server-cpulist 2-0", "argument must be a list of CPUs such as 0-2,4"},
      {"server-cpulist 0,", "argument must be a list of CPUs such as 0-2,4"},
      {"server-cpulist 0-5000", "argument must be a list of CPUs such as 0-2,4"},
  };
  for (const auto& [line, reason] : rows) EXPECT_EQ(reason_of(line), reason) << line;
}

TEST(ConfigFile, turns_rdma_on_as_valkeys_module_does) {
  Settings settings;
  const char* line =
      "loadmodule /usr/lib/valkey/valkey-rdma.so bind=192.0.2.1 port=6380 rx-size=2mb comp-vector=3";
  ASSERT_TRUE(apply_config(settings, {{}, line}));
  EXPECT_EQ(settings.rdma_bind, "192.0.2.1");
  EXPECT_EQ(settings.rdma_port, 6380);
  EXPECT_EQ(settings.rdma_rx_size, 2 << 20);
  EXPECT_EQ(settings.rdma_comp_vector, 3);
  EXPECT_EQ(reason_of("loadmodule /opt/redis-rdma.so port=6380"), "it loads");
  EXPECT_EQ(reason_of("loadmodule valkey-search.so"),
            "this server loads no modules; it has only RDMA (valkey-rdma.so) built in");
  EXPECT_EQ(reason_of("loadmodule valkey-rdma.so depth=5"),
            "valkey-rdma.so takes bind=, port=, rx-size= and completion-vector=, not depth=5");
  EXPECT_EQ(reason_of("loadmodule valkey-rdma.so port=x"), "argument couldn't be parsed into an integer");
  EXPECT_EQ(reason_of("loadmodule valkey-rdma.so port=70000"),
            "argument must be between -1 and 65535 inclusive");
}

TEST(Options, take_debians_and_valkeys_start_lines) {
  const auto options = parse_options({WEIR_DEBIAN_REDIS_CONF, "--supervised", "systemd", "--daemonize", "no",
                                      "--loadmodule", "valkey-rdma.so", "port=6380"});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->settings.rdma_port, 6380);
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
