// INFO's text, also for those who are no clients.
#pragma once

#include <string>
#include <string_view>

namespace weir::kv {

class Server;

// All sections, as INFO EVERYTHING answers them.
std::string info_everything(const Server&);

}  // namespace weir::kv
