// What is wrong with a plan, risky about it, or good to know, in plain words.
#pragma once

#include "fabric/plan/plan.hpp"

namespace weir::fabric {

// Examines everything else in the plan. Faults come first, then warnings, then notes.
std::vector<Finding> find_faults(const Plan& plan);

}  // namespace weir::fabric
