// Where in the program something happened: code addresses now, names and lines only when a report needs them.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace weir::check {

struct Place {
  static constexpr std::size_t max_frames = 10;
  std::array<void*, max_frames> frames{};  // return addresses, innermost first, then nullptr
  enum class Depth : bool { stack, call };
  Depth depth = Depth::stack;  // call: CallSite's two addresses, of which the second may be none
};

// All of the stack above the checker and the RDMA libraries.
Place place_here();

struct Frame {
  std::string function;  // "??": not known
  std::string where;     // "buggy.c:27", or "buggy+0x1234" if there is no debug information
};
std::vector<Frame> frames_of(const Place&);
// Whether the innermost frame is code of the RDMA libraries themselves.
bool is_of_rdma_libraries(const void* code);

}  // namespace weir::check
