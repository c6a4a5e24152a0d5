// Advice by which madvise(2) makes pages beforehand.
#pragma once

namespace weir::link {

// Advice to madvise(2) since Linux 5.14; glibc 2.36 does not name it everywhere.
inline constexpr int populate_read = 22, populate_write = 23;

}  // namespace weir::link
