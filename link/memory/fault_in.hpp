// Page faults taken beforehand: whether a range of our own memory can be touched, and its pages made so that
// it can.
#pragma once

#include <cstdint>

namespace weir::link {

// Advice to madvise(2) since Linux 5.14; glibc 2.36 does not name it everywhere.
inline constexpr int populate_read = 22, populate_write = 23;

enum class Touch : bool { read, write };

// False: some of it is not mapped, or protected against that.
bool fault_in(const void* at, std::uint64_t length, Touch);

}  // namespace weir::link
