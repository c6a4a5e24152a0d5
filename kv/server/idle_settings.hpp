// Directives of redis.conf without a meaning for this server. Their names are known so that
// such a file loads unchanged.
//
// The table is data: a name, Redis's default and the form of its value. A given value is kept and shown by
// CONFIG GET, and has no effect. A directive whose value would be a promise that the server does not keep
// (tls-ciphers) is missing here, so it is refused as unknown.
#pragma once

#include <span>

#include "kv/server/setting_spec.hpp"

namespace weir::kv {

std::span<const SettingSpec> idle_setting_specs();

}  // namespace weir::kv
