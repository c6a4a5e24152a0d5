// --check-config reports all that is wrong with the settings and starts nothing. Also the sample
// configuration, which has every setting, and the messages to a supervisor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "kv/resp/words.hpp"
#include "kv/settings/config_file.hpp"
#include "tests/kv/program.hpp"
#include "tests/kv/running_server.hpp"
#include "transport/owned_fd.hpp"

namespace weir::kv::testing {
namespace {

using ::testing::HasSubstr;

struct Checked {
  int code;
  std::string says;
};

Checked check_config(std::vector<std::string> arguments) {
  arguments.emplace_back("--check-config");
  Program program(std::move(arguments));
  std::string says = program.output();
  return {program.exit_code(), std::move(says)};
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(CheckConfig, says_all_that_is_wrong_and_starts_nothing) {
  const ScratchFolder folder;
  const std::string config = folder.file("a.conf");
  write_file(config, "port abc\nmaxmemroy 1gb\ninclude " + folder.file("b.conf") + "\ntimeout 3\n");
  write_file(folder.file("b.conf"), "\nloglevel loud\n");
  const auto [code, says] = check_config({config, "--dir", folder.path(), "--nothing", "1", "--save", "x"});
  EXPECT_EQ(code, 1);
  for (const char* wrong : {"a.conf, line 1:\n>>> 'port abc'\nargument couldn't be parsed", "a.conf, line 2:",
                            "b.conf, line 2:\n>>> 'loglevel loud'", "unknown option --nothing", "--save: "})
    EXPECT_THAT(says, HasSubstr(wrong));
  EXPECT_EQ(says.find("line 4"), std::string::npos) << says;
  EXPECT_EQ(says.find("the settings are right"), std::string::npos) << says;
}

TEST(CheckConfig, looks_at_the_files_and_folders_that_the_settings_name) {
  const ScratchFolder folder;
  write_file(folder.file("users"), "user alice +nosuchcommand\n");
  const struct {
    std::vector<std::string> arguments;
    const char* says;
  } rows[] = {
      {{"--port", "0"}, "nothing to listen on"},
      {{"--dir", "/nowhere"}, "cannot work in /nowhere: No such file or directory. Check --dir."},
      {{"--logfile", "/nowhere/log"}, "Check --logfile."},
      {{"--logfile", "/"}, "Is a directory. Check --logfile."},
      {{"--pidfile", "/nowhere/pid"}, "Check --pidfile."},
      {{"--tls-port", "7001"}, "tls-cert-file"},
      {{"--tls-port", "7001", "--tls-cert-file", "none.pem", "--tls-key-file", "none.pem",
        "--tls-auth-clients", "no"},
       "none.pem"},
      {{"--aclfile", "none"}, "opening file 'none'"},
      {{"--aclfile", folder.file("users")}, "nosuchcommand"},
      {{"--aclfile", folder.file("users"), "--user", "bob", "on"}, "users are configured twice"},
      {{"--unixsocket", "/tmp/" + std::string(200, 'x')}, "Check --unixsocket."},
      {{"--appenddirname", "a/b"}, "Check --appenddirname."},
  };
  for (const auto& [arguments, wrong] : rows) {
    std::vector<std::string> all{"--dir", folder.path()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto [code, says] = check_config(all);
    EXPECT_EQ(code, 1) << says;
    EXPECT_THAT(says, HasSubstr(wrong));
    EXPECT_EQ(says.find("the settings are right"), std::string::npos) << says;
  }
}

TEST(CheckConfig, writes_nothing_and_says_what_has_no_effect) {
  const ScratchFolder folder;
  const auto [code, says] = check_config({"--dir", folder.path(), "--logfile", "log", "--pidfile", "pid",
                                          "--unixsocket", "s", "--appendonly", "yes", "--hz", "20"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(says, "without effect here: hz\nthe settings are right\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(SampleConfiguration, is_right) {
  const ScratchFolder folder;
  const auto [code, says] = check_config({WEIR_SAMPLE_CONFIGURATION, "--dir", folder.path()});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(says, "the settings are right\n");
}

// "#name value": what stands there is the default, where there is one.
TEST(SampleConfiguration, has_every_setting_with_its_default) {
  const Settings initial;
  std::set<std::string_view> explained;
  for (std::string line : lines_of(WEIR_SAMPLE_CONFIGURATION)) {
    const bool is_default = line.size() > 1 && line[0] == '#' && line[1] >= 'a' && line[1] <= 'z';
    if (is_default) line.erase(0, 1);
    if (line.empty() || line[0] == '#') continue;
    const auto words = split_words(line);
    ASSERT_TRUE(words && !words->empty()) << line;
    const SettingSpec* spec = find_setting(words->front());
    ASSERT_NE(spec, nullptr) << line;
    EXPECT_FALSE(spec->without_effect) << line;
    EXPECT_TRUE(explained.insert(spec->name).second) << "twice: " << line;
    Settings settings;
    ASSERT_TRUE(apply_config(settings, {{}, line})) << line;
    const std::string text = setting_text(initial, *spec);
    if (is_default && !text.empty() && text != "0") {
      EXPECT_EQ(setting_text(settings, *spec), text) << line;
    }
  }
  for (const SettingSpec& spec : setting_specs()) {
    const bool is_for_others = spec.without_effect || std::holds_alternative<AbsentSetting>(spec.kind) ||
                               std::holds_alternative<IdleSetting>(spec.kind);
    EXPECT_NE(explained.contains(spec.name), is_for_others) << spec.name;
  }
}

// A socket as systemd has it, at a path or without a file.
class Supervisor : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    name_ = GetParam() ? folder_.file("notify") : "@weir-test-notify-" + std::to_string(::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    const timeval limit{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  std::string told() const {
    char text[256];
    const ssize_t n = ::recv(socket_.get(), text, sizeof text, 0);
    return n < 0 ? std::string("nothing: ") + std::strerror(errno)
                 : std::string(text, static_cast<std::size_t>(n));
  }

  ScratchFolder folder_;
  OwnedFd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  std::string name_;
};

TEST_P(Supervisor, is_told_when_the_server_serves_and_when_it_ends) {
  Program program({"--port", "0", "--unixsocket", folder_.file("s"), "--dir", folder_.path()},
                  "NOTIFY_SOCKET=" + name_);
  EXPECT_EQ(told(), "READY=1");
  EXPECT_EQ(WireClient::unix_socket(folder_.file("s")).call({"PING"}), "+PONG\r\n");
  program.signal(SIGTERM);
  EXPECT_EQ(told(), "STOPPING=1");
  EXPECT_EQ(program.exit_code(), 0);
}

INSTANTIATE_TEST_SUITE_P(Sockets, Supervisor, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "path" : "abstract"; });

TEST(Supervised, server_serves_though_nobody_listens_to_it) {
  const ScratchFolder folder;
  for (const std::string& name :
       {folder.file("none"), std::string("@"), std::string(300, 'x'), std::string()}) {
    Program program({"--port", "0", "--unixsocket", folder.file("s"), "--dir", folder.path()},
                    "NOTIFY_SOCKET=" + name);
    EXPECT_TRUE(program.prints("Ready to accept connections")) << name;
    program.signal(SIGTERM);
    EXPECT_EQ(program.exit_code(), 0) << name;
  }
}

}  // namespace
}  // namespace weir::kv::testing
