// The members of multicast groups among other users' processes on this host.
//
// A member holds an abstract name made of the group and its slot, beside its slot's own (user_port.hpp), and
// the kernel lists all names of a network namespace. So joining asks nobody, and a member that is killed has
// left. A sender looks at the list when it first sends to a group, and then again after look_interval: who
// joins while others send gets their datagrams from then on at the latest. Whoever makes up a name is sent
// the group's datagrams, as anybody is who joins.
//
// Threading: any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "link/same_host.hpp"
#include "link/users/user_port.hpp"

namespace weir::link {

class GroupMembers {
 public:
  using Group = std::array<std::uint8_t, 16>;  // its GID
  static constexpr std::chrono::milliseconds look_interval{100};
  static constexpr std::size_t max_groups = 256;  // remembered; sending to more looks more often

  // It outlives this.
  explicit GroupMembers(UserPort& port) : port_(port) {}

  // False: another process has the name, and other users' datagrams do not come. Each join needs its own
  // leave.
  bool join(const Group& group) { return port_.listen(name_of(group, port_.slot())); }
  void leave(const Group& group) { port_.leave(name_of(group, port_.slot())); }

  // Appends the processes of other users that are in the group.
  void append(const Group& group, Clock::time_point now, std::vector<UserPort::Process>& to);

 private:
  struct Seen {
    Clock::time_point at;
    std::vector<UserPort::Process> processes;
  };
  static std::string name_of(const Group& group, Slot slot);
  static std::vector<Slot> slots_in(const Group& group);

  UserPort& port_;
  std::mutex mutex_;
  std::map<Group, Seen> seen_;
};

}  // namespace weir::link
