// Which libibverbs and librdmacm this process uses, chosen at run time.
//
// Programs are not linked to libibverbs. load_provider() opens the chosen pair of libraries, and
// verbs_shim.cpp defines the ibv_* and rdma_* functions that we use as forwarders into them, so everything
// above reads as ordinary verbs code and works the same on an RDMA NIC (the system's rdma-core) and on Weir's
// software NIC. The two pairs share their sonames, so a process can hold only one: hardware is looked for in
// sysfs, never by loading a library.
//
// Invariant: no ibv_* or rdma_* function is called before load_provider() succeeded; types that call them can
// only be made from a Provider. Threading: load_provider() from any thread; a Provider is plain data.
#pragma once

#include <string>
#include <string_view>

#include "rdma/error.hpp"

namespace weir::rdma {

enum class ProviderChoice {
  automatic,  // an RDMA device with an active port if there is one, Weir's software NIC otherwise
  weir,       // Weir's software NIC
  system,     // the system's rdma-core, whatever device it has
};

// "auto", "weir" or "system" (an option's or WEIR_RDMA_PROVIDER's value); empty means auto.
Result<ProviderChoice> parse_provider_choice(std::string_view word);

struct ProviderOptions {
  ProviderChoice choice = ProviderChoice::automatic;
  // Where Weir's libraries are. Empty: ../lib/verbs beside the executable's folder, else a folder of
  // library_path.
  std::string library_dir;
  std::string library_path;  // LD_LIBRARY_PATH as main found it; `weir run` puts Weir's libraries there
  std::string sysfs_root = "/sys";
  std::string executable;  // empty: /proc/self/exe
};

// The loaded libraries. Proof that the forwarders work: only load_provider() makes one.
class Provider {
 public:
  enum class Kind { weir, system };

  Kind kind() const { return kind_; }
  // One line for the log: provider, device, library, and why.
  std::string describe() const;

 private:
  friend Result<Provider> load_provider(const ProviderOptions&);
  Provider() = default;

  Kind kind_ = Kind::weir;
  std::string verbs_library_;  // the path that the loader resolved
  std::string cm_library_;
  std::string devices_;
  std::string reason_;
};

// Loads the libraries and checks that they list a device. Asking again for the same choice gives the same
// provider; for another one, Errc::provider_conflict. The libraries stay loaded until the process ends.
Result<Provider> load_provider(const ProviderOptions&);

// "mlx5_0/1" for the first port in state ACTIVE below `sysfs_root`; empty if there is none.
std::string active_hardware_port(const std::string& sysfs_root);

}  // namespace weir::rdma
