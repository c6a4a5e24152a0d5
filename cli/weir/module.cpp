#include "cli/weir/module.hpp"

#include <dlfcn.h>

#include <filesystem>

namespace weir::command {

namespace fs = std::filesystem;

std::expected<void*, std::string> module_function(const char* file, const char* symbol) {
  std::error_code error;
  const auto here = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::string looked_in;
  for (const auto* place : {"../lib/weir", "../" WEIR_INSTALL_LIBDIR "/weir"}) {
    const auto path = (here / place / file).lexically_normal();
    if (!fs::exists(path, error)) {
      if (looked_in.find(path.string()) == std::string::npos)
        looked_in += (looked_in.empty() ? "" : ", ") + path.string();
      continue;
    }
    // Global: Open MPI loads components of its own, and they need to find libmpi's symbols.
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module == nullptr) return std::unexpected(std::string(::dlerror()) + "; install what it misses");
    void* function = ::dlsym(module, symbol);
    if (function == nullptr) return std::unexpected(std::string(::dlerror()) + "; build Weir anew");
    return function;
  }
  return std::unexpected("this Weir was built without it: there is no " + looked_in +
                         "; install the packages of tools/packages.txt and build again");
}

}  // namespace weir::command
