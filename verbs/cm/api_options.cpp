// rdma_cm's C interface: options, event names, and the additions of newer
// versions (RDMACM_1.4).
#include <array>
#include <cstring>

#include "verbs/cm/api.hpp"

using namespace weir::cm;

namespace {

template <class T>
std::optional<T> option_value(const void* value, std::size_t size) {
  if (value == nullptr || size != sizeof(T)) return std::nullopt;
  T read;
  std::memcpy(&read, value, sizeof read);
  return read;
}

int set_identifier_option(Id& id, int name, const void* value, std::size_t size) {
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      if (const auto tos = option_value<std::uint8_t>(value, size)) {
        id.type_of_service = *tos;
        return 0;
      }
      return EINVAL;
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY: {
      const auto flag = option_value<int>(value, size);
      if (!flag || id.stage != Stage::unbound) return EINVAL;
      (name == RDMA_OPTION_ID_AFONLY ? id.sharing.v6_only : id.sharing.reuse_address) = *flag != 0;
      return 0;
    }
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (const auto exponent = option_value<std::uint8_t>(value, size)) {
        if (*exponent > 31) return EINVAL;  // a five-bit field
        id.ack_timeout = exponent;
        return 0;
      }
      return EINVAL;
    default:
      return ENOSYS;
  }
}

constexpr std::array event_names = {
    "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",        "RDMA_CM_EVENT_ROUTE_RESOLVED",
    "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST",   "RDMA_CM_EVENT_CONNECT_RESPONSE",
    "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",       "RDMA_CM_EVENT_REJECTED",
    "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",      "RDMA_CM_EVENT_DEVICE_REMOVAL",
    "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR",   "RDMA_CM_EVENT_ADDR_CHANGE",
    "RDMA_CM_EVENT_TIMEWAIT_EXIT",  "RDMA_CM_EVENT_ADDRINFO_RESOLVED", "RDMA_CM_EVENT_ADDRINFO_ERROR",
    "RDMA_CM_EVENT_USER",           "RDMA_CM_EVENT_INTERNAL",
};
static_assert(event_names.size() == event_internal + 1);

}  // namespace

extern "C" {

int rdma_set_option(rdma_cm_id* id, int level, int name, void* value, std::size_t size) {
  // A path that replaces the resolved one; ignored, because there is only one path on a host.
  if (level == RDMA_OPTION_IB) return as_c(name == RDMA_OPTION_IB_PATH ? 0 : ENOSYS);
  if (level != RDMA_OPTION_ID) return as_c(ENOSYS);
  return as_c(set_identifier_option(Id::of(id), name, value, size));
}

// Asks the host's resolver at once; the event reports that the answer can be fetched.
int rdma_resolve_addrinfo(rdma_cm_id* id, const char* node, const char* service, const rdma_addrinfo* hints) {
  Id& mine = Id::of(id);
  rdma_addrinfo* found = nullptr;
  if (const int error = rdma_getaddrinfo(node, service, hints, &found); error != 0) return error;
  mine.resolved = {found, rdma_freeaddrinfo};
  if (const int error = agent().tell(mine, event_addrinfo_resolved, 0, 0); error != 0) return as_c(error);
  return complete(mine);
}

// The caller owns the result.
int rdma_query_addrinfo(rdma_cm_id* id, rdma_addrinfo** info) {
  Id& mine = Id::of(id);
  if (info == nullptr || !mine.resolved) return as_c(EINVAL);
  *info = mine.resolved.release();
  return 0;
}

// Queues an event of the application's own, in order with the others.
int rdma_write_cm_event(rdma_cm_id* id, int event, int status, uint64_t argument) {
  if (event != event_user && event != event_internal) return as_c(EINVAL);
  return as_c(agent().tell(Id::of(id), event, status, argument));
}

const char* rdma_event_str(rdma_cm_event_type event) {
  const auto index = static_cast<std::size_t>(event);
  return index < event_names.size() ? event_names[index] : "UNKNOWN EVENT";
}

}  // extern "C"
