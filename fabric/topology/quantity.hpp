// Numbers with units, as in a network file: "100G", "5m", "16MiB", "1.5us", "20%". And timeouts of queue
// pairs, which InfiniBand has a code for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::fabric {

enum class Unit { bits_per_second, bytes, meters, nanoseconds, fraction, timeout };

// The local ACK timeout of a queue pair, as ibv_modify_qp takes it: 4.096 us x 2^code (IBA volume
// 1, 9.7.6.1.3). Code 0 means none, and is no time.
constexpr unsigned largest_timeout_code = 31;
constexpr double timeout_ns(unsigned code) { return 4096.0 * static_cast<double>(std::uint64_t{1} << code); }

// The value in the base unit of Unit; nullopt: `text` is not a number followed by
// one of its suffixes. Bytes ("4096") and fractions ("0.2") may have none. A sign
// is part of the number. A timeout is a time ("67ms"), or without suffix a code (14); the value is in ns.
std::optional<double> read_quantity(std::string_view text, Unit unit);

// "a speed such as \"100G\"", for complaints.
std::string_view example(Unit unit);

}  // namespace weir::fabric
