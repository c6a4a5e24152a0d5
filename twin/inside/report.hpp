// What a thread says of itself when nothing in its run goes on.
#pragma once

#include "link/fabric/inside.hpp"

namespace weir::twin {

void describe_nic_with(link::fabric::DescribeNic describe);
// Into Arena::report: a line "code MODULE OFFSET SYMBOL" for each frame of this thread's stack, the innermost
// first, without those of this library; then lines "nic TEXT" if they are asked for.
void write_report();

}  // namespace weir::twin
