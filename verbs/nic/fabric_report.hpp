// The state of this process's queue pairs as text, for the report of a simulated run in which nothing goes
// on.
#pragma once

#include "link/fabric/inside.hpp"
#include "rnic/adapter.hpp"

namespace weir::verbs {

// Of that adapter from now on, which lives as long as the process. Threading: takes no lock; only the thread
// that the run has granted calls it.
link::fabric::DescribeNic describe_on_fabric(rnic::Adapter& adapter);

}  // namespace weir::verbs
