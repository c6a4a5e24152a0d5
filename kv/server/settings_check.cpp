#include "kv/server/settings_check.hpp"

#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <expected>
#include <filesystem>

#include "kv/aof/manifest.hpp"
#include "kv/server/server.hpp"
#include "kv/settings/wrong_settings.hpp"

namespace weir::kv {

namespace {

bool may(const std::string& path, int what) {
  return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0;
}

// Why the file cannot be written; empty: it can be written or created.
std::string why_not_written(const std::string& path) {
  if (may(path, W_OK)) return std::filesystem::is_directory(path) ? std::strerror(EISDIR) : "";
  if (errno != ENOENT) return std::strerror(errno);
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  return may(folder, W_OK | X_OK) ? "" : std::strerror(errno);
}

class SettingsCheck {
 public:
  explicit SettingsCheck(Server& server) : server_(server), settings_(server.settings) {}

  std::vector<std::string> all() {
    listeners();
    note(server_.transports.load_tls_again());
    if (const auto tls = server_.dialler.tls_to_primary(); !tls) wrong_.push_back(tls.error());
    note(server_.access.load_configured());
    if (std::string wrong = cluster::wrong_for_gateway(settings_); !wrong.empty())
      wrong_.push_back(std::move(wrong));
    if (!may(".", R_OK | W_OK | X_OK))
      wrong_.push_back("cannot write in " + settings_.dir + ": " + std::strerror(errno) + ". Check --dir.");
    written(settings_.logfile, "the log file", "--logfile");
    written(settings_.pidfile, "the pid file", "--pidfile");
    plain(settings_.appendfilename, "appendfilename");
    plain(settings_.appenddirname, "appenddirname");
    return std::move(wrong_);
  }

 private:
  void listeners() {
    const bool any = settings_.port != 0 || !settings_.unixsocket.empty() || settings_.tls_port != 0 ||
                     settings_.rdma_port != 0 || settings_.rdma_tls_port != 0;
    if (!any) wrong_.emplace_back(nothing_to_listen_on);
    if (settings_.unixsocket.size() >= sizeof(sockaddr_un::sun_path))
      wrong_.push_back("the path of the unix socket is too long: " + settings_.unixsocket +
                       ". Check --unixsocket.");
  }

  void note(const std::expected<void, std::string>& done) {
    if (!done) wrong_.push_back(done.error());
  }

  void written(const std::string& path, const std::string& what, const std::string& option) {
    if (path.empty()) return;
    if (const std::string why = why_not_written(path); !why.empty())
      wrong_.push_back("cannot write " + what + ' ' + path + ": " + why + ". Check " + option + '.');
  }

  void plain(const std::string& name, const std::string& setting) {
    if (!aof::is_plain_name(name))
      wrong_.push_back(setting + " can't be a path, just a name. Check --" + setting + '.');
  }

  Server& server_;
  const Settings& settings_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> wrong_with_settings(Server& server) { return SettingsCheck(server).all(); }

}  // namespace weir::kv
