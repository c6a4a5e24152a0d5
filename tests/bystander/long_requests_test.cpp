// The table of long requests: no command of the server is missing, and no row keeps the server for long.
#include "tests/bystander/long_requests.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <sstream>

#include "kv/command/command.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::bystander {
namespace {

using kv::Command;
using Clock = std::chrono::steady_clock;

std::set<std::string> commands_of(std::span<const LongRequests> rows) {
  std::set<std::string> names;
  for (const std::string_view row : rows) {
    std::istringstream requests{std::string(row)};
    for (std::string request; std::getline(requests, request, ';');) {
      std::istringstream words{request};
      std::string name, second;
      words >> name >> second;
      const Command* command = kv::find_command(name);
      if (command != nullptr && !command->subcommands.empty())
        command = kv::find_subcommand(*command, second);
      EXPECT_NE(command, nullptr) << request;
      if (command != nullptr) names.insert(command->full_name());
    }
  }
  return names;
}

std::set<std::string> excused() {
  std::set<std::string> names;
  for (const NeverLong& reason : never_long()) {
    std::istringstream words{std::string(reason.names)};
    for (std::string name; words >> name;) {
      EXPECT_NE(kv::find_full_name(name), nullptr) << name;
      EXPECT_TRUE(names.insert(name).second) << name << " has two reasons";
    }
  }
  return names;
}

// Of commands with subcommands only these: nobody can call the container.
std::vector<const Command*> callable_commands() {
  std::vector<const Command*> all;
  for (const Command* command : kv::all_commands()) {
    if (command->subcommands.empty()) all.push_back(command);
    for (const Command& sub : command->subcommands) all.push_back(&sub);
  }
  return all;
}

TEST(LongRequests, have_a_row_for_each_command_or_a_reason_why_not) {
  std::set<std::string> rows = commands_of(requests_of_large_values());
  rows.merge(commands_of(requests_of_expiring_fields()));
  const std::set<std::string> without = excused();
  for (const Command* command : callable_commands()) {
    const std::string name = command->full_name();
    const bool in_rows = rows.contains(name);
    const bool has_reason = without.contains(name) || without.contains(std::string(command->container));
    EXPECT_FALSE(in_rows && has_reason) << name << " has a row, and a reason why it needs none";
    // The flag says that the time does not depend on the size of the value.
    if (command->has(kv::flag::fast) || command->run == nullptr) continue;
    EXPECT_TRUE(in_rows || has_reason)
        << name << " may take long: give it a row in long_requests.cpp, or say there why it cannot";
  }
}

TEST(LongRequests, have_a_row_for_each_command_of_expiring_fields) {
  const std::set<std::string> rows = commands_of(requests_of_expiring_fields());
  for (const auto family : {kv::field_expiry_commands(), kv::field_combined_commands()})
    for (const Command& command : family)
      EXPECT_TRUE(rows.contains(std::string(command.name))) << command.name;
}

// Far longer than a working server takes on a busy machine; it detects what grows faster than the value.
constexpr std::chrono::seconds longest{5};

constexpr std::size_t elements = 20'000;

void expect_short(const std::vector<std::string>& begin, std::span<const LongRequests> rows) {
  kv::testing::RunningServer server;
  kv::testing::WireClient client = server.connect();
  for (const std::string& request : begin) {
    client.send(request);
    const std::string reply = client.reply();
    ASSERT_NE(reply[0], '-') << request.substr(0, 100) << reply;
  }
  Clock::duration worst{};
  std::string_view worst_row;
  for (const std::string_view row : rows) {
    for (const std::string& request : expand(row, elements)) {
      const auto began = Clock::now();
      client.send(request);
      const std::string reply = client.reply();
      const auto took = Clock::now() - began;
      EXPECT_NE(reply[0], '-') << row << ": " << request.substr(0, 100) << reply;
      EXPECT_LT(took, longest) << row;
      if (took > worst) worst = took, worst_row = row;
    }
  }
  std::cout << "the longest took " << std::chrono::duration<double, std::milli>(worst).count()
            << " ms: " << worst_row << "\n";
}

TEST(LongRequests, of_large_values_are_answered_soon) {
  expect_short(make_large_values(elements), requests_of_large_values());
}
TEST(LongRequests, of_expiring_fields_are_answered_soon) {
  expect_short(make_expiring_fields(elements), requests_of_expiring_fields());
}

}  // namespace
}  // namespace weir::bystander
