// Whether the Host field of an HTTP request over loopback names this host.
//
// A browser on this host that a stranger's name has led to 127.0.0.1 (DNS rebinding) sends that name: its
// page must not read what only programs on this host can reach. Threading: any.
#pragma once

#include <string_view>

namespace weir::transport {

// "HOST" or "HOST:PORT": an address, localhost, or this host's name with or without a domain. True if empty:
// browsers always send one.
bool names_this_host(std::string_view host_field);

}  // namespace weir::transport
