// The plugin as NCCL's network transport calls it, in any version of the interface: opened with dlopen, found
// by its symbol, called in NCCL's order.
//
// Converts each version's own types here, so that tests need only one form. Threading: as the plugin's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nccl/abi_types.hpp"

namespace weir::nccl::testing_support {

// What NCCL learns about a device; what a version lacks has the value that NCCL then assumes.
struct AnyProperties {
  std::string name, pci_path;
  bool has_pci_path = false;
  std::uint64_t guid = 0;
  int pointer_support = 0, registration_is_global = 0, force_flush = 0, speed_mbps = 0, port = 0;
  int max_comms = 0, max_receives = 0, device_type = 0, device_version = 0;
  int merged_count = 1, merged_first = 0;
  std::size_t max_p2p_bytes = max_message;
  int rail = -1, plane = -1;
};

class AnyNet {
 public:
  virtual ~AnyNet() = default;
  virtual const char* name() const = 0;
  virtual int version() const = 0;
  virtual bool has_finalize() const = 0;

  virtual Status init(LogFunction log) = 0;
  virtual Status finalize() = 0;  // success if the version has no such function
  virtual Status devices(int* count) = 0;
  virtual Status properties(int device, AnyProperties& properties) = 0;
  virtual Status listen(int device, void* handle, void** listen_comm) = 0;
  virtual Status connect(int device, void* handle, void** send_comm) = 0;
  virtual Status accept(void* listen_comm, void** receive_comm) = 0;
  virtual Status reg_mr(void* comm, void* data, std::size_t bytes, void** region) = 0;
  virtual Status reg_mr_of_type(void* comm, void* data, std::size_t bytes, int type, void** region) = 0;
  virtual Status dereg_mr(void* comm, void* region) = 0;
  virtual Status isend(void* comm, void* data, std::size_t bytes, int tag, void* region, void** request) = 0;
  virtual Status irecv(void* comm, int count, void** data, std::size_t* bytes, int* tags, void** regions,
                       void** request) = 0;
  virtual Status iflush(void* comm, int count, void** data, int* bytes, void** regions, void** request) = 0;
  virtual Status test(void* request, int* done, int* bytes) = 0;
  virtual Status close_send(void* comm) = 0;
  virtual Status close_receive(void* comm) = 0;
  virtual Status close_listen(void* comm) = 0;
};

// Opens the library and finds the table of that version; throws std::runtime_error. The library is closed
// with the object, as NCCL closes it after the last communicator.
std::unique_ptr<AnyNet> open_net(const std::string& library, int version);
inline constexpr int all_versions[] = {8, 9, 10, 11, 12};

// Collects the plugin's log for tests that check it.
LogFunction keep_log();
std::string kept_log();

}  // namespace weir::nccl::testing_support
