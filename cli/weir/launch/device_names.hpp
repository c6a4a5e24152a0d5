// The names of the devices that `weir run` is asked for.
#pragma once

#include <expected>
#include <string>

namespace weir::command {

// Comma-separated names, counted up from the number at the end of `name`: ("mlx5_0", 2) is "mlx5_0,mlx5_1"
// and ("weir", 2) is "weir0,weir1". The error is text to print.
std::expected<std::string, std::string> device_names(const std::string& name, const std::string& count);

}  // namespace weir::command
