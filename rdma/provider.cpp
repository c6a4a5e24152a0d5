#include "rdma/provider.hpp"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <vector>

#include "rdma/verbs/verbs_shim.hpp"

namespace weir::rdma {
namespace {

namespace fs = std::filesystem;

constexpr const char* verbs_soname = "libibverbs.so.1";
constexpr const char* cm_soname = "librdmacm.so.1";

struct Selection {
  Provider::Kind kind = Provider::Kind::system;
  std::string reason;
};

Selection select(const ProviderOptions& options) {
  switch (options.choice) {
    case ProviderChoice::weir:
      return {Provider::Kind::weir, "asked for"};
    case ProviderChoice::system:
      return {Provider::Kind::system, "asked for"};
    case ProviderChoice::automatic:
      break;
  }
  if (std::string port = active_hardware_port(options.sysfs_root); !port.empty())
    return {Provider::Kind::system, "port " + port + " is active"};
  return {Provider::Kind::weir, "no active RDMA port in this machine"};
}

bool holds_both(const fs::path& dir) {
  std::error_code ignored;
  return fs::exists(dir / verbs_soname, ignored) && fs::exists(dir / cm_soname, ignored);
}

// The libibverbs that is already loaded into this process.
struct Held {
  fs::path file;
  bool ours = false;
};
std::optional<Held> held_library() {
  void* const handle = dlopen(verbs_soname, RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return std::nullopt;
  link_map* map = nullptr;
  Held held{.file = {}, .ours = dlsym(handle, "weir_monitor_open") != nullptr};
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name != nullptr) held.file = map->l_name;
  dlclose(handle);
  return held;
}

// The directory of Weir's library if `weir run` preloaded it; otherwise empty.
fs::path preloaded_directory() {
  const std::optional<Held> held = held_library();
  return held && held->ours ? held->file.parent_path() : fs::path();
}

std::vector<fs::path> weir_candidates(const ProviderOptions& options) {
  if (!options.library_dir.empty()) return {options.library_dir};
  std::vector<fs::path> dirs;
  std::error_code failed;
  const fs::path executable =
      options.executable.empty() ? fs::read_symlink("/proc/self/exe", failed) : fs::path(options.executable);
  if (!failed) {
    const fs::path lib = (executable.parent_path().parent_path() / "lib").lexically_normal();
    dirs.push_back(lib / "verbs");  // a build tree
    dirs.push_back(lib / "weir");   // an installation
  }
  for (std::size_t begin = 0; begin < options.library_path.size();) {
    const std::size_t end = std::min(options.library_path.find(':', begin), options.library_path.size());
    if (end > begin) dirs.emplace_back(options.library_path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fs::path preloaded = preloaded_directory(); !preloaded.empty()) dirs.push_back(std::move(preloaded));
  // `make install` and the packages install them there. A program linked to an installed
  // Weir may be elsewhere.
  dirs.insert(dirs.end(), {"/usr/local/lib/weir", "/usr/lib/weir"});
  return dirs;
}

Result<fs::path> weir_directory(const ProviderOptions& options) {
  const std::vector<fs::path> dirs = weir_candidates(options);
  std::string looked;
  for (const fs::path& dir : dirs) {
    if (holds_both(dir)) return dir;
    looked += (looked.empty() ? "" : ", ") + dir.string();
  }
  return fail(Errc::library_not_found, std::string("Weir's ") + verbs_soname + " and " + cm_soname +
                                           " were not found (looked in: " + looked +
                                           "); give their folder, or choose the provider \"system\"");
}

Result<void*> open_library(const std::string& path, std::string& loaded_from) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    // A bare name that is not on the loader's search path means "install it"; a file that fails to
    // load means "it is broken".
    const bool searched = path.find('/') == std::string::npos;
    return fail(
        searched ? Errc::library_not_found : Errc::library_unusable,
        std::string("cannot load ") + path + ": " + (why != nullptr ? why : "no reason given") +
            (searched ? "; install rdma-core (libibverbs1, librdmacm1), or choose the provider \"weir\""
                      : "; rebuild it, or choose the provider \"system\""));
  }
  link_map* map = nullptr;
  loaded_from = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name != nullptr ? map->l_name : path;
  return handle;
}

Result<std::string> list_devices(Provider::Kind kind) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  std::string names;
  for (int i = 0; list != nullptr && i < count; ++i)
    names += (names.empty() ? "" : ", ") + std::string(ibv_get_device_name(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  if (names.empty())
    return fail(Errc::no_device,
                kind == Provider::Kind::system
                    ? "rdma-core lists no RDMA device; load its driver, or choose the provider \"weir\""
                    : "the software NIC lists no device; see its log");
  return names;
}

}  // namespace

Result<ProviderChoice> parse_provider_choice(std::string_view word) {
  if (word.empty() || word == "auto") return ProviderChoice::automatic;
  if (word == "weir") return ProviderChoice::weir;
  if (word == "system") return ProviderChoice::system;
  return fail(Errc::library_not_found,
              "unknown RDMA provider \"" + std::string(word) + "\"; say auto, weir or system");
}

std::string active_hardware_port(const std::string& sysfs_root) {
  std::error_code failed;
  std::vector<fs::path> ports;
  for (const auto& device : fs::directory_iterator(fs::path(sysfs_root) / "class" / "infiniband", failed))
    for (const auto& port : fs::directory_iterator(device.path() / "ports", failed))
      ports.push_back(port.path());
  std::sort(ports.begin(), ports.end());  // the same result at each start
  for (const fs::path& port : ports) {
    std::string state;
    std::getline(std::ifstream(port / "state"), state);  // "4: ACTIVE"
    if (state.ends_with("ACTIVE") && !state.ends_with("INACTIVE"))
      return port.parent_path().parent_path().filename().string() + "/" + port.filename().string();
  }
  return {};
}

std::string Provider::describe() const {
  return (kind_ == Kind::weir ? "Weir's software NIC " : "system RDMA ") + devices_ + " through " +
         verbs_library_ + " (" + reason_ + ")";
}

Result<Provider> load_provider(const ProviderOptions& options) {
  static std::mutex one_at_a_time;
  static std::optional<Provider> loaded;
  const std::lock_guard lock(one_at_a_time);
  const Selection selection = select(options);
  if (loaded) {
    if (loaded->kind() == selection.kind) return *loaded;
    return fail(Errc::provider_conflict, "this process already uses " + loaded->describe() +
                                             "; start another process for the other one");
  }

  std::string prefix;
  if (selection.kind == Provider::Kind::weir) {
    Result<fs::path> dir = weir_directory(options);
    if (!dir) return std::unexpected(dir.error());
    prefix = dir->string() + "/";
    // Weir's librdmacm would get that libibverbs instead of its own.
    if (const std::optional<Held> held = held_library(); held && !held->ours)
      return fail(
          Errc::provider_conflict,
          held->file.string() +
              " is in this process already, loaded by another of its libraries (PyTorch's do)"
              "; open RDMA before that one is loaded, start the program by weir run, or choose the provider "
              "\"system\"");
  }
  Provider provider;
  provider.kind_ = selection.kind;
  provider.reason_ = selection.reason;
  // libibverbs first: librdmacm needs it by soname and then uses the one that is already loaded.
  Result<void*> verbs = open_library(prefix + verbs_soname, provider.verbs_library_);
  if (!verbs) return std::unexpected(verbs.error());
  Result<void*> cm = open_library(prefix + cm_soname, provider.cm_library_);
  if (!cm) return std::unexpected(cm.error());
  if (std::string missing = bind_verbs(*verbs, *cm); !missing.empty())
    return fail(Errc::library_unusable, provider.verbs_library_ + " or " + provider.cm_library_ + " lacks " +
                                            missing + "; install rdma-core 44 or newer");
  Result<std::string> devices = list_devices(provider.kind_);
  if (!devices) return std::unexpected(devices.error());
  provider.devices_ = *devices;
  loaded = provider;
  return provider;
}

}  // namespace weir::rdma
