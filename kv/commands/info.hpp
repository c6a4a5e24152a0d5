// INFO's text, also for callers other than clients.
#pragma once

#include <string>
#include <string_view>

namespace weir::kv {

class ServerParts;

// All sections, as INFO EVERYTHING returns them.
std::string info_everything(const ServerParts&);

}  // namespace weir::kv
