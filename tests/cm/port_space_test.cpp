// Which process may bind which port, among running and ended processes.
#include "verbs/cm/port_space.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "link/unique_fd.hpp"
#include "tests/descriptors_below.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::cm {
namespace {

Endpoint at(const char* text, std::uint16_t port) {
  Endpoint endpoint = any_v4();
  if (::inet_pton(AF_INET, text, endpoint.ip.data() + 12) != 1) {
    EXPECT_EQ(::inet_pton(AF_INET6, text, endpoint.ip.data()), 1) << text;
  }
  endpoint.port = port;
  return endpoint;
}

class Ports : public testing::Test {
 protected:
  Ports() {
    for (const PortOwner& one : {ours_, theirs_}) take_slot(one.slot);
  }

  void take_slot(link::Slot slot) {
    char name[16];
    std::snprintf(name, sizeof name, "slot-%04u", slot);
    std::ofstream(directory_ + "/" + name).put('x');
  }
  PortSpace::Lives lives() {
    return [this](const PortOwner& owner) { return !dead_.contains(owner.slot); };
  }
  int bind(PortSpace& space, const Endpoint& endpoint, Sharing sharing = {}) {
    const auto bound = space.bind(RDMA_PS_TCP, endpoint, sharing);
    return bound ? 0 : bound.error();
  }

  const test::ScratchDirectory scratch_;
  const std::string& directory_ = scratch_.path();
  const PortOwner ours_{1, 111}, theirs_{2, 222};
  std::set<link::Slot> dead_;
  PortSpace our_space_{directory_, ours_, lives()};
  PortSpace their_space_{directory_, theirs_, lives()};
};

TEST_F(Ports, a_bound_address_is_found_by_others) {
  ASSERT_EQ(bind(our_space_, at("127.0.0.1", 7471)), 0);
  EXPECT_EQ(their_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)), ours_);
  EXPECT_FALSE(their_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7472)));
  EXPECT_FALSE(their_space_.find(RDMA_PS_UDP, at("127.0.0.1", 7471)));
  EXPECT_FALSE(their_space_.find(RDMA_PS_TCP, at("127.0.0.2", 7471)));
}

TEST_F(Ports, a_listener_is_found_from_when_it_listens) {
  const auto bound = our_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
  ASSERT_TRUE(bound);
  EXPECT_FALSE(their_space_.find_listener(RDMA_PS_TCP, at("127.0.0.1", 7471)));
  our_space_.listening(*bound);
  EXPECT_EQ(their_space_.find_listener(RDMA_PS_TCP, at("127.0.0.1", 7471)), ours_);
}

TEST_F(Ports, a_released_address_is_free) {
  const auto bound = our_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
  ASSERT_TRUE(bound);
  our_space_.release(*bound);
  EXPECT_FALSE(their_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)));
  EXPECT_EQ(bind(their_space_, at("127.0.0.1", 7471)), 0);
}

struct Pair {
  const char* name;
  const char* held;
  Sharing held_sharing;
  const char* wanted;
  Sharing wanted_sharing;
  int by_us;    // what we get when we hold the first
  int by_them;  // what the other process gets
};
class Conflicts : public Ports, public testing::WithParamInterface<Pair> {};

TEST_P(Conflicts, are_told) {
  const auto& pair = GetParam();
  ASSERT_EQ(bind(our_space_, at(pair.held, 7471), pair.held_sharing), 0);
  EXPECT_EQ(bind(their_space_, at(pair.wanted, 7471), pair.wanted_sharing), pair.by_them);
  if (pair.by_them == 0) return;
  EXPECT_EQ(bind(our_space_, at(pair.wanted, 7471), pair.wanted_sharing), pair.by_us);
  EXPECT_EQ(bind(their_space_, at(pair.wanted, 7472), pair.wanted_sharing), 0);
}

constexpr Sharing alone, reuse{.reuse_address = true}, v6_only{.v6_only = true};
INSTANTIATE_TEST_SUITE_P(
    Ports, Conflicts,
    testing::Values(
        Pair{"same_address", "127.0.0.1", alone, "127.0.0.1", alone, EADDRINUSE, EADDRINUSE},
        Pair{"wildcard_then_address", "0.0.0.0", alone, "127.0.0.1", alone, EADDRINUSE, EADDRINUSE},
        Pair{"address_then_wildcard", "127.0.0.1", alone, "0.0.0.0", alone, EADDRINUSE, EADDRINUSE},
        Pair{"other_address", "127.0.0.1", alone, "127.0.0.2", alone, 0, 0},
        Pair{"v6_wildcard_covers_v4", "::", alone, "127.0.0.1", alone, EADDRINUSE, EADDRINUSE},
        Pair{"v6_wildcard_after_v4", "127.0.0.1", alone, "::", alone, EADDRINUSE, EADDRINUSE},
        Pair{"v6_only_leaves_v4", "::", v6_only, "0.0.0.0", alone, 0, 0},
        Pair{"v6_only_takes_v6", "::", v6_only, "::1", alone, EADDRINUSE, EADDRINUSE},
        Pair{"reuse_within_a_process", "0.0.0.0", reuse, "0.0.0.0", reuse, 0, EADDRINUSE},
        Pair{"reuse_by_one_only", "0.0.0.0", alone, "0.0.0.0", reuse, EADDRINUSE, EADDRINUSE}),
    [](const auto& one) { return one.param.name; });

TEST_F(Ports, a_shared_address_is_free_when_the_last_holder_releases_it) {
  const auto first = our_space_.bind(RDMA_PS_TCP, at("0.0.0.0", 7471), reuse);
  const auto second = our_space_.bind(RDMA_PS_TCP, at("0.0.0.0", 7471), reuse);
  ASSERT_TRUE(first && second);
  our_space_.release(*first);
  EXPECT_EQ(their_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)), ours_);
  our_space_.release(*second);
  EXPECT_FALSE(their_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)));
}

TEST_F(Ports, the_more_specific_owner_is_found) {
  // Only possible when the wildcard's owner is dead and its file was left.
  ASSERT_EQ(bind(their_space_, at("0.0.0.0", 7471)), 0);
  dead_.insert(theirs_.slot);
  ASSERT_EQ(bind(our_space_, at("127.0.0.1", 7471)), 0);
  EXPECT_EQ(our_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)), ours_);
  EXPECT_FALSE(our_space_.find(RDMA_PS_TCP, at("127.0.0.2", 7471)));
}

TEST_F(Ports, port_zero_takes_a_free_one) {
  std::set<std::uint16_t> taken;
  for (int i = 0; i < 50; ++i) {
    const auto bound = (i % 2 == 0 ? our_space_ : their_space_).bind(RDMA_PS_TCP, at("0.0.0.0", 0), {});
    ASSERT_TRUE(bound);
    EXPECT_GE(bound->endpoint.port, 32768);
    EXPECT_TRUE(taken.insert(bound->endpoint.port).second);
  }
}

TEST_F(Ports, what_a_dead_process_left_is_taken_over) {
  ASSERT_EQ(bind(their_space_, at("0.0.0.0", 7471)), 0);
  EXPECT_EQ(bind(our_space_, at("0.0.0.0", 7471)), EADDRINUSE);
  dead_.insert(theirs_.slot);
  EXPECT_EQ(bind(our_space_, at("0.0.0.0", 7471)), 0);
  EXPECT_EQ(our_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)), ours_);
}

TEST_F(Ports, what_our_slots_last_owner_left_is_taken_over) {
  PortSpace before(directory_, {ours_.slot, 999}, lives());
  ASSERT_EQ(bind(before, at("0.0.0.0", 7471)), 0);
  EXPECT_EQ(bind(our_space_, at("0.0.0.0", 7471)), 0);
}

TEST_F(Ports, binding_anything_sweeps_what_processes_without_a_slot_left) {
  ASSERT_EQ(bind(their_space_, at("127.0.0.1", 7471)), 0);
  std::filesystem::remove(directory_ + "/slot-0002");
  ASSERT_EQ(bind(our_space_, at("127.0.0.1", 9999)), 0);
  EXPECT_FALSE(our_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)));
}

TEST_F(Ports, whoever_starts_sweeps_what_processes_without_a_slot_left) {
  ASSERT_EQ(bind(their_space_, at("0.0.0.0", 7471)), 0);
  ASSERT_EQ(bind(our_space_, at("0.0.0.0", 7472)), 0);
  std::filesystem::remove(directory_ + "/slot-0002");
  take_slot(3);
  const PortSpace starts(directory_, {3, 333}, lives());
  EXPECT_FALSE(starts.find(RDMA_PS_TCP, at("127.0.0.1", 7471))) << "its process was killed";
  EXPECT_EQ(starts.find(RDMA_PS_TCP, at("127.0.0.1", 7472)), ours_) << "its process lives";
}

TEST_F(Ports, files_that_are_not_ours_to_read_are_nobodys) {
  const std::string folder = directory_ + "/cm/tcp-7471", name = folder + "/00000000000000000000ffff7f000001";
  for (const std::string& content :
       {std::string(), std::string("garbage"), std::string(24, '\0'), std::string(24, '\xff')}) {
    std::filesystem::create_directories(folder);
    std::ofstream(name, std::ios::trunc | std::ios::binary) << content;
    EXPECT_FALSE(our_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)));
    const auto bound = our_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
    ASSERT_TRUE(bound);
    our_space_.release(*bound);
  }
}

// As many descriptors as it takes to look into the folder and not into the files there.
TEST_F(Ports, a_port_whose_holder_cannot_be_read_now_is_not_taken_over) {
  ASSERT_EQ(bind(their_space_, at("127.0.0.1", 7471)), 0);
  const link::UniqueFd lowest(::fcntl(0, F_DUPFD_CLOEXEC, 0));
  for (int few = 1; few < 6; ++few) {
    SCOPED_TRACE(few);
    {
      const test::DescriptorsBelow limit(lowest.get() + few);
      EXPECT_THAT(bind(our_space_, at("127.0.0.1", 7471)), testing::AnyOf(EMFILE, EADDRINUSE));
    }
    EXPECT_EQ(our_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)), theirs_);
  }
}

TEST_F(Ports, an_address_that_is_released_with_no_descriptor_left_is_free) {
  const link::UniqueFd lowest(::fcntl(0, F_DUPFD_CLOEXEC, 0));
  for (int few = 0; few < 6; ++few) {
    SCOPED_TRACE(few);
    const auto bound = our_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
    ASSERT_TRUE(bound);
    ASSERT_EQ(our_space_.listening(*bound), 0);
    {
      const test::DescriptorsBelow limit(lowest.get() + few);
      our_space_.release(*bound);
    }
    EXPECT_FALSE(their_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)));
    const auto next = their_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
    ASSERT_TRUE(next);
    their_space_.release(*next);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/cm"));
}

TEST_F(Ports, a_shared_address_that_one_holder_releases_with_no_descriptor_left_stays_the_others) {
  const auto first = our_space_.bind(RDMA_PS_TCP, at("0.0.0.0", 7471), reuse);
  const auto second = our_space_.bind(RDMA_PS_TCP, at("0.0.0.0", 7471), reuse);
  ASSERT_TRUE(first && second);
  const link::UniqueFd lowest(::fcntl(0, F_DUPFD_CLOEXEC, 0));
  {
    const test::DescriptorsBelow limit(lowest.get());
    our_space_.release(*first);
  }
  EXPECT_EQ(their_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)), ours_);
  our_space_.release(*second);
  EXPECT_EQ(bind(their_space_, at("0.0.0.0", 7471)), 0);
}

TEST_F(Ports, what_another_bound_after_the_directory_was_cleared_is_not_released) {
  for (const bool has_descriptors : {true, false}) {
    SCOPED_TRACE(has_descriptors);
    const auto bound = our_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
    ASSERT_TRUE(bound);
    std::filesystem::rename(directory_ + "/cm", directory_ + "/cleared");  // or its inodes are used again
    const auto next = their_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
    ASSERT_TRUE(next);
    {
      std::optional<test::DescriptorsBelow> limit;
      if (!has_descriptors) limit.emplace(0);
      our_space_.release(*bound);
    }
    EXPECT_EQ(our_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7471)), theirs_);
    their_space_.release(*next);
    std::filesystem::remove_all(directory_ + "/cleared");
  }
}

// Not one by one at each bind: with thousands of them that takes longer than everything else.
TEST_F(Ports, binding_does_not_look_at_the_ports_that_others_hold) {
  for (int i = 0; i < 32; ++i) ASSERT_EQ(bind(i % 2 == 0 ? our_space_ : their_space_, at("127.0.0.1", 0)), 0);
  PortSpace starts(directory_, ours_, lives());  // looks at all of them, to sweep
  const link::UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  int watched = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    if (entry.path().string().find("tcp") == std::string::npos || !entry.is_regular_file()) continue;
    ASSERT_GE(::inotify_add_watch(watch.get(), entry.path().c_str(), IN_OPEN), 0);
    ++watched;
  }
  ASSERT_EQ(watched, 32);
  for (const Endpoint& wanted : {at("127.0.0.1", 7471), at("0.0.0.0", 7472), at("::", 7473)})
    EXPECT_EQ(bind(starts, wanted), 0);
  inotify_event opened;
  EXPECT_EQ(::read(watch.get(), &opened, sizeof opened), -1) << "somebody else's port was looked at";
}

TEST_F(Ports, what_is_bound_is_written_again_after_the_directory_was_cleared) {
  const auto bound = our_space_.bind(RDMA_PS_TCP, at("127.0.0.1", 7471), {});
  ASSERT_TRUE(bound);
  ASSERT_EQ(our_space_.listening(*bound), 0);
  ASSERT_EQ(bind(our_space_, at("127.0.0.1", 7472)), 0);
  std::filesystem::remove_all(directory_ + "/cm");
  ASSERT_EQ(bind(their_space_, at("127.0.0.1", 7472)), 0);
  our_space_.restore();
  EXPECT_EQ(their_space_.find_listener(RDMA_PS_TCP, at("127.0.0.1", 7471)), ours_);
  EXPECT_EQ(our_space_.find(RDMA_PS_TCP, at("127.0.0.1", 7472)), theirs_) << "it was quicker";
  our_space_.release(*bound);
  EXPECT_EQ(bind(their_space_, at("127.0.0.1", 7471)), 0);
}

TEST_F(Ports, a_port_leaves_nothing_behind_when_it_is_released) {
  for (const Endpoint& wanted : {at("127.0.0.1", 7471), at("127.0.0.2", 7471)}) {
    const auto bound = our_space_.bind(RDMA_PS_TCP, wanted, {});
    ASSERT_TRUE(bound);
    our_space_.release(*bound);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_ + "/cm"));
}

TEST_F(Ports, a_directory_that_is_gone_is_an_error) {
  std::filesystem::remove_all(directory_);
  EXPECT_NE(bind(our_space_, at("127.0.0.1", 7471)), 0);
}

}  // namespace
}  // namespace weir::cm
