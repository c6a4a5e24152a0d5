// Numbers with units, as in a network file: "100G", "5m", "16MiB", "1.5us", "20%".
#pragma once

#include <optional>
#include <string_view>

namespace weir::fabric {

enum class Unit { bits_per_second, bytes, meters, nanoseconds, fraction };

// The value in the base unit of Unit; nullopt: `text` is not a number followed by
// one of its suffixes. Bytes ("4096") and fractions ("0.2") may have none. A sign
// is part of the number.
std::optional<double> read_quantity(std::string_view text, Unit unit);

// "a speed such as \"100G\"", for complaints.
std::string_view example(Unit unit);

}  // namespace weir::fabric
