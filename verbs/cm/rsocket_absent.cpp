// rsockets (rsocket(3) and its family): sockets over RDMA, which this library does not have yet.
//
// The symbols are there, so that programs which also use them start; each call fails with ENOSYS and says so
// once. They are declared here without their parameters: none is looked at.
#include <atomic>
#include <cerrno>
#include <cstdio>

namespace {

// The first call says where to turn; the others only fail.
long absent(const char* name) {
  static std::atomic<bool> said = false;
  if (!said.exchange(true)) {
    std::fprintf(
        stderr,
        "weir: %s: rsockets are not available on the software NIC yet; use plain sockets or rdma_cm\n", name);
  }
  errno = ENOSYS;
  return -1;
}

}  // namespace

#define WEIR_ABSENT(name) \
  long name() { return absent(#name); }

extern "C" {

WEIR_ABSENT(raccept)
WEIR_ABSENT(rbind)
WEIR_ABSENT(rclose)
WEIR_ABSENT(rconnect)
WEIR_ABSENT(rfcntl)
WEIR_ABSENT(rgetpeername)
WEIR_ABSENT(rgetsockname)
WEIR_ABSENT(rgetsockopt)
WEIR_ABSENT(riomap)  // off_t; -1 is its failure too
WEIR_ABSENT(riounmap)
WEIR_ABSENT(riowrite)
WEIR_ABSENT(rlisten)
WEIR_ABSENT(rpoll)
WEIR_ABSENT(rread)
WEIR_ABSENT(rreadv)
WEIR_ABSENT(rrecv)
WEIR_ABSENT(rrecvfrom)
WEIR_ABSENT(rrecvmsg)
WEIR_ABSENT(rselect)
WEIR_ABSENT(rsend)
WEIR_ABSENT(rsendmsg)
WEIR_ABSENT(rsendto)
WEIR_ABSENT(rsetsockopt)
WEIR_ABSENT(rshutdown)
WEIR_ABSENT(rsocket)
WEIR_ABSENT(rwrite)
WEIR_ABSENT(rwritev)

}  // extern "C"
