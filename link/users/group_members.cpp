#include "link/users/group_members.hpp"

#include <cstdlib>
#include <fstream>

namespace weir::link {
namespace {

constexpr int most_names = 65'536;  // read of the kernel's list

std::string prefix_of(const GroupMembers::Group& group) {
  constexpr char digits[] = "0123456789abcdef";
  std::string prefix = "weir-group-";
  for (const std::uint8_t byte : group) {
    prefix += digits[byte >> 4];
    prefix += digits[byte & 0xf];
  }
  return prefix + "-";
}

}  // namespace

std::string GroupMembers::name_of(const Group& group, Slot slot) {
  return prefix_of(group) + std::to_string(slot);
}

// The last column of a line is the name, with an @ for the zero byte of an abstract one.
std::vector<Slot> GroupMembers::slots_in(const Group& group) {
  const std::string wanted = " @" + prefix_of(group);
  std::vector<Slot> slots;
  std::ifstream names("/proc/self/net/unix");
  std::string line;
  for (int i = 0; i < most_names && slots.size() < max_slots && std::getline(names, line); ++i) {
    const std::size_t at = line.find(wanted);
    if (at == std::string::npos) continue;
    char* end = nullptr;
    const unsigned long slot = std::strtoul(line.c_str() + at + wanted.size(), &end, 10);
    if (*end == '\0' && slot < max_slots) slots.push_back(static_cast<Slot>(slot));
  }
  return slots;
}

void GroupMembers::append(const Group& group, Clock::time_point now, std::vector<UserPort::Process>& to) {
  const std::lock_guard lock(mutex_);
  auto known = seen_.find(group);
  if (known == seen_.end() || now - known->second.at >= look_interval) {
    if (known == seen_.end() && seen_.size() >= max_groups) seen_.clear();
    Seen look{now, {}};
    for (const Slot slot : slots_in(group))
      if (const UserPort::Process process = port_.process_in(slot); process != 0)
        look.processes.push_back(process);
    known = seen_.insert_or_assign(group, std::move(look)).first;
  }
  to.insert(to.end(), known->second.processes.begin(), known->second.processes.end());
}

}  // namespace weir::link
