// What the subcommands of `weir` share: addresses to listen on, and output that cannot be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/run_weir.hpp"

namespace weir::command {
namespace {

using testing::HasSubstr, testing::Not;

TEST(WeirHelp, fits_a_terminal_and_calls_values_by_what_they_are) {
  for (const std::string command : {"run", "trace", "seeds", "devices", "stat", "plan", "sim", "collector",
                                    "rpc", "tensor", "completion"}) {
    const auto ended = run_weir({command, "--help"});
    EXPECT_EQ(ended.status, 0) << command;
    EXPECT_THAT(ended.out, HasSubstr("Usage: weir " + command));
    for (const char* word : {"TEXT", "FLOAT", "UINT", " in ["})
      EXPECT_THAT(ended.out, Not(HasSubstr(word))) << command;
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
    EXPECT_EQ(run_weir({"help", command}).out, ended.out);
  }
}

// The words alone: what wrapping must not change.
std::vector<std::string> words_of(const std::string& text) {
  std::istringstream all(text);
  std::vector<std::string> words;
  for (std::string word; all >> word;)
    if (word != "\\") words.push_back(word);
  return words;
}

TEST(ProgramsHelp, is_as_wide_as_the_terminal) {
  const auto folder = fs::path(WEIR_PROGRAM).parent_path();
  std::vector<std::pair<std::string, std::string>> helps;
  for (const char* program : {"weir", "weir-server", "weir-cli", "weir-benchmark"})
    helps.emplace_back(program, "");
  for (const char* command : {"run", "trace", "faults", "seeds", "fabric", "devices", "sockets", "stat",
                              "plan", "sim", "collector", "rpc", "tensor", "completion"})
    helps.emplace_back("weir", command);
  for (const auto& [program, command] : helps) {
    const auto help = [&] {
      auto words = command.empty() ? std::vector<std::string>{} : std::vector{command};
      words.emplace_back("--help");
      return run_program(folder / program, words).out;
    };
    const std::string as_written = help();
    for (const std::size_t columns : {80, 72}) {
      ::setenv("COLUMNS", std::to_string(columns).c_str(), 1);
      const std::string narrow = help();
      ::unsetenv("COLUMNS");
      EXPECT_EQ(words_of(narrow), words_of(as_written)) << program << " " << command;
      std::istringstream lines(narrow);
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(line.size(), columns) << program << " " << command << ": " << line;
    }
  }
}

struct CommandRow {
  std::vector<std::string> words;
  int status;
};

TEST(WeirOutput, that_cannot_be_written_is_said_and_is_no_success) {
  const CommandRow rows[] = {{{"--help"}, 1},
                             {{"--version"}, 1},
                             {{"run", "--help"}, 1},
                             {{"trace", "--help"}, 1},
                             {{"seeds", "--help"}, 1},
                             {{"devices", "--help"}, 1},
                             {{"stat", "--help"}, 1},
                             {{"plan", "--help"}, 4},
                             {{"plan", "--models"}, 4},
                             {{"sim", "--help"}, 4},
                             {{"sim", "--settings"}, 4},
                             {{"collector", "--help"}, 4},
                             {{"rpc", "--help"}, 1},
                             {{"tensor", "--help"}, 1},
                             {{"completion", "--help"}, 1},
                             {{"completion", "bash"}, 1}};
  for (const auto& [words, status] : rows) {
    const auto ended = run_weir(words, "/dev/full");
    EXPECT_EQ(ended.status, status) << words.front();
    EXPECT_THAT(ended.out, HasSubstr("cannot write to standard output")) << words.front();
  }
}

TEST(ProgramsOutput, that_cannot_be_written_is_said_and_is_no_success) {
  const auto folder = fs::path(WEIR_PROGRAM).parent_path();
  for (const char* program : {"weir-cli", "weir-benchmark", "weir-server"})
    for (const char* word : {"--help", "--version", "-v"}) {
      const auto ended = run_program(folder / program, {word}, "/dev/full");
      EXPECT_EQ(ended.status, 1) << program << " " << word;
      EXPECT_THAT(ended.out, HasSubstr(std::string(program) + ": cannot write to ")) << word;
    }
}

TEST(WeirAddress, that_has_no_port_of_16_bits_is_refused) {
  const std::vector<std::vector<std::string>> rows = {{"stat", "--listen"},
                                                      {"collector", "--listen"},
                                                      {"collector", "--metrics"},
                                                      {"sim", "none.toml", "--telemetry"}};
  for (auto words : rows)
    for (const std::string address :
         {"x", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http"}) {
      words.push_back(address);
      const auto ended = run_weir(words);
      EXPECT_EQ(ended.status, 2) << words.front() << " " << address;
      EXPECT_THAT(ended.out, HasSubstr("port of 0 to 65535"));
      EXPECT_THAT(ended.out, HasSubstr("'" + address + "'"));
      words.pop_back();
    }
}

}  // namespace
}  // namespace weir::command
