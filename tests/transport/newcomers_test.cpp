// Who leaves a full server: silent ones first, and of the source that has the most of them.
#include "transport/newcomers.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/waiting/shares_cases.hpp"
#include "transport/handshake_places.hpp"

namespace weir::transport {
namespace {

using Lack = Newcomers::Lack;
using Room = Newcomers::Room;

struct NewcomersTest : testing::Test {
  std::shared_ptr<Newcomers> all = std::make_shared<Newcomers>();
  std::vector<int> left;
  Newcomers::Stay comes(int who, const char* from) {
    return all->enter(from, [this, who](Lack) {
      left.push_back(who);
      return Room::now;
    });
  }
};

TEST_F(NewcomersTest, oldest_leaves_first) {
  const auto first = comes(1, "10.0.0.1"), second = comes(2, "10.0.0.1");
  EXPECT_EQ(all->make_room(Lack::place), Room::now);
  EXPECT_EQ(all->make_room(Lack::place), Room::now);
  EXPECT_EQ(left, (std::vector{1, 2}));
  EXPECT_EQ(all->make_room(Lack::place), Room::none);
}

TEST_F(NewcomersTest, leave_in_the_order_of_the_cases) {
  for (const waiting::SharesCase& row : waiting::shares_cases) {
    left.clear();
    std::vector<Newcomers::Stay> stays;
    for (const char event : row.events) {
      if (event >= '0' && event <= '9')
        stays[static_cast<std::size_t>(event - '0')].move_on();
      else
        stays.push_back(comes(static_cast<int>(stays.size()), (std::string("10.0.0.") + event).c_str()));
    }
    while (all->make_room(Lack::place) != Room::none) {
    }
    std::string numbers;
    for (const int who : left) numbers += std::to_string(who);
    EXPECT_EQ(numbers, row.leave) << row.name;
  }
}

TEST_F(NewcomersTest, settled_ones_stay) {
  auto first = comes(1, "10.0.0.1");
  const auto second = comes(2, "10.0.0.1");
  first.settle();
  first.settle();
  EXPECT_EQ(all->size(), 1U);
  all->make_room(Lack::place);
  EXPECT_EQ(left, std::vector{2});
}

TEST_F(NewcomersTest, ones_that_are_gone_make_no_room) {
  {
    const auto gone = comes(1, "10.0.0.1");
  }
  EXPECT_EQ(all->make_room(Lack::place), Room::none);
}

TEST_F(NewcomersTest, source_with_the_most_loses_one) {
  std::vector<Newcomers::Stay> stays;
  stays.push_back(comes(1, "10.0.0.1"));  // the oldest, but the only one of its source
  for (int who = 2; who < 6; ++who) stays.push_back(comes(who, "10.0.0.2"));
  for (int i = 0; i < 3; ++i) all->make_room(Lack::place);
  EXPECT_EQ(left, (std::vector{2, 3, 4}));
  all->make_room(Lack::place);  // one each: the older one
  EXPECT_EQ(left.back(), 1);
}

TEST_F(NewcomersTest, newcomer_may_end_its_own_stay_as_it_leaves) {
  Newcomers::Stay own;
  own = all->enter("10.0.0.1", [&](Lack) {
    own.settle();
    return Room::soon;
  });
  EXPECT_EQ(all->make_room(Lack::place), Room::soon);
  EXPECT_EQ(all->size(), 0U);
}

TEST_F(NewcomersTest, many_come_and_go_in_any_order) {
  std::vector<Newcomers::Stay> stays;
  for (int who = 0; who < 1000; ++who)
    stays.push_back(comes(who, who % 3 == 0 ? "10.0.0.1" : who % 7 == 0 ? "2001:db8::1" : "unix"));
  for (std::size_t i = 0; i < stays.size(); i += 2) stays[i].settle();
  EXPECT_EQ(all->size(), 500U);
  while (all->make_room(Lack::place) != Room::none) {
  }
  EXPECT_EQ(left.size(), 500U);
}

TEST(HandshakePlaces, are_given_up_in_the_order_of_the_cases) {
  for (const waiting::SharesCase& row : waiting::shares_cases) {
    const auto places = std::make_shared<HandshakePlaces>();
    std::vector<HandshakePlaces::Place> taken(row.events.size());
    std::size_t count = 0;
    std::string left;
    for (const char event : row.events) {
      if (event >= '0' && event <= '9') {
        taken[static_cast<std::size_t>(event - '0')].move_on();
        continue;
      }
      taken[count] = places->take();
      taken[count].may_leave(std::string("10.0.0.") + event, [&taken, &left, count](Lack) {
        left += std::to_string(count);
        taken[count].give_back();
        return Room::now;
      });
      ++count;
    }
    std::vector<HandshakePlaces::Place> rest;  // which can not leave
    while (!places->full()) rest.push_back(places->take());
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(places->has_room()) << row.name;
      rest.push_back(places->take());
    }
    EXPECT_FALSE(places->has_room()) << row.name;
    EXPECT_EQ(left, row.leave) << row.name;
  }
}

TEST(Source, is_an_address_or_the_network_of_one) {
  struct Row {
    const char *address, *source;
  };
  const Row rows[] = {{"10.0.0.1", "10.0.0.1"},
                      {"::ffff:10.0.0.1", "10.0.0.1"},
                      {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
                      {"2001:db8:1:2::9", "2001:db8:1:2::"},
                      {"::1", "::"},
                      {"unix", "unix"},
                      {"", ""}};
  for (const Row& row : rows) EXPECT_EQ(source_of(row.address), row.source) << row.address;
}

TEST(Source, of_a_peer_has_no_port) {
  struct Row {
    const char *peer, *source;
  };
  const Row rows[] = {{"10.0.0.1:4711", "10.0.0.1"},
                      {"[::ffff:10.0.0.1]:80", "10.0.0.1"},
                      {"[2001:db8:1:2::9]:80", "2001:db8:1:2::"},
                      {"/run/weir.sock:0", "/run/weir.sock"},
                      {"?", "?"}};
  for (const Row& row : rows) EXPECT_EQ(source_of_peer(row.peer), row.source) << row.peer;
}

}  // namespace
}  // namespace weir::transport
