// What epoll sets hold.
#pragma once

#include <cstdint>
#include <vector>

namespace weir::twin {

// The descriptor that was put into that set with that `data`; -1: unknown.
int in_epoll(int epoll, std::uint64_t data);
// All in that set; empty also if it is no set.
std::vector<int> all_in_epoll(int epoll);

}  // namespace weir::twin
