// Users and their permissions: rules and their text, the ACL file, the log, and how a change affects clients.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kv/acl/passwords.hpp"
#include "kv/acl/permission.hpp"
#include "kv/acl/users.hpp"
#include "kv/settings/config_file.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* ok = "+OK\r\n";
constexpr const char* wrong_password = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

acl::User user_with(const std::vector<std::string>& rules) {
  acl::User user("u", {});
  for (const std::string& rule : rules) EXPECT_FALSE(user.apply(rule, {})) << rule;
  return user;
}

bool may(const acl::User& user, const std::vector<std::string>& words) {
  std::vector<Argument> arguments;
  for (const std::string& word : words) arguments.push_back({word, nullptr});
  const Command* command = find_command(words[0]);
  if (!command->subcommands.empty()) command = find_subcommand(*command, words[1]);
  return !acl::denial(user, *command, arguments);
}

TEST(AclUser, its_text_makes_it_again) {
  const std::vector<std::vector<std::string>> users{
      {},
      {"on", "nopass", "+@all", "~*", "&*"},
      {"on", ">secret", ">other", "~a*", "%R~b*", "%W~c*", "&news", "+get", "+config|get"},
      {"+@all", "-@write", "-get"},
      {"+@read", "+@write", "-set", "+select|0", "+select|1"},
      {"+@all", "-config", "+config|get"},
      {"+@all", "-config|set"},
      {"(+get ~a)", "(+@all -@dangerous ~b &c)", "skip-sanitize-payload"},
      {"-@all", "+@all", "-@all", "+@fast"},
      {"+@slow", "-@admin", "+acl|whoami"},
  };
  for (const auto& rules : users) {
    const acl::User first = user_with(rules);
    const auto parsed = acl::Users::parse("user u " + first.text(), "file", {});
    ASSERT_TRUE(parsed) << parsed.error();
    EXPECT_EQ((*parsed)[0].text(), first.text());
    for (const Command* command : all_commands()) {
      const auto same = [&](const Command& one) {
        EXPECT_EQ(first.selectors()[0].allows(one, {}), (*parsed)[0].selectors()[0].allows(one, {}))
            << one.full_name() << " of " << first.text();
      };
      same(*command);
      for (const Command& sub : command->subcommands) same(sub);
    }
  }
}

TEST(AclUser, a_selector_allows_a_command_as_a_whole_or_not_at_all) {
  const acl::User user = user_with({"on", "~a", "+get", "(~b +set)"});
  EXPECT_TRUE(may(user, {"GET", "a"}));
  EXPECT_TRUE(may(user, {"SET", "b", "1"}));
  EXPECT_FALSE(may(user, {"GET", "b"})) << "one selector allows the command, the other the key";
  EXPECT_FALSE(may(user, {"SET", "a", "1"}));
}

TEST(AclUser, needs_the_right_that_the_use_of_a_key_is) {
  const acl::User user = user_with({"on", "+@all", "%R~r", "%W~w"});
  EXPECT_TRUE(may(user, {"COPY", "r", "w"}));
  EXPECT_FALSE(may(user, {"COPY", "w", "r"}));
  EXPECT_TRUE(may(user, {"SET", "w", "1"}));
  EXPECT_FALSE(may(user, {"SET", "w", "1", "GET"})) << "it reads what was there";
  EXPECT_TRUE(may(user, {"EXISTS", "w", "r"})) << "neither reads nor writes a value";
}

TEST(AclUser, a_rule_that_fails_changes_nothing) {
  acl::Users users;
  const std::vector<std::string> rules{"on", "+get", "nonsense"};
  EXPECT_FALSE(users.changed("default", rules, {}));
  EXPECT_FALSE(users.changed("new", rules, {}));
  EXPECT_EQ(users.all().size(), 1u);
  EXPECT_EQ(users.text(), "user default on nopass ~* &* +@all\n");
}

TEST(AclPasswords, only_the_digest_that_is_there_is_found) {
  const std::string digest = acl::password_digest("secret");
  EXPECT_EQ(digest, "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
  std::string other = digest;
  for (char& letter : other) {
    const char before = std::exchange(letter, letter == '0' ? '1' : '0');
    EXPECT_FALSE(acl::contains_digest({digest}, other));
    letter = before;
  }
  EXPECT_TRUE(acl::contains_digest({acl::password_digest(""), digest}, digest));
  EXPECT_FALSE(acl::contains_digest({}, digest));
  EXPECT_FALSE(acl::contains_digest({digest}, digest.substr(0, 63)));
}

TEST(AclFile, says_what_is_wrong_in_which_line) {
  const auto error_of = [](const std::string& text) {
    const auto users = acl::Users::parse(text, "users.acl", {});
    return users ? std::string("it loads") : users.error();
  };
  const std::string no_change =
      "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";
  EXPECT_EQ(error_of("\n  user a on +get  \r\n\nuser b"), "it loads");
  EXPECT_EQ(error_of("user a on\nuse b\n"),
            "users.acl:2 should start with user keyword followed by the username. " + no_change);
  EXPECT_EQ(error_of("user a\nuser a"), "WARNING: Duplicate user 'a' found on line 2. " + no_change);
  EXPECT_EQ(error_of("user a +nosuch"),
            "users.acl:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. " +
                no_change);
  EXPECT_EQ(error_of("user a >secret #notadigest bogus"),
            "users.acl:1: The password hash must be exactly 64 characters and contain only lowercase "
            "hexadecimal characters. " +
                no_change)
      << "only the first mistake, and no word that may be a secret";
  EXPECT_EQ(error_of("user a (+get"),
            "users.acl:1: Unmatched parenthesis in selector definition." + no_change);
}

class AccessFile : public ::testing::Test {
 protected:
  Settings with_file(const std::string& text) {
    std::ofstream(path) << text;
    Settings settings = quiet_settings();
    settings.aclfile = path;
    return settings;
  }
  std::string saved() const {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  ScratchFolder folder;
  std::string path = folder.file("users.acl");
};

TEST_F(AccessFile, is_read_at_the_start_and_again_by_load) {
  RunningServer server(with_file("user alice on >a +@all ~* &*\nuser default off\n"));
  WireClient alice = server.connect();
  EXPECT_EQ(alice.call({"PING"}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(alice.call({"AUTH", "alice", "a"}), ok);
  WireClient other = server.connect();
  EXPECT_EQ(other.call({"AUTH", "alice", "a"}), ok);
  std::ofstream(path) << "user bob on >b +@all ~* &*\nuser default on nopass +ping\n";
  EXPECT_EQ(alice.call({"ACL", "LOAD"}), ok);
  EXPECT_EQ(alice.until_closed(), "") << "there is no alice any more";
  EXPECT_EQ(other.until_closed(), "");
  WireClient anybody = server.connect();
  EXPECT_EQ(anybody.call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(anybody.call({"GET", "k"}), "-NOPERM this user has no permissions to run the 'get' command\r\n");
  EXPECT_EQ(anybody.call({"AUTH", "bob", "b"}), ok);
}

TEST_F(AccessFile, that_is_wrong_changes_nothing) {
  RunningServer server(with_file("user alice on >a +@all ~* &*\n"));
  WireClient alice = server.connect();
  EXPECT_EQ(alice.call({"AUTH", "alice", "a"}), ok);
  std::ofstream(path) << "user alice off\nuser bob nonsense\n";
  EXPECT_EQ(alice.call({"ACL", "LOAD"}).substr(0, 4), "-ERR");
  EXPECT_EQ(alice.call({"ACL", "WHOAMI"}), bulk("alice"));
}

TEST_F(AccessFile, is_written_by_save) {
  RunningServer server(with_file(""));
  WireClient a = server.connect();
  EXPECT_EQ(a.call({"ACL", "SETUSER", "carol", "on", "nopass", "+get", "~c*"}), ok);
  EXPECT_EQ(a.call({"ACL", "SAVE"}), ok);
  EXPECT_EQ(saved(),
            "user carol on nopass ~c* resetchannels -@all +get\nuser default on nopass ~* &* +@all\n");
  EXPECT_EQ(a.call({"ACL", "LOAD"}), ok);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file("")))
    files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 1u) << "no half-written file is left";
}

TEST_F(AccessFile, that_cannot_be_read_or_is_wrong_stops_the_start) {
  EXPECT_NE(listen_error(with_file("user a nonsense\n")).find("users.acl:1: Syntax error."),
            std::string::npos);
  Settings settings = quiet_settings();
  settings.aclfile = folder.file("nothing");
  EXPECT_NE(listen_error(settings).find("No such file"), std::string::npos);
  settings = with_file("");
  settings.users = {{"alice", "on"}};
  EXPECT_NE(listen_error(settings).find("configured twice"), std::string::npos);
}

TEST(Access, users_of_the_configuration_file_are_there_from_the_start) {
  Settings settings = quiet_settings();
  ASSERT_TRUE(apply_config(settings, {{}, "user alice on >a ~* +get (+set\nuser bob on\n"}).has_value() ==
              false);
  settings = quiet_settings();
  settings.requirepass = "secret";
  ASSERT_TRUE(apply_config(settings, {{}, "user alice on >a ~* +get\nuser default on nopass +ping\n"}));
  RunningServer server(settings);
  WireClient a = server.connect();
  EXPECT_EQ(a.call({"PING"}), "+PONG\r\n") << "its line wins over requirepass";
  EXPECT_EQ(a.call({"AUTH", "alice", "x"}), wrong_password);
  EXPECT_EQ(a.call({"AUTH", "alice", "a"}), ok);
  EXPECT_EQ(a.call({"GET", "k"}), "$-1\r\n");
}

TEST(Access, a_line_of_the_configuration_file_that_is_wrong_is_refused) {
  const std::vector<std::pair<std::string, std::string>> lines{
      {"user", "Bad directive or wrong number of arguments"},
      {"user a nonsense", "Error in user declaration 'nonsense': Syntax error"},
      {"user \"a b\" on", "Spaces not allowed in ACL usernames"},
      {"user a (+get", "Error in user declaration '(+get': Unmatched parenthesis in acl selector"},
      {"user a on\nuser a off",
       "Error in user declaration 'a': Duplicate user found. A user can only be defined once in config "
       "files"},
  };
  for (const auto& [text, reason] : lines) {
    Settings settings;
    const auto applied = apply_config(settings, {{}, text});
    ASSERT_FALSE(applied) << text;
    EXPECT_EQ(applied.error().reason, reason);
  }
}

TEST(Access, who_waits_and_may_not_any_more_is_refused_when_it_would_be_served) {
  RunningServer server;
  WireClient admin = server.connect();
  admin.call({"ACL", "SETUSER", "u", "on", "nopass", "+@all", "~*"});
  WireClient waiter = server.connect();
  waiter.call({"AUTH", "u", "x"});
  waiter.send(encode({"BLPOP", "list", "0"}));
  while (!server.run([](Server& s) { return s.blocking.any(); })) std::this_thread::yield();
  admin.call({"ACL", "SETUSER", "u", "resetkeys"});
  EXPECT_EQ(admin.call({"RPUSH", "list", "x"}), ":1\r\n");
  EXPECT_EQ(waiter.reply(),
            "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n");
  EXPECT_EQ(admin.call({"LLEN", "list"}), ":1\r\n") << "it got nothing";
}

// The value of one field of ACL LOG's first entry.
std::string logged(WireClient& admin, const std::string& field) {
  const std::string entry = admin.call({"ACL", "LOG", "1"});
  const std::size_t at = entry.find("\r\n" + field + "\r\n");
  if (at == std::string::npos) return "";
  const std::string rest = entry.substr(at + field.size() + 4);
  if (rest[0] == ':') return rest.substr(1, rest.find('\r') - 1);
  const std::size_t text = rest.find("\r\n") + 2;
  return rest.substr(text, rest.find("\r\n", text) - text);
}

TEST(AccessLog, tells_what_was_refused_and_counts_what_is_refused_again) {
  RunningServer server;
  WireClient admin = server.connect();
  admin.call({"ACL", "SETUSER", "u", "on", ">p", "+get", "+multi", "+exec", "+eval", "~a*"});
  WireClient u = server.connect();
  u.call({"AUTH", "u", "p"});
  struct Case {
    std::vector<std::string> words;
    std::string reason, context, object;
  };
  const std::vector<Case> cases{
      {{"SET", "a", "1"}, "command", "toplevel", "set"},
      {{"GET", "b"}, "key", "toplevel", "b"},
      {{"EVAL", "return redis.call('get', 'c')", "0"}, "key", "lua", "c"},
      {{"AUTH", "u", "wrong"}, "auth", "toplevel", "AUTH"},
      {{"CONFIG", "GET", "x"}, "command", "toplevel", "config|get"},
  };
  for (const Case& one : cases) {
    u.call(one.words);
    u.call(one.words);
    EXPECT_EQ(logged(admin, "reason"), one.reason) << one.object;
    EXPECT_EQ(logged(admin, "context"), one.context) << one.object;
    EXPECT_EQ(logged(admin, "object"), one.object);
    EXPECT_EQ(logged(admin, "username"), "u");
    EXPECT_EQ(logged(admin, "count"), "2") << one.object;
    EXPECT_NE(logged(admin, "client-info").find(" user=u "), std::string::npos) << one.object;
  }
  u.call({"MULTI"});
  u.call({"GET", "b"});
  EXPECT_EQ(logged(admin, "context"), "multi");
  EXPECT_EQ(admin.call({"ACL", "LOG", "RESET"}), ok);
  EXPECT_EQ(admin.call({"ACL", "LOG"}), "*0\r\n");
}

TEST(AccessLog, is_bounded) {
  RunningServer server;
  WireClient admin = server.connect();
  admin.call({"CONFIG", "SET", "acllog-max-len", "3"});
  for (int i = 0; i < 20; ++i) admin.call({"AUTH", "nobody" + std::to_string(i), std::string(10000, 'x')});
  EXPECT_EQ(admin.call({"ACL", "LOG", "100"}).substr(0, 4), "*3\r\n");
  admin.call({"AUTH", std::string(10000, 'n'), "x"});
  EXPECT_EQ(logged(admin, "username").size(), acl::Log::kept_of_text);
}

TEST(Access, passwords_are_not_in_the_slow_log) {
  RunningServer server;
  WireClient admin = server.connect();
  admin.call({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  admin.call({"ACL", "SETUSER", "u", ">verysecret"});
  EXPECT_EQ(admin.call({"SLOWLOG", "GET", "-1"}).find("verysecret"), std::string::npos);
}

TEST(Access, who_came_before_there_was_a_password_stays_and_who_comes_after_is_a_stranger) {
  RunningServer server;
  WireClient before = server.connect();
  EXPECT_EQ(before.call({"ACL", "SETUSER", "default", ">p"}), ok);
  EXPECT_EQ(before.call({"PING"}), "+PONG\r\n");
  WireClient after = server.connect();
  EXPECT_EQ(after.call({"PING"}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(server.run([](Server& s) { return s.strangers.size(); }), 1u);
  EXPECT_EQ(after.call({"AUTH", "p"}), ok);
  EXPECT_EQ(server.run([](Server& s) { return s.strangers.size(); }), 0u);
}

TEST(Access, passwords_made_up_are_as_long_as_asked_and_differ) {
  RunningServer server;
  WireClient a = server.connect();
  const std::string one = a.call({"ACL", "GENPASS"});
  EXPECT_EQ(one.size(), std::string("$64\r\n\r\n").size() + 64);
  EXPECT_NE(one, a.call({"ACL", "GENPASS"}));
  EXPECT_EQ(a.call({"ACL", "GENPASS", "5"}).substr(0, 4), "$2\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
