// Makes hosts, and keeps them: two processes without privileges.
//
// The second is the first process of a PID namespace in which all programs of the hosts run. When it ends,
// killed or not, the kernel ends those programs, and with them every namespace, interface and mount. The
// first waits for it and removes the network's folder; if the first is killed, the second removes the folder
// and ends. So nothing is left behind whichever is killed; killed both at once, they leave a folder with a
// dead socket, which the next start or list removes.
#pragma once

#include <sys/types.h>

#include <string>

#include "link/unique_fd.hpp"
#include "twin/hosts/host_error.hpp"
#include "twin/hosts/network_plan.hpp"

namespace weir::hosts {

enum class Lifetime {
  until_ended,        // by end_network(), or a signal to the keeper
  with_this_process,  // also when the Keeper is destroyed, or this process ends however it ends
};

// A running network, as the process sees it that started it.
class Keeper {
 public:
  Keeper(Keeper&&) noexcept = default;
  Keeper& operator=(Keeper&&) noexcept = default;
  // The first process, a child of this one: this process reaps it, if it lives longer.
  pid_t pid() const { return pid_; }

 private:
  Keeper() = default;
  friend Result<Keeper> start_network(const NetworkPlan&, const std::string&, Lifetime);
  pid_t pid_ = -1;
  link::UniqueFd lifeline_;  // the keeper's other end sees it close
};

// Makes the hosts in `folder` (folder.hpp). Returns when they can be joined. Forks: call it where other
// threads hold no locks that matter to a fork. Cause::exists if the folder is in use.
Result<Keeper> start_network(const NetworkPlan& plan, const std::string& folder, Lifetime lifetime);

}  // namespace weir::hosts
