// The payload of a message into the buffers of a receive, by the owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/nic_parts.hpp"

namespace weir::rnic {

// False: the buffers are not what they were, or too short. The lkeys were checked by the initiator when it
// took the WQE; they are checked again because the region may have been deregistered since, and this copy
// would write into freed memory.
bool scatter_into(const NicParts&, std::uint32_t pd, const ReceiveWqe&, std::span<const std::byte> payload);

}  // namespace weir::rnic
