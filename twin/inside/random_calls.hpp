// Random numbers that are drawn from the run's seed.
#pragma once

#include <cstddef>

namespace weir::twin {

// Fills the buffer; returns `bytes`. Numbers of one process do not depend on those of others.
std::size_t draw(void* to, std::size_t bytes);

}  // namespace weir::twin
