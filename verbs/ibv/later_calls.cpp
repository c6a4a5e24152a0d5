// The public calls that came with rdma-core 62 to 65 (nodes IBVERBS_1.16 to 1.18). A program built against
// one of those releases binds them when it starts.
//
// Debian 12's header declares none of their types. Hardware features (completion counters, descriptors of DMA
// buffers) are refused as rdma-core refuses them for a provider that lacks them.
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

struct ibv_buf {  // programs hold only pointers to it
  ibv_pd* pd;
  void* addr;
  std::size_t size;
};

extern "C" {

void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** made) {
  void* memory = nullptr;
  if (const int error = ::posix_memalign(&memory, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), size);
      error != 0) {
    errno = error;
    return nullptr;
  }
  *made = new ibv_buf{pd, memory, size};
  return memory;
}

void ibv_free_buf(ibv_buf* buf) {
  std::free(buf->addr);
  delete buf;
}

ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, size_t length, int access) {
  const auto from = reinterpret_cast<std::uintptr_t>(addr),
             begin = reinterpret_cast<std::uintptr_t>(buf->addr);
  if (pd != buf->pd || from < begin || from - begin > buf->size || length > buf->size - (from - begin)) {
    errno = EINVAL;
    return nullptr;
  }
  return (ibv_reg_mr)(pd, addr, length, access);
}

int ibv_export_buf_dmabuf_fd(ibv_buf*) {
  errno = ENODATA;
  return -1;
}

int ibv_dm_export_dmabuf_fd(ibv_dm*) {
  errno = EOPNOTSUPP;
  return -1;
}

int ibv_query_port_speed(ibv_context*, uint32_t, uint64_t*) { return EOPNOTSUPP; }

void* ibv_create_comp_cntr(ibv_context*, void*) {
  errno = EOPNOTSUPP;
  return nullptr;
}
int _ibv_query_comp_cntr_caps(ibv_context*, void*, size_t) { return EOPNOTSUPP; }
int ibv_destroy_comp_cntr(void*) { return EOPNOTSUPP; }
int ibv_set_comp_cntr(void*, uint64_t) { return EOPNOTSUPP; }
int ibv_set_err_comp_cntr(void*, uint64_t) { return EOPNOTSUPP; }
int ibv_inc_comp_cntr(void*, uint64_t) { return EOPNOTSUPP; }
int ibv_inc_err_comp_cntr(void*, uint64_t) { return EOPNOTSUPP; }
int ibv_read_comp_cntr(void*, uint64_t*) { return EOPNOTSUPP; }
int ibv_read_err_comp_cntr(void*, uint64_t*) { return EOPNOTSUPP; }
int ibv_qp_attach_comp_cntr(ibv_qp*, void*, void*) { return EOPNOTSUPP; }

}  // extern "C"
