// Which weaknesses a failing run needs. Pure: what runs the program is passed in.
#pragma once

#include <functional>
#include <vector>

#include "rnic/weak/weaknesses.hpp"

namespace weir::command {

struct Needed {
  // Each of these alone makes the program fail; if nothing does alone, `together`.
  std::vector<rnic::weak::Weakness> alone;
  // Without any of these it passes. Empty: it did not fail again.
  std::vector<rnic::weak::Weakness> together;
};

// `fails`: whether the program fails with that plan, in one of several runs.
Needed shrink(const rnic::weak::Plan& failed, const std::function<bool(const rnic::weak::Plan&)>& fails);

}  // namespace weir::command
