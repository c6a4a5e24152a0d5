// What `weir`'s subcommands have in common: addresses to listen on, and output that cannot be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_weir.hpp"

namespace weir::command {
namespace {

using testing::HasSubstr;

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
