// Directives of redis.conf that mean nothing to this server: known by name, so that such a file loads as it
// is.
//
// The table is data: a name, Redis's default and the form of its value. What is given is kept and shown by
// CONFIG GET, and has no effect. A directive whose value would be a promise that the server does not keep
// (tls-ciphers) is not here: it is refused, as an unknown one.
#pragma once

#include <span>

#include "kv/server/setting_spec.hpp"

namespace weir::kv {

std::span<const SettingSpec> idle_setting_specs();

}  // namespace weir::kv
