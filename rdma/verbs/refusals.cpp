#include "rdma/verbs/refusals.hpp"

#include <array>
#include <cerrno>
#include <string_view>

namespace weir::rdma {
namespace {

struct Cause {
  int status;
  std::string_view words;  // printed after the address
};

// The conditions under which programs on one host reach each other through Weir's software NIC.
constexpr std::string_view same_there =
    "; on the software NIC both ends run on one host in one network namespace, those of one user with one "
    "/dev/shm (or WEIR_RUNTIME_DIR)";

constexpr std::array not_resolved = {
    Cause{-ENETUNREACH, " has no route from here, for TCP or RDMA; check the address and the host's routes"},
    Cause{-EHOSTUNREACH, " may be reached by TCP, but no RDMA device reaches it"},
    Cause{-ENODEV,
          " is reached through a network interface that has no RDMA device; use TCP, or an address of an "
          "RDMA interface"},
    Cause{-ETIMEDOUT, " did not answer when its address was looked up; check that the host is up"}};

// Reject reasons of a REJ, IBA table 12-11.
constexpr std::array refused = {
    Cause{4, " refused: its program ended or did not answer in time (reason 4); try again"},
    Cause{
        8,
        " refused: nobody listens on that RDMA port (reason 8); check the port, and that the server listens "
        "for RDMA, not only for TCP"},
    Cause{28,
          " refused: its program turned the connection away (reason 28); its log says why, perhaps too many "
          "connections"}};

template <std::size_t N>
std::string_view find(const std::array<Cause, N>& causes, int status) {
  for (const Cause& cause : causes)
    if (cause.status == status) return cause.words;
  return {};
}

}  // namespace

std::string why_not_resolved(const std::string& address, int status) {
  const std::string_view words = find(not_resolved, status);
  std::string why = words.empty()
                        ? "no RDMA device reaches " + address + " (error " + std::to_string(-status) + ")"
                        : address + std::string(words);
  if (status == -EHOSTUNREACH) why += same_there;
  return why;
}

std::string why_refused(const std::string& address, int status) {
  const std::string_view words = find(refused, status);
  std::string why = words.empty() ? address + " refused (RDMA connection manager's reason " +
                                        std::to_string(status) + "); is its RDMA port open?"
                                  : address + std::string(words);
  constexpr int nobody_listens = 8;
  if (status == nobody_listens) why += same_there;
  return why;
}

std::string why_lost(ibv_wc_status status, const std::string& text) {
  const std::string what =
      status == IBV_WC_RNR_RETRY_EXC_ERR
          ? "the peer was not ready to receive for too long: its program is stopped or overloaded"
          : "the peer did not answer in time: its program has ended, is stopped or overloaded, or the "
            "network "
            "loses packets";
  return what + " (" + text + ")";
}

std::string why_no_events(int error, bool software_nic) {
  const std::string what = "cannot create an RDMA event channel";
  if (error == EMFILE || error == ENFILE)
    return what + ": no file descriptor is left; raise the limit of open files (ulimit -n)";
  if (software_nic) return what + ": the software NIC did not start, and has said why on standard error";
  return what + ": is the kernel module rdma_ucm loaded, and may this user open /dev/infiniband/rdma_cm?";
}

}  // namespace weir::rdma
