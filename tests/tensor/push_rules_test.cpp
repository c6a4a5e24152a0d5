#include "tensor/hub/push_rules.hpp"

#include <gtest/gtest.h>

namespace weir::tensor {
namespace {

TEST(PushRules, names_are_taken_by_themselves_or_by_their_beginning) {
  const auto rules = PushRules::make({.names = "grad/*,status"});
  ASSERT_TRUE(rules) << rules.error().what;
  struct Row {
    const char* name;
    bool taken;
  };
  for (const Row& each : {Row{"grad/3", true}, Row{"grad/", true}, Row{"status", true}, Row{"status2", false},
                          Row{"grad", false}, Row{"", false}, Row{"weights", false}})
    EXPECT_EQ(rules->takes(each.name), each.taken) << each.name;
  EXPECT_TRUE(rules->takes_any());
}

TEST(PushRules, take_nothing_by_default_and_everything_when_told_so) {
  EXPECT_FALSE(PushRules::make({})->takes("a"));
  EXPECT_FALSE(PushRules::make({})->takes_any());
  EXPECT_TRUE(PushRules::make({.names = "*"})->takes("a"));
}

TEST(PushRules, admit_addresses_of_their_networks) {
  struct Row {
    const char* from;
    const char* peer;
    bool admitted;
  };
  for (const Row& each : {Row{"", "10.1.2.3", true}, Row{"10.0.0.0/8", "10.1.2.3", true},
                          Row{"10.0.0.0/8", "11.1.2.3", false}, Row{"10.128.0.0/9", "10.127.0.1", false},
                          Row{"127.0.0.1", "127.0.0.1", true}, Row{"127.0.0.1", "127.0.0.2", false},
                          Row{"127.0.0.1", "::ffff:127.0.0.1", true}, Row{"::1,10.0.0.1", "10.0.0.1", true},
                          Row{"fd00::/8", "fd12::1", true}, Row{"fd00::/8", "10.0.0.1", false},
                          Row{"0.0.0.0/0", "10.0.0.1", true}, Row{"0.0.0.0/0", "fd12::1", false}}) {
    const auto rules = PushRules::make({.names = "*", .from = each.from});
    ASSERT_TRUE(rules) << each.from;
    EXPECT_EQ(rules->admits(asio::ip::make_address(each.peer)), each.admitted)
        << each.from << " " << each.peer;
  }
}

TEST(PushRules, say_what_does_not_parse) {
  for (const PushSettings& each :
       {PushSettings{.names = "a*b"}, PushSettings{.names = "**"},
        PushSettings{.names = std::string(2000, 'x')}, PushSettings{.from = "host"},
        PushSettings{.from = "10.0.0.0/33"}, PushSettings{.from = "10.0.0.0/"},
        PushSettings{.from = "10.0.0.0/8x"}, PushSettings{.from = "::1/129"}})
    EXPECT_EQ(PushRules::make(each).error().code, Errc::bad_address) << each.names << each.from;
}

TEST(Budget, gives_no_more_than_there_is_and_takes_it_back) {
  const auto budget = std::make_shared<Budget>(100);
  {
    const Charge first(budget, 60);
    EXPECT_TRUE(first);
    EXPECT_FALSE(Charge(budget, 41));
    EXPECT_FALSE(Charge(budget, ~0ULL));
    Charge second(budget, 40);
    EXPECT_TRUE(second);
    const Charge moved = std::move(second);
    EXPECT_EQ(budget->used(), 100U);
  }
  EXPECT_EQ(budget->used(), 0U);
}

}  // namespace
}  // namespace weir::tensor
