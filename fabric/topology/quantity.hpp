// Numbers with their unit, as people write them in a network file: "100G", "5m", "16MiB", "1.5us", "20%".
#pragma once

#include <optional>
#include <string_view>

namespace weir::fabric {

enum class Unit { bits_per_second, bytes, meters, nanoseconds, fraction };

// The value in the base unit that Unit names, or nothing where `text` is no number followed by one of its
// suffixes. Bytes take none as well ("4096"), a fraction also a plain number ("0.2"); a sign is part of the
// number.
std::optional<double> read_quantity(std::string_view text, Unit unit);

// "a speed such as \"100G\"", for complaints.
std::string_view example(Unit unit);

}  // namespace weir::fabric
