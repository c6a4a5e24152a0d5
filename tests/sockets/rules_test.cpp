#include "sockets/rules.hpp"

#include <gtest/gtest.h>

namespace weir::sockets {
namespace {

struct Asked {
  const char* rules;
  const char* program;
  std::uint32_t own_port, peers_port;
  bool allowed;
};

TEST(Rules, the_first_that_fits_program_and_port_of_either_end_decides) {
  for (const Asked& row :
       {Asked{"", "curl", 40000, 80, true},
        {"off", "curl", 40000, 80, false},
        {"off port 80", "curl", 40000, 80, false},
        {"off port 80", "nginx", 80, 40000, false},
        {"off port 80", "nginx", 81, 40000, true},
        {"off port 7000-7010", "redis-server", 7010, 40000, false},
        {"off port 7000-7010", "redis-server", 7011, 40000, true},
        {"on program redis-*, off", "redis-server", 1, 2, true},
        {"on program redis-*, off", "memcached", 1, 2, false},
        {"off program pgbench port 5432", "pgbench", 40000, 5433, true},
        {"off program pgbench port 5432", "pgbench", 40000, 5432, false},
        {"off port 22 # ssh, scp\n\ton port 0-65535 program scp,off", "scp", 40000, 2222, true},
        {" ,, # nothing\n", "scp", 40000, 22, true}}) {
    const auto rules = Rules::parse(row.rules);
    ASSERT_TRUE(rules) << row.rules << ": " << rules.error();
    EXPECT_EQ(rules->allow(row.program, row.own_port, row.peers_port), row.allowed)
        << row.rules << ", " << row.program;
  }
}

TEST(Rules, what_makes_no_sense_is_named) {
  for (const char* wrong : {"of", "port 22", "off port", "off port x", "off port 65536", "off port 9-8",
                            "off port 1-", "off program", "on host there"}) {
    const auto rules = Rules::parse(wrong);
    ASSERT_FALSE(rules) << wrong;
    EXPECT_NE(rules.error().find('\''), std::string::npos) << rules.error();
  }
}

TEST(Rules, no_more_are_kept_than_there_is_room_for) {
  std::string many;
  for (std::size_t i = 0; i < Rules::most_rules; ++i) many += "off port 1,";
  EXPECT_TRUE(Rules::parse(many));
  EXPECT_FALSE(Rules::parse(many + "off"));
  EXPECT_FALSE(Rules::parse(std::string(Rules::most_bytes + 1, ' ')));
}

}  // namespace
}  // namespace weir::sockets
