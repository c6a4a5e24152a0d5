// Importing a device and its objects by number (ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3),
// ibv_import_dm(3)).
//
// A kernel device can be imported by another process. Our objects belong to one process, as its memory does,
// so only another context of the same process can import them. A descriptor from another process is refused.
#include <unistd.h>

#include <cerrno>

#include "verbs/ibv/command_fd.hpp"
#include "verbs/ibv/device_memory.hpp"
#include "verbs/ibv/domains.hpp"

using namespace weir::verbs;

extern "C" {

ibv_context* ibv_import_device(int cmd_fd) {
  switch (whose_command_fd(cmd_fd)) {
    case CommandFdOf::nobody:
      errno = EINVAL;
      return nullptr;
    case CommandFdOf::another_process:
      errno = EOPNOTSUPP;
      return nullptr;
    case CommandFdOf::this_process:
      break;
  }
  return open_context(&devices()[device_of_command_fd(cmd_fd)].device, cmd_fd);
}

ibv_pd* ibv_import_pd(ibv_context* context, uint32_t handle) {
  if (!domain_exists(handle)) {
    errno = ENOENT;
    return nullptr;
  }
  auto* pd = new Pd{};
  pd->number = handle;
  pd->pd = {context, handle};
  return &pd->pd;
}

// Objects made in the domain may still exist and be destroyed later.
void ibv_unimport_pd(ibv_pd* pd) {
  Pd& p = pd_of(pd);
  p.users.fetch_add(1);
  p.unimported.store(true);
  drop_user(p);
}

ibv_mr* ibv_import_mr(ibv_pd* pd, uint32_t handle) {
  const auto& table = context_of(pd->context).adapter().table();
  const auto& entry = table.entry(handle << 8);
  const std::uint32_t key = entry.key.load();
  if (key == 0 || key >> 8 != handle || entry.pd != pd_of(pd).number) {
    errno = ENOENT;
    return nullptr;
  }
  auto* mr = new Mr{};
  mr->mr = {pd->context, pd, nullptr, entry.length, handle, key, key};
  mr->access = entry.access;
  pd_of(pd).users.fetch_add(1);
  return &mr->mr;
}

void ibv_unimport_mr(ibv_mr* mr) {
  drop_user(pd_of(mr->pd));
  delete reinterpret_cast<Mr*>(mr);
}

ibv_dm* ibv_import_dm(ibv_context* context, uint32_t handle) {
  ibv_dm* const dm = import_device_memory(context, handle);
  if (dm == nullptr) errno = ENOENT;
  return dm;
}

void ibv_unimport_dm(ibv_dm* dm) { delete &dm_of(dm); }

}  // extern "C"
