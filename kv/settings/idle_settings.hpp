// Directives of redis.conf without a meaning for this server. Their names are known so that
// such a file loads unchanged.
//
// The table is data: a name, Redis's default, the form of its value, and why it has no effect here. A given
// value is kept and shown by CONFIG GET. A directive whose value may be a promise that the server does not
// keep (tls-ciphers) is accepted only with values that promise nothing, and refused with others.
#pragma once

#include <span>

#include "kv/settings/setting_spec.hpp"

namespace weir::kv {

std::span<const SettingSpec> idle_setting_specs();

}  // namespace weir::kv
