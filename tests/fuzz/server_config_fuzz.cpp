// Reads configuration files. An accepted file must print as text that is accepted again and means the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "kv/resp/words.hpp"
#include "kv/settings/config_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::kv;
  Settings settings;
  if (!apply_config(settings, {{}, {reinterpret_cast<const char*>(data), size}})) return 0;
  for (const SettingSpec& spec : setting_specs()) {
    const std::string text = setting_text(settings, spec);
    Settings again;
    if (!assign_setting(again, spec, std::vector{text})) std::abort();
    if (setting_text(again, spec) != text) std::abort();
  }
  return 0;
}
