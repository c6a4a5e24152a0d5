// `weir run` and `weir devices`: what they find, what they refuse, and how they exit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/weir/devices/device_list.hpp"
#include "cli/weir/launch/program_file.hpp"
#include "tests/cli/weir_run_fixture.hpp"

namespace weir::command {
namespace {

using testing::HasSubstr;

TEST_F(WeirRun, exits_as_the_command_does) {
  EXPECT_EQ(run({"true"}).status, 0);
  EXPECT_EQ(run({"sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).status, 128 + 9);
}

TEST_F(WeirRun, puts_the_libraries_in_front_and_names_the_provider) {
  ::setenv("LD_LIBRARY_PATH", "/before", 1);
  const auto ended = run({"sh", "-c", "echo $LD_LIBRARY_PATH $WEIR_RDMA_PROVIDER"});
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(ended.out, libraries_.path().string() + ":/before weir\n");
}

TEST_F(WeirRun, tells_the_devices_what_was_asked_for) {
  const struct {
    std::vector<std::string> options;
    std::string devices, gids;
  } rows[] = {{{}, "weir0", ""},
              {{"--devices", "2"}, "weir0,weir1", ""},
              {{"--devices=3", "--name", "mlx5_0"}, "mlx5_0,mlx5_1,mlx5_2", ""},
              {{"--devices=2", "--name=rdma"}, "rdma0,rdma1", ""},
              {{"--name", "mlx5_7"}, "mlx5_7", ""},
              {{"--gid", "10.0.0.1", "--gid=fd00::1"}, "weir0", "10.0.0.1,fd00::1"}};
  for (const auto& row : rows) {
    std::vector<std::string> words = {"run", "--lib-dir", libraries_.path()};
    words.insert(words.end(), row.options.begin(), row.options.end());
    words.insert(words.end(), {"--", "sh", "-c", "echo $WEIR_DEVICES/$WEIR_GIDS"});
    EXPECT_EQ(run_weir(words).out, row.devices + "/" + row.gids + "\n");
  }
}

TEST_F(WeirRun, refuses_devices_that_cannot_be) {
  for (const std::string option :
       {"--devices=0", "--devices=17", "--devices=two", "--devices=", "--name=", "--name=a/b", "--name=a,b"})
    EXPECT_EQ(run_weir({"run", option, "--", "true"}).status, 2) << option;
}

TEST_F(WeirRun, hands_the_mtu_on_and_refuses_those_that_roce_has_not) {
  EXPECT_EQ(
      run_weir({"run", "--lib-dir", libraries_.path(), "--mtu", "1024", "--", "sh", "-c", "echo $WEIR_MTU"})
          .out,
      "1024\n");
  for (const std::string mtu : {"1500", "0", "128", "8192", "1k", "1024 "}) {
    const auto ended = run_weir({"run", "--mtu", mtu, "--", "true"});
    EXPECT_EQ(ended.status, 2) << mtu;
    EXPECT_THAT(ended.out, HasSubstr("256, 512, 1024, 2048 or 4096"));
  }
}

TEST_F(WeirRun, hands_arguments_on_untouched) {
  EXPECT_EQ(run({"printf", "%s|", "--help", "", "a b"}).out, "--help||a b|");
}

TEST_F(WeirRun, exits_as_a_shell_does_when_the_command_cannot_be_run) {
  TemporaryDirectory files;
  files.write("plain", "text");
  EXPECT_EQ(run({"weir-no-such-command"}).status, 127);
  EXPECT_EQ(run({files.path() / "missing"}).status, 127);
  EXPECT_EQ(run({files.path() / "plain"}).status, 126);
  EXPECT_EQ(run({files.path()}).status, 126);
}

TEST_F(WeirRun, says_what_is_missing) {
  EXPECT_EQ(run({}).status, 2);
  const auto ended = run_weir({"run", "--lib-dir", "/nonexistent", "--", "true"});
  EXPECT_EQ(ended.status, 126);
  EXPECT_THAT(ended.out, HasSubstr("/nonexistent"));
  EXPECT_THAT(ended.out, HasSubstr("--lib-dir"));
  EXPECT_EQ(run_weir({"run", "--nosuch"}).status, 2);
}

TEST_F(WeirRun, does_not_go_on_without_the_library_of_an_option) {
  struct Row {
    std::string option, library, target;
  };
  for (const auto& [option, library, target] : {Row{"--share-memory", "libweir_heap.so", "weir_heap"},
                                                Row{"--check", "libweir_check.so", "weir_check_verbs"},
                                                Row{"--rsockets", "librspreload.so", "weir_rspreload"}}) {
    const std::vector<std::string> words = {"run", "--lib-dir", libraries_.path(), option, "--",
                                            "sh",  "-c",        "echo ran"};
    const auto refused = run_weir(words);
    EXPECT_EQ(refused.status, 126);
    EXPECT_THAT(refused.out, HasSubstr(libraries_.path().string() + "/" + library));
    EXPECT_THAT(refused.out, HasSubstr("--target " + target));
    libraries_.write(library, "");  // its contents do not matter: the loader complains and continues
    const auto ran = run_weir(words);
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.out, HasSubstr("ran\n"));
  }
}

TEST_F(WeirRun, refuses_options_of_check_without_it_and_words_it_lacks) {
  for (const auto& words :
       {std::vector<std::string>{"--json", "out"}, {"--suppressions", "list"}, {"--check=nosuch"}}) {
    std::vector<std::string> all = {"run"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--", "true"});
    const auto ended = run_weir(all);
    EXPECT_EQ(ended.status, 2) << words.front();
    EXPECT_THAT(ended.out, HasSubstr("--check")) << words.front();
  }
}

using WeirTrace = WeirRun;

TEST_F(WeirTrace, tells_the_program_by_its_environment) {
  TemporaryDirectory files;
  const std::string log = files.path() / "log";
  files.write("log", "old");
  const auto ended =
      run_weir({"trace", "--lib-dir", libraries_.path(), "--log", log, "--qp", "2", "--qp=0x10", "--limit",
                "3k", "--snap=96", "--", "sh", "-c",
                "echo $WEIR_TRACE_LOG,$WEIR_TRACE_PCAP,$WEIR_TRACE_QPS,$WEIR_TRACE_LIMIT,$WEIR_TRACE_SNAP"});
  EXPECT_EQ(ended.out, log + ",,2,16,3072,96\n");
  EXPECT_EQ(fs::file_size(log), 0u) << "an old log is emptied";
}

TEST_F(WeirTrace, goes_to_standard_error_unless_told) {
  EXPECT_EQ(run_weir({"trace", "--lib-dir", libraries_.path(), "--", "sh", "-c", "echo $WEIR_TRACE_LOG"}).out,
            "-\n");
}

TEST_F(WeirTrace, refuses_what_makes_no_sense_before_it_empties_a_file) {
  TemporaryDirectory files;
  files.write("log", "old");
  const std::string log = files.path() / "log";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--limit", "1T", "--", "true"},
                                             {"--limit", "0", "--", "true"},
                                             {"--snap", "x", "--", "true"},
                                             {"--qp", "two", "--", "true"},
                                             {"--nosuch", "--", "true"},
                                             {"--pcap", log, "--", "true"},
                                             {"--pcap", files.path() / "." / "log", "--", "true"},
                                             {"--pcap", "-", "--", "true"},
                                             {}}) {
    std::vector<std::string> line = {"trace", "--lib-dir", libraries_.path(), "--log", log};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_EQ(run_weir(line).status, 2) << (words.empty() ? "no command" : words[0]);
    EXPECT_EQ(fs::file_size(log), 3u);
  }
  EXPECT_EQ(run_weir({"trace", "--pcap", "/nonexistent/file", "--", "true"}).status, 1);
  const auto long_name = run_weir({"trace", "--pcap", std::string(300, 'x'), "--", "true"});
  EXPECT_EQ(long_name.status, 1);
  EXPECT_THAT(long_name.out, HasSubstr("File name too long"));
}

TEST(ProgramFile, that_is_setuid_to_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  TemporaryDirectory files;
  fs::copy_file("/bin/true", files.path() / "true");
  const std::string file = files.path() / "true";
  EXPECT_EQ(why_libraries_cannot_be_replaced(file), "");
  ASSERT_EQ(::chown(file.c_str(), 1, 1), 0);
  ASSERT_EQ(::chmod(file.c_str(), 04755), 0);
  EXPECT_THAT(why_libraries_cannot_be_replaced(file), HasSubstr("setuid"));
}

TEST(ProgramFile, that_is_statically_linked_is_refused) {
  EXPECT_THAT(why_libraries_cannot_be_replaced(STATIC_PROGRAM), HasSubstr("statically linked"));
  EXPECT_EQ(why_libraries_cannot_be_replaced(WEIR_PROGRAM), "");
}

TEST(ProgramFile, that_is_a_script_is_judged_by_its_interpreter) {
  TemporaryDirectory files;
  files.write("good", "#!/bin/sh\n", 0755);
  files.write("bad", std::string("#! ") + STATIC_PROGRAM + " -x\n", 0755);
  files.write("loop", "#!" + (files.path() / "loop").string() + "\n", 0755);
  EXPECT_EQ(why_libraries_cannot_be_replaced(files.path() / "good"), "");
  EXPECT_THAT(why_libraries_cannot_be_replaced(files.path() / "bad"), HasSubstr("statically linked"));
  EXPECT_EQ(why_libraries_cannot_be_replaced(files.path() / "loop"), "");
}

TEST(ProgramFile, that_is_cut_off_or_nonsense_is_left_to_the_kernel_to_refuse) {
  TemporaryDirectory files;
  files.write("short",
              "\x7f"
              "ELF",
              0755);
  files.write("empty", "", 0755);
  EXPECT_EQ(why_libraries_cannot_be_replaced(files.path() / "short"), "");
  EXPECT_EQ(why_libraries_cannot_be_replaced(files.path() / "empty"), "");
}

TEST(ProgramFile, is_looked_for_on_the_path_and_a_later_executable_beats_an_earlier_file) {
  TemporaryDirectory files;
  files.write("a/tool", "x");
  files.write("b/tool", "#!/bin/sh\n", 0755);
  const auto path = (files.path() / "a").string() + ":" + (files.path() / "b").string();
  EXPECT_EQ(find_program("tool", path.c_str()).value(), files.path() / "b/tool");
  EXPECT_EQ(find_program("tool", (files.path() / "a").c_str()).error().status, 126);
  EXPECT_EQ(find_program("tool", "/nonexistent").error().status, 127);
}

TEST(HardwareDevices, are_read_from_sysfs_with_ports_states_and_gids) {
  TemporaryDirectory sysfs;
  const fs::path port = "class/infiniband/mlx5_0/ports/1";
  sysfs.write(port / "state", "4: ACTIVE\n");
  sysfs.write(port / "link_layer", "Ethernet\n");
  sysfs.write(port / "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  sysfs.write(port / "gids/10", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  sysfs.write(port / "gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  sysfs.write(port / "gid_attrs/types/0", "IB/RoCE v1\n");
  sysfs.write(port / "gid_attrs/types/10", "RoCE v2\n");
  const auto devices = hardware_devices(sysfs.path());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "mlx5_0");
  EXPECT_FALSE(devices[0].software);
  ASSERT_EQ(devices[0].ports.size(), 1u);
  EXPECT_EQ(devices[0].ports[0].state, "ACTIVE");
  const auto& gids = devices[0].ports[0].gids;
  ASSERT_EQ(gids.size(), 2u);
  EXPECT_EQ(gids[0].gid, "fe80::1");
  EXPECT_EQ(gids[1].index, 10u);
  EXPECT_EQ(gids[1].gid, "::ffff:10.0.0.1");
  EXPECT_EQ(gids[1].type, "RoCE v2");
  EXPECT_TRUE(hardware_devices("/nonexistent").empty());
}

TEST(SoftwareDevices, of_something_that_is_no_libibverbs_are_an_error_that_names_the_file) {
  TemporaryDirectory libraries;
  libraries.write("libibverbs.so.1", "not a library");
  const auto devices = software_devices(libraries.path());
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error(), HasSubstr((libraries.path() / "libibverbs.so.1").string()));
}

TEST(WeirCompletion, prints_a_script_for_each_shell) {
  for (const auto* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(run_weir({"completion", shell}).out, HasSubstr("weir-cli"));
  const auto unknown = run_weir({"completion", "tcsh"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.out, HasSubstr("'tcsh'"));
}

TEST(Weir, tells_what_it_can_do) {
  EXPECT_EQ(run_weir({"--help"}).status, 0);
  EXPECT_THAT(run_weir({"--help"}).out, HasSubstr("weir run -- ibv_devinfo"));
  EXPECT_EQ(run_weir({"nosuch"}).status, 2);
  EXPECT_EQ(run_weir({}).status, 2);
}

}  // namespace
}  // namespace weir::command
