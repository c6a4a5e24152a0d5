// Page faults taken beforehand: whether a range of our own memory can be touched, and its pages made so that
// it can.
#pragma once

#include <cstdint>

namespace weir::link {

enum class Touch : bool { read, write };

// False: some of it is not mapped, or protected against that.
bool fault_in(const void* at, std::uint64_t length, Touch);

}  // namespace weir::link
