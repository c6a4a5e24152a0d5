// Copies a message's payload into the buffers of a receive, on the owner's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/nic_parts.hpp"

namespace weir::rnic {

// False: the buffers have changed, or are too short. The initiator checked the lkeys when it took the WQE;
// they are checked again because the region may have been deregistered since, and this copy would then write
// into freed memory.
bool scatter_into(const NicParts&, std::uint32_t pd, const ReceiveWqe&, std::span<const std::byte> payload);

}  // namespace weir::rnic
