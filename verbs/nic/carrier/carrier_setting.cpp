#include "verbs/nic/carrier/carrier_setting.hpp"

#include <charconv>
#include <string>
#include <string_view>

namespace weir::verbs {

link::Result<std::optional<CarrierSetting>> read_carrier(const char* setting) {
  const std::string_view all = setting == nullptr ? std::string_view() : setting;
  const std::string_view word = all.substr(0, all.find(':'));
  const bool names_port = word.size() < all.size();
  if (all.empty() || all == "udp") return std::nullopt;
  CarrierSetting read{.automatic = word == "auto"};
  bool good = word == "tcp" || word == "auto";
  if (names_port) {
    const auto [end, error] =
        std::from_chars(all.data() + word.size() + 1, all.data() + all.size(), read.port);
    good = good && error == std::errc() && end == all.data() + all.size() && read.port != 0;
  }
  if (good) return read;
  return std::unexpected(
      link::Error{std::errc::invalid_argument, std::string(carrier_variable) + ": " + std::string(all) +
                                                   " is none of udp, tcp, auto, tcp:PORT and auto:PORT"});
}

}  // namespace weir::verbs
