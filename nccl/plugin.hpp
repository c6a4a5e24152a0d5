// The plugin's operations, for every version of NCCL's interface: the tables (table.inc) only convert
// arguments.
//
// State of the process: settings and devices, found by the first init(); attempts to connect; references that
// hold devices open. Threading: any thread may call any function; one connection is used by one thread at a
// time.
//
// The plugin starts no thread and no call blocks; isend(), irecv() and test() do not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nccl/abi_types.hpp"

namespace weir::nccl {

// The answer to NCCL's question about a device.
struct DeviceProperties {
  const char* name;      // lives as long as the plugin
  const char* pci_path;  // nullptr: none
  std::uint64_t guid;
  int speed_mbps;
  int port;
  std::size_t max_bytes;
  std::int16_t rail;
  std::int16_t plane;
};

// The context that init() returns for a communicator (from version 11 on).
struct Communicator {
  int traffic_class = -1;
};

// Finds the devices on the first call; later calls only set the log function.
Status init(LogFunction log, int version);
Communicator* open_communicator(int traffic_class);
Status finalize(Communicator* communicator);

Status devices(int* count);
Status properties(int device, DeviceProperties& properties);

Status listen(int device, void* handle, void** listen_comm);
Status connect(int device, int traffic_class, void* handle, void** send_comm);
Status accept(void* listen_comm, void** receive_comm);
Status close_listen(void* listen_comm);
Status close_send(void* send_comm);
Status close_receive(void* receive_comm);

Status reg_mr(void* comm, void* data, std::size_t bytes, int type, void** region);
Status dereg_mr(void* comm, void* region);

Status isend(void* send_comm, void* data, std::size_t bytes, int tag, void* region, void** request);
Status irecv(void* receive_comm, std::span<void* const> data, const std::size_t* bytes, const int* tags,
             void* const* regions, void** request);
Status iflush(void** request);
Status test(void* request, int* done, int* bytes);

}  // namespace weir::nccl
