// A number that no peer can guess: port numbers, PSNs, transactions and keys begin with one.
//
// std::random_device asks the processor what it can each time it is made, and in a virtual machine that
// question goes to the host: 23 us instead of 0.3.
//
// Any thread.
#pragma once

#include <cstdint>

namespace weir::link {

std::uint64_t random_number();

}  // namespace weir::link
