#include "verbs/view/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "link/default_directory.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/sysfs_counters.hpp"
#include "verbs/ibv/sysfs_files.hpp"

namespace weir::verbs {
namespace {

namespace fs = std::filesystem;

struct Made {
  std::mutex mutex;
  fs::path root;
  std::atomic<pid_t> owner{0};  // looked at without the mutex by those who must not wait for it
};
// Never destroyed: programs open files until their very end.
Made& made() {
  static auto* the_tree = new Made;
  return *the_tree;
}

// When the process started, in ticks since boot; empty: there is none of that number. Field 22 of stat,
// counted behind the name, which may have spaces in it.
std::string start_time(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::stringstream all;
  all << stat.rdbuf();
  const std::string text = all.str();
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return field;
}

std::string pid_namespace() {
  struct stat about{};
  return ::stat("/proc/self/ns/pid", &about) == 0 ? std::to_string(about.st_ino) : "0";
}

std::string prefix() { return "view-" + pid_namespace() + "-"; }

// A process of another pid namespace cannot be asked whether it lives, so what is not of ours is left alone.
void sweep(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix())) continue;
    const std::string whose = name.substr(prefix().size());
    const std::size_t dash = whose.find('-');
    if (dash == std::string::npos || start_time(whose.substr(0, dash)) == whose.substr(dash + 1)) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text << '\n';
}

// As the kernel prints a mask: words of 32 bits, the highest first.
std::string all_cpus() {
  const long count = ::sysconf(_SC_NPROCESSORS_CONF);
  std::string mask;
  for (long word = (count + 31) / 32 - 1; word >= 0; --word) {
    const long bits = std::min(count - word * 32, 32l);
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%08x%s", bits == 32 ? 0xffffffffu : (1u << bits) - 1,
                  word != 0 ? "," : "");
    mask += text.data();
  }
  return mask;
}

// sysfs in miniature: the device, its two class directories in it, and the classes' links to them.
void write_device(const fs::path& root, std::size_t number) {
  const std::string& name = device_options().devices[number];
  const std::string verbs_name = "uverbs" + std::to_string(number);
  const fs::path device = root / "sys/devices/virtual/weir" / name;
  write_file(device / "numa_node", "-1");
  write_file(device / "local_cpus", all_cpus());
  write_file(device / "local_cpulist", "0-" + std::to_string(::sysconf(_SC_NPROCESSORS_CONF) - 1));
  write_file(device / "vendor", "0x5745");
  write_file(device / "device", "0x0001");
  fs::create_directories(device / "net");
  if (const std::string net = device_interface(); !net.empty())
    fs::create_symlink("/sys/class/net/" + net, device / "net" / net);

  const fs::path ib = device / "infiniband" / name;
  for (const SysfsFile& file : device_files(number)) write_file(ib / file.path, file.text);
  for (const SysfsCounter& counter : sysfs_counters()) write_file(ib / "ports/1" / counter.path, "");
  fs::create_symlink("../..", ib / "device");
  const fs::path uverbs = device / "infiniband_verbs" / verbs_name;
  write_file(uverbs / "ibdev", name);
  write_file(uverbs / "abi_version", "1");
  fs::create_symlink("../..", uverbs / "device");

  const fs::path up = "../../devices/virtual/weir";
  fs::create_symlink(up / name / "infiniband" / name, root / "sys/class/infiniband" / name);
  fs::create_symlink(up / name / "infiniband_verbs" / verbs_name,
                     root / "sys/class/infiniband_verbs" / verbs_name);
  // A character device that may be read and written; nobody commands the NIC through it.
  fs::create_symlink("/dev/null", root / "dev/infiniband" / verbs_name);
}

void write_tree(const fs::path& root) {
  fs::create_directories(root / "sys/class/infiniband");
  fs::create_directories(root / "dev/infiniband");
  write_file(root / "sys/class/infiniband_verbs/abi_version", "6");
  fs::create_symlink("/dev/null", root / "dev/infiniband/rdma_cm");
  for (std::size_t i = 0; i < device_options().devices.size(); ++i) write_device(root, i);
}

}  // namespace

std::string view_tree() {
  Made& tree = made();
  const std::lock_guard lock(tree.mutex);
  std::error_code error;
  if (!tree.root.empty() && (tree.owner == ::getpid() || fs::exists(tree.root, error))) return tree.root;
  try {
    const fs::path directory = link::default_runtime_directory(::secure_getenv("WEIR_RUNTIME_DIR"));
    if (fs::create_directories(directory)) fs::permissions(directory, fs::perms::owner_all);
    sweep(directory);
    const std::string pid = std::to_string(::getpid());
    const fs::path root = directory / (prefix() + pid + "-" + start_time(pid));
    fs::remove_all(root);  // of a program that this process was before it became another
    write_tree(root);
    tree.root = root;
    tree.owner = ::getpid();
  } catch (const fs::filesystem_error&) {
    tree.root.clear();  // no directory to write to: then there are no such files, as without us
  }
  return tree.root;
}

std::string existing_view_tree() {
  const std::lock_guard lock(made().mutex);
  return made().root;
}

bool is_in_a_view_tree(const std::string& path) {
  std::error_code error;
  const fs::path directory =
      fs::canonical(link::default_runtime_directory(::secure_getenv("WEIR_RUNTIME_DIR")), error);
  return !error && path.starts_with(directory.string() + "/view-");
}

void remove_view_tree() {
  Made& tree = made();
  // A signal handler may end the process while another of its threads makes the tree: then it stays for the
  // next.
  // Without one, no system call: a seccomp filter of the program may kill it for one.
  if (tree.owner == 0 || tree.owner != ::getpid() || !tree.mutex.try_lock()) return;
  const std::lock_guard lock(tree.mutex, std::adopt_lock);
  if (tree.root.empty()) return;
  std::error_code ignored;
  fs::remove_all(tree.root, ignored);
  tree.root.clear();
}

}  // namespace weir::verbs
