// What a plan would change in the config_db.json that a switch has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fabric {

// Lines such as "BUFFER_PROFILE|pg_lossless_25000_3m_profile|xoff: 30720 -> 47104", sorted; "(none)" stands
// for a value that one side lacks. Compares only the tables that the plan writes: the rest of the file is the
// switch's own. Both texts are config_db.json; nullopt: `existing` is not a JSON object.
std::optional<std::vector<std::string>> config_difference(std::string_view planned,
                                                          std::string_view existing);

}  // namespace weir::fabric
