// The one seam between libibverbs.so.1 and librdmacm.so.1: the process's same-host link, which carries the
// CM's messages. Exported from libibverbs.so.1 under the version node WEIR_PRIVATE_1.
#pragma once

#include "link/same_host.hpp"

// Attaches on first use. nullptr with errno on failure. Owned by libibverbs; lives until exit. A forked child
// gets its own.
extern "C" weir::link::SameHostLink* weir_same_host_link();
