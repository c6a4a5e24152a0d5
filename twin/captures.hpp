// Packets of a run as files that Wireshark opens, one for each port: what leaves it and, at hosts, what
// arrives. Times are virtual, from 2026-01-01 on, as the programs' clocks show them.
//
// Each port has a buffer of 64 KiB, and no descriptor between two writes: networks have more ports than
// processes descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "fabric/sim/settings.hpp"
#include "link/fabric/arena.hpp"

namespace weir::twin {

class Captures {
 public:
  // Files of ports appear in `folder`, which is made. The error is text to print.
  static std::expected<Captures, std::string> make(std::string folder, const fabric::sim::Fabric& fabric);

  // `bytes`: from the BTH to the ICRC.
  void add(std::uint32_t port, link::fabric::Ticks at, const link::fabric::PacketRecord& packet, bool marked,
           std::span<const std::byte> bytes);
  // All that was added is in the files. The error is text to print.
  std::expected<void, std::string> finish();

 private:
  struct Port {
    std::string file;
    std::vector<std::byte> buffer;
    bool begun = false;
  };
  Captures(std::string folder, std::size_t ports) : folder_(std::move(folder)), ports_(ports) {}
  void write(Port& port);

  std::string folder_;
  std::vector<Port> ports_;
  int error_ = 0;  // errno of the first failure
};

}  // namespace weir::twin
