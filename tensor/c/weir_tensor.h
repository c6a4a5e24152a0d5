/* libweir_tensor: named, versioned arrays between processes over RDMA, for every language that can call C.
 *
 *   weir_tensor_hub *hub; weir_tensor_error error;
 *   if (weir_tensor_listen(&hub, "rdma://0.0.0.0:7800", NULL, &error) != 0) puts(error.message);
 *   weir_tensor_array array = {WEIR_TENSOR_FLOAT, 32, 1, 2, shape, data, "", 0};
 *   weir_tensor_publish(hub, "layer1.w", &array, 1, 0, 1, &version, &error);
 *
 *   weir_tensor_peer *peer;
 *   weir_tensor_connect(&peer, "rdma://10.0.0.1:7800", NULL, &error);
 *   weir_tensor_fetched *got;
 *   weir_tensor_fetch(peer, "layer1.w", NULL, &got, &error);
 *   use(weir_tensor_fetched_data(got, &bytes));
 *   weir_tensor_fetched_free(got);
 *
 * Threads: every function may be called from any thread, several at once on one hub or peer, except that
 * nothing may use an object while or after another thread frees it. A hub has a thread of its own, which
 * calls no code of the program's; a peer has none. Processes that fork: use an object only in the process
 * that made it.
 *
 * Errors: functions that can fail return 0 or an error number (enum weir_tensor_code) and, where `error` is
 * not NULL, say there what happened. ABI: structures are opaque, begin with their size or never change;
 * functions have version nodes. */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEIR_TENSOR_API __attribute__((visibility("default")))
#else
#define WEIR_TENSOR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. Later versions may add numbers. */
enum weir_tensor_code {
  WEIR_TENSOR_OK = 0,
  WEIR_TENSOR_NOT_PUBLISHED = 1,
  WEIR_TENSOR_SUPERSEDED = 2,
  WEIR_TENSOR_SHAPE_MISMATCH = 3,
  WEIR_TENSOR_PEER_GONE = 4,
  WEIR_TENSOR_TIMED_OUT = 5,
  WEIR_TENSOR_UNREACHABLE = 6,
  WEIR_TENSOR_BAD_ADDRESS = 7,
  WEIR_TENSOR_BAD_ARRAY = 8,
  WEIR_TENSOR_TOO_MUCH = 9,
  WEIR_TENSOR_PROTOCOL = 10,
  WEIR_TENSOR_REFUSED = 11,
  WEIR_TENSOR_CLOSED = 12,
  WEIR_TENSOR_DEVICE = 13,
  WEIR_TENSOR_NO_GPU = 14
};

/* "peer_gone"; "unknown" for a number that this library does not know. Never NULL. */
WEIR_TENSOR_API const char* weir_tensor_code_name(int code);
/* What the caller can do about it, a sentence. Never NULL. */
WEIR_TENSOR_API const char* weir_tensor_next_step(int code);
WEIR_TENSOR_API const char* weir_tensor_version(void);

typedef struct weir_tensor_error {
  uint64_t generation; /* WEIR_TENSOR_PEER_GONE: of which hub */
  int32_t code;
  char message[500]; /* cut off where it is longer */
} weir_tensor_error;

/* Elements, in DLPack's numbers (DLDataTypeCode); others of DLPack's pass through. */
enum weir_tensor_kind {
  WEIR_TENSOR_INT = 0,
  WEIR_TENSOR_UINT = 1,
  WEIR_TENSOR_FLOAT = 2,
  WEIR_TENSOR_BFLOAT = 4,
  WEIR_TENSOR_COMPLEX = 5,
  WEIR_TENSOR_BOOL = 6
};

/* A contiguous array in C order. Never changes. */
typedef struct weir_tensor_array {
  uint8_t kind;
  uint8_t bits; /* of one lane */
  uint16_t lanes;
  uint32_t dimensions;
  const uint64_t* shape; /* elements; `dimensions` of them */
  void* data;
  const char* name; /* within a tree; need not end with a zero */
  size_t name_size;
} weir_tensor_array;

/* Settings by name; NULL where options are taken means all defaults.
 *   keep              (hub; 2) superseded versions of a name that slow readers may hold on to
 *   max_connections   (hub; 1024)
 *   push_names        (hub; nothing) what peers may push: names with commas, NAME* for all that begin so
 *   push_from         (hub; everybody) addresses that may push: ADDRESS or ADDRESS/BITS, with commas
 *   push_bytes        (hub; 1073741824) that pushed versions hold, all together
 *   push_bytes_per_peer (hub; 268435456) that those of one connection hold
 *   max_bytes         (peer; 68719476736) of one fetch
 *   read_from_bytes   (peer; 65536) what is this large the peer reads itself
 *   spare_bytes       (peer; 268435456) memory of fetches that is kept to be used again
 *   connect_timeout_ms (peer; 5000)
 *   rdma.provider     auto, weir or system; else what WEIR_RDMA_PROVIDER says
 *   rdma.library_dir  where Weir's libibverbs.so.1 is; else beside this library, or in LD_LIBRARY_PATH */
typedef struct weir_tensor_options weir_tensor_options;
WEIR_TENSOR_API weir_tensor_options* weir_tensor_options_new(void);
WEIR_TENSOR_API void weir_tensor_options_free(weir_tensor_options* options);
WEIR_TENSOR_API int weir_tensor_options_set(weir_tensor_options* options, const char* name, const char* value,
                                            weir_tensor_error* error);

/* ---- Publishing ---- */

typedef struct weir_tensor_hub weir_tensor_hub;

/* rdma://HOST:PORT, tcp://HOST:PORT, or several with commas between them; rdma://HOST:PORT?fallback=tcp is
 * both at one port. Port 0 takes a free one. */
WEIR_TENSOR_API int weir_tensor_listen(weir_tensor_hub** hub, const char* address,
                                       const weir_tensor_options* options, weir_tensor_error* error);
/* Ends all connections. Arrays are the program's again when it returns. NULL does nothing. */
WEIR_TENSOR_API void weir_tensor_hub_free(weir_tensor_hub* hub);
/* "rdma://0.0.0.0:7800", with the port that was taken; valid until the hub is freed. */
WEIR_TENSOR_API const char* weir_tensor_hub_address(const weir_tensor_hub* hub);
WEIR_TENSOR_API uint64_t weir_tensor_hub_generation(const weir_tensor_hub* hub);

/* A new version of `name`, made of `count` arrays; of one without `as_tree` it is an array. What the arrays
 * point to is not copied (small tensors of a tree are): it must stay as it is until `token`, a number of the
 * program's, came out of weir_tensor_released. */
WEIR_TENSOR_API int weir_tensor_publish(weir_tensor_hub* hub, const char* name,
                                        const weir_tensor_array* arrays, size_t count, int as_tree,
                                        uint64_t token, uint64_t* version, weir_tensor_error* error);
/* Tokens of memory that is the program's again; how many were written to `tokens`. */
WEIR_TENSOR_API size_t weir_tensor_released(weir_tensor_hub* hub, uint64_t* tokens, size_t most);
/* 1 if there was such a name. */
WEIR_TENSOR_API int weir_tensor_withdraw(weir_tensor_hub* hub, const char* name);

typedef struct weir_tensor_hub_stats {
  size_t size; /* sizeof(weir_tensor_hub_stats), set by the caller */
  uint64_t connections, connections_made, requests, written, written_bytes, located, metadata_updates,
      superseded, broken, live_bytes, pushes, pushed_bytes, pushed_held_bytes, tcp_connections;
  uint64_t private_bytes,
      shared_bytes; /* of live_bytes: the kernel copies them; the reader's software NIC maps them */
  uint64_t direct_bytes, packed_bytes; /* published so far: sent from where they lie; copied together first */
  uint64_t frames; /* of messages that came: fewer than requests, where several share one */
} weir_tensor_hub_stats;
/* As much of it as `size` says. */
WEIR_TENSOR_API void weir_tensor_hub_get_stats(weir_tensor_hub* hub, weir_tensor_hub_stats* stats);

/* ---- Fetching ---- */

typedef struct weir_tensor_peer weir_tensor_peer;
typedef struct weir_tensor_fetched weir_tensor_fetched;
typedef struct weir_tensor_pending weir_tensor_pending;

/* To rdma://HOST:PORT or tcp://HOST:PORT; with rdma://HOST:PORT?fallback=tcp by TCP where RDMA does not
 * answer within half of connect_timeout_ms, which one line to stderr says. Waits until it is connected,
 * connect_timeout_ms at most. When the hub goes, fetches that are under way fail with WEIR_TENSOR_PEER_GONE,
 * and the next one connects anew. */
WEIR_TENSOR_API int weir_tensor_connect(weir_tensor_peer** peer, const char* address,
                                        const weir_tensor_options* options, weir_tensor_error* error);
/* Ends its fetches with WEIR_TENSOR_CLOSED. What was fetched stays. NULL does nothing. */
WEIR_TENSOR_API void weir_tensor_peer_free(weir_tensor_peer* peer);
WEIR_TENSOR_API uint64_t weir_tensor_peer_generation(const weir_tensor_peer* peer);

typedef struct weir_tensor_wish {
  size_t size;         /* sizeof(weir_tensor_wish) */
  uint64_t newer_than; /* only a version above this; 0: any */
  uint64_t generation; /* of the hub that newer_than is of; 0: whichever is there */
  int64_t timeout_us;  /* above 0: waits that long for such a version */
  const weir_tensor_array*
      out; /* where it goes: exactly of the array's dtype and shape; NULL: memory of its own */
} weir_tensor_wish;

/* Fetches and waits. `wish` may be NULL. After an error what is in `out` is unspecified. */
WEIR_TENSOR_API int weir_tensor_fetch(weir_tensor_peer* peer, const char* name, const weir_tensor_wish* wish,
                                      weir_tensor_fetched** fetched, weir_tensor_error* error);
/* Several at once, which costs less than one after the other: as many requests as fit share a message, and
 * none waits for the answer to another. `wishes`, and each of them, may be NULL, `errors`, too. fetched[i] is
 * NULL where that one failed, and errors[i] says why. 0 if all came; else what the first that failed says. */
WEIR_TENSOR_API int weir_tensor_fetch_many(weir_tensor_peer* peer, const char* const* names,
                                           const weir_tensor_wish* const* wishes, size_t count,
                                           weir_tensor_fetched** fetched, weir_tensor_error* errors);
/* In two steps, for several at a time. `out` stays until the second, which frees `pending`. */
WEIR_TENSOR_API weir_tensor_pending* weir_tensor_start(weir_tensor_peer* peer, const char* name,
                                                       const weir_tensor_wish* wish);
WEIR_TENSOR_API int weir_tensor_finish(weir_tensor_peer* peer, weir_tensor_pending* pending,
                                       weir_tensor_fetched** fetched, weir_tensor_error* error);

/* Each next version of a name, without a request for each: destinations for `ahead` versions (0: 2) are at
 * the hub before there are any, and a version is written to one of them as soon as it is published, also
 * while the program is busy. Versions rise; when the program is busy for longer than `ahead` - 1 of them,
 * some are skipped. When the hub goes, next fails with WEIR_TENSOR_PEER_GONE once, and then begins with what
 * the next hub has. `out` of the wish means nothing here. One thread at a time; free it also after its peer
 * was freed. */
typedef struct weir_tensor_follower weir_tensor_follower;
WEIR_TENSOR_API int weir_tensor_follow(weir_tensor_peer* peer, const char* name, const weir_tensor_wish* wish,
                                       uint32_t ahead, weir_tensor_follower** follower,
                                       weir_tensor_error* error);
WEIR_TENSOR_API int weir_tensor_follow_next(weir_tensor_follower* follower, int64_t timeout_us,
                                            weir_tensor_fetched** fetched, weir_tensor_error* error);
WEIR_TENSOR_API void weir_tensor_follow_free(weir_tensor_follower* follower);

/* What the hub itself has of a name, published or pushed: as weir_tensor_fetch, without `out`. Its data may
 * be the version itself: they must not be written to. */
WEIR_TENSOR_API int weir_tensor_hub_get(weir_tensor_hub* hub, const char* name, const weir_tensor_wish* wish,
                                        weir_tensor_fetched** fetched, weir_tensor_error* error);

/* A new version at the hub, as weir_tensor_publish makes one there; where its options let peers push. The
 * memory is the program's again when this returns. After PEER_GONE or TIMED_OUT it may have become a version
 * or not. */
WEIR_TENSOR_API int weir_tensor_push(weir_tensor_peer* peer, const char* name,
                                     const weir_tensor_array* arrays, size_t count, int as_tree,
                                     int64_t timeout_us, uint64_t* version, weir_tensor_error* error);

/* What was fetched; valid until it is freed, also without its peer. */
WEIR_TENSOR_API uint64_t weir_tensor_fetched_version(const weir_tensor_fetched* fetched);
WEIR_TENSOR_API uint64_t weir_tensor_fetched_generation(const weir_tensor_fetched* fetched);
/* The same for versions of a name and a generation that have equal dtypes, shapes and names. */
WEIR_TENSOR_API uint64_t weir_tensor_fetched_metadata_id(const weir_tensor_fetched* fetched);
WEIR_TENSOR_API void* weir_tensor_fetched_data(const weir_tensor_fetched* fetched, size_t* bytes);
WEIR_TENSOR_API size_t weir_tensor_fetched_count(const weir_tensor_fetched* fetched);
/* The tensor of that number; its data point into weir_tensor_fetched_data. 0, or WEIR_TENSOR_BAD_ARRAY. */
WEIR_TENSOR_API int weir_tensor_fetched_array(const weir_tensor_fetched* fetched, size_t which,
                                              weir_tensor_array* array);
WEIR_TENSOR_API void weir_tensor_fetched_free(weir_tensor_fetched* fetched);

typedef struct weir_tensor_peer_stats {
  size_t size; /* sizeof(weir_tensor_peer_stats), set by the caller */
  uint64_t fetches, fetched_bytes, read_bytes, metadata_updates, connects, pushes, pushed_bytes, fallbacks;
  uint64_t transport; /* of the newest connection: 1 RDMA, 2 TCP; 0 before the first */
} weir_tensor_peer_stats;
/* As much of it as `size` says. */
WEIR_TENSOR_API void weir_tensor_peer_get_stats(weir_tensor_peer* peer, weir_tensor_peer_stats* stats);

/* ---- Memory ---- */

/* Zeroed memory that the software NIC of another process maps, so that what lies here is copied without the
 * kernel. Each piece holds a descriptor. NULL if there is none left. */
WEIR_TENSOR_API void* weir_tensor_empty(size_t bytes);
WEIR_TENSOR_API void weir_tensor_empty_free(void* memory);

/* ---- GPU memory ---- */

/* Of CUDA's GPUs. Arrays are published from host memory and fetched to it; what lies in a GPU's memory is
 * copied there first, and back afterwards. NVIDIA's driver, libcuda.so.1, is loaded at the first call of
 * these; WEIR_TENSOR_NO_GPU says that there is none, or what it refused. `device` is CUDA's number of the
 * GPU.
 *
 * The copies of a GPU run on one stream, *stream (a CUstream of its primary context): make it wait for who
 * writes to the GPU's memory, or still reads it, before a copy begins. */
WEIR_TENSOR_API int weir_tensor_gpu_stream(int device, void** stream, weir_tensor_error* error);
/* Begin a copy, to host memory and from it. */
WEIR_TENSOR_API int weir_tensor_gpu_read(int device, void* host, const void* gpu_memory, size_t bytes,
                                         weir_tensor_error* error);
WEIR_TENSOR_API int weir_tensor_gpu_write(int device, void* gpu_memory, const void* host, size_t bytes,
                                          weir_tensor_error* error);
/* Until every copy that was begun is done. */
WEIR_TENSOR_API int weir_tensor_gpu_wait(int device, weir_tensor_error* error);
/* Host memory for such copies: pinned, as far as 2 GiB are not pinned already, and shared as
 * weir_tensor_empty() is. What is in it is unspecified. It is used again, so it costs little. */
WEIR_TENSOR_API int weir_tensor_staging_take(int device, size_t bytes, void** memory,
                                             weir_tensor_error* error);
/* Once for each; not while a version lies there or a copy is under way. */
WEIR_TENSOR_API void weir_tensor_staging_give_back(void* memory);

#ifdef __cplusplus
}
#endif
#endif
