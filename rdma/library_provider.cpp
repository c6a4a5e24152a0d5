#include "rdma/library_provider.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace weir::rdma {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string program_beside(const void* function) {
  Dl_info found{};
  std::error_code failed;
  if (dladdr(function, &found) == 0) return {};
  const auto library = std::filesystem::canonical(found.dli_fname, failed);
  return failed ? std::string() : (library.parent_path() / ".." / "bin" / "program").string();
}

}  // namespace

Result<Provider> load_provider_beside(const void* function, std::string_view choice,
                                      std::string library_dir) {
  ProviderOptions options;
  const auto chosen =
      parse_provider_choice(choice.empty() ? variable("WEIR_RDMA_PROVIDER") : std::string(choice));
  if (!chosen) return std::unexpected(chosen.error());
  options.choice = *chosen;
  options.library_dir = std::move(library_dir);
  options.library_path = variable("LD_LIBRARY_PATH");
  options.executable = program_beside(function);
  return load_provider(options);
}

}  // namespace weir::rdma
