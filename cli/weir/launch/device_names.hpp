// The names of the devices that `weir run` was asked for.
#pragma once

#include <expected>
#include <string>

namespace weir::command {

// Comma-separated, counted up from the number at the end of `name`: ("mlx5_0", 2) is "mlx5_0,mlx5_1",
// ("weir", 2) "weir0,weir1". The error is fit to print.
std::expected<std::string, std::string> device_names(const std::string& name, const std::string& count);

}  // namespace weir::command
