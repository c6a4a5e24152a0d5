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
/* What the caller can do about it, as a sentence. Never NULL. */
WEIR_TENSOR_API const char* weir_tensor_next_step(int code);
WEIR_TENSOR_API const char* weir_tensor_version(void);

typedef struct weir_tensor_error {
  uint64_t generation; /* WEIR_TENSOR_PEER_GONE: the hub's generation */
  int32_t code;
  char message[500]; /* cut off if longer */
} weir_tensor_error;

/* Element types, in DLPack's numbers (DLDataTypeCode); DLPack's other types pass through. */
enum weir_tensor_kind {
  WEIR_TENSOR_INT = 0,
  WEIR_TENSOR_UINT = 1,
  WEIR_TENSOR_FLOAT = 2,
  WEIR_TENSOR_BFLOAT = 4,
  WEIR_TENSOR_COMPLEX = 5,
  WEIR_TENSOR_BOOL = 6
};

/* A contiguous array in C order. The layout never changes. */
typedef struct weir_tensor_array {
  uint8_t kind;
  uint8_t bits; /* of one lane */
  uint16_t lanes;
  uint32_t dimensions;
  const uint64_t* shape; /* number of elements in each of `dimensions` */
  void* data;
  const char* name; /* within a tree; need not be zero-terminated */
  size_t name_size;
} weir_tensor_array;

/* Settings by name. Passing NULL for options means all defaults.
 *   keep              (hub; 2) superseded versions of a name that slow readers may hold
 *   max_connections   (hub; 1024)
 *   token             (hub, peer; none) both must have the same; a hub without one serves its own host only
 *   open              (hub; 0) 1: serve every host without a token
 *   tls.certificate   a file in PEM form, as are the next two; a hub at tls:// needs it and its key
 *   tls.key
 *   tls.authority     signs the other end's certificate; a hub with one asks peers for theirs and serves them
 *   tls.server_name   (peer; the address's host) what the hub's certificate must be for
 *   push_names        (hub; none) names that peers may push, comma-separated; NAME* matches all that begin so
 *   push_from         (hub; all peers) who may push: ADDRESS or ADDRESS/BITS, comma-separated
 *   push_bytes        (hub; 1073741824) limit for all pushed versions together
 *   push_bytes_per_peer (hub; 268435456) limit for those of one connection
 *   max_bytes         (peer; 68719476736) limit for one fetch
 *   read_from_bytes   (peer; 65536) from this size on the peer READs a version itself
 *   spare_bytes       (peer; 268435456) memory of past fetches kept for reuse
 *   connect_timeout_ms (peer; 5000)
 *   rdma.provider     auto, weir or system; the default is WEIR_RDMA_PROVIDER
 *   rdma.library_dir  where Weir's libibverbs.so.1 is; default: beside this library or in LD_LIBRARY_PATH */
typedef struct weir_tensor_options weir_tensor_options;
WEIR_TENSOR_API weir_tensor_options* weir_tensor_options_new(void);
WEIR_TENSOR_API void weir_tensor_options_free(weir_tensor_options* options);
WEIR_TENSOR_API int weir_tensor_options_set(weir_tensor_options* options, const char* name, const char* value,
                                            weir_tensor_error* error);

/* ---- Publishing ---- */

typedef struct weir_tensor_hub weir_tensor_hub;

/* `address` is rdma://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, or several separated by commas;
 * rdma://HOST:PORT?fallback=tcp listens for both at one port. Port 0 picks a free one. */
WEIR_TENSOR_API int weir_tensor_listen(weir_tensor_hub** hub, const char* address,
                                       const weir_tensor_options* options, weir_tensor_error* error);
/* Closes all connections. The arrays are the program's again when it returns. NULL does nothing. */
WEIR_TENSOR_API void weir_tensor_hub_free(weir_tensor_hub* hub);
/* "rdma://0.0.0.0:7800", with the port that was chosen; valid until the hub is freed. */
WEIR_TENSOR_API const char* weir_tensor_hub_address(const weir_tensor_hub* hub);
WEIR_TENSOR_API uint64_t weir_tensor_hub_generation(const weir_tensor_hub* hub);

/* Publishes a new version of `name`, a tree of `count` arrays; with `as_tree` 0 and one array it is that
 * array. The arrays' data are not copied (small tensors of a tree are): they must not change until
 * weir_tensor_released returns `token`, a number that the program chooses. */
WEIR_TENSOR_API int weir_tensor_publish(weir_tensor_hub* hub, const char* name,
                                        const weir_tensor_array* arrays, size_t count, int as_tree,
                                        uint64_t token, uint64_t* version, weir_tensor_error* error);
/* Collects tokens whose memory is the program's again; returns how many were written to `tokens`. */
WEIR_TENSOR_API size_t weir_tensor_released(weir_tensor_hub* hub, uint64_t* tokens, size_t most);
/* Returns 1 if the name had a version. */
WEIR_TENSOR_API int weir_tensor_withdraw(weir_tensor_hub* hub, const char* name);

/* Publishes a version that ends by itself: when `readers` (0: 1) have said that they are done with it
 * (weir_tensor_done), or after timeout_us. Afterwards nobody is sent it, and weir_tensor_released returns
 * `token` as soon as no transfer is in progress. */
typedef struct weir_tensor_lease weir_tensor_lease;
enum weir_tensor_lease_end {
  WEIR_TENSOR_LEASE_LASTS = 0,
  WEIR_TENSOR_LEASE_DONE = 1,       /* all readers said so */
  WEIR_TENSOR_LEASE_NEVER_CAME = 2, /* the time is over, and nobody was sent it */
  WEIR_TENSOR_LEASE_LEFT = 3,       /* the time is over; it was sent, and not all said that they are done */
  WEIR_TENSOR_LEASE_CLOSED = 4      /* the hub was freed */
};
WEIR_TENSOR_API int weir_tensor_lend(weir_tensor_hub* hub, const char* name, const weir_tensor_array* arrays,
                                     size_t count, int as_tree, uint64_t token, uint32_t readers,
                                     int64_t timeout_us, weir_tensor_lease** lease, uint64_t* version,
                                     weir_tensor_error* error);
/* Waits for the end, for timeout_us at most: enum weir_tensor_lease_end. */
WEIR_TENSOR_API int weir_tensor_lease_wait(weir_tensor_lease* lease, int64_t timeout_us);
/* After the end: the words of the readers that were done, number 0 first; NULL beyond the last. Valid until
 * the lease is freed, and zero-terminated. */
WEIR_TENSOR_API const char* weir_tensor_lease_word(const weir_tensor_lease* lease, size_t which,
                                                   size_t* bytes);
/* The program's end of it; what is lent stays lent. It may outlive the hub. One thread at a time. */
WEIR_TENSOR_API void weir_tensor_lease_free(weir_tensor_lease* lease);

typedef struct weir_tensor_hub_stats {
  size_t size; /* sizeof(weir_tensor_hub_stats), set by the caller */
  uint64_t connections, connections_made, requests, written, written_bytes, located, metadata_updates,
      superseded, broken, live_bytes, pushes, pushed_bytes, pushed_held_bytes, tcp_connections;
  uint64_t private_bytes,
      shared_bytes; /* parts of live_bytes: copied by the kernel; mapped by the reader's software NIC */
  uint64_t direct_bytes, packed_bytes; /* published so far: sent from where they lie; copied together first */
  uint64_t frames;                     /* received; fewer than requests where several share a frame */
} weir_tensor_hub_stats;
/* Fills in as many members as `size` covers. */
WEIR_TENSOR_API void weir_tensor_hub_get_stats(weir_tensor_hub* hub, weir_tensor_hub_stats* stats);

/* ---- Fetching ---- */

typedef struct weir_tensor_peer weir_tensor_peer;
typedef struct weir_tensor_fetched weir_tensor_fetched;
typedef struct weir_tensor_pending weir_tensor_pending;

/* Connects to rdma://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT. With rdma://HOST:PORT?fallback=tcp it
 * uses TCP if RDMA does not answer within half of connect_timeout_ms, and says so on stderr. Blocks until it
 * is connected, for connect_timeout_ms at most. When the hub goes, fetches in progress fail with
 * WEIR_TENSOR_PEER_GONE, and the next one connects again. */
WEIR_TENSOR_API int weir_tensor_connect(weir_tensor_peer** peer, const char* address,
                                        const weir_tensor_options* options, weir_tensor_error* error);
/* Fails pending fetches with WEIR_TENSOR_CLOSED. Fetched arrays stay valid. NULL does nothing. */
WEIR_TENSOR_API void weir_tensor_peer_free(weir_tensor_peer* peer);
WEIR_TENSOR_API uint64_t weir_tensor_peer_generation(const weir_tensor_peer* peer);

/* Rows `first` to `first` + `count` - 1 of an array: elements of its first dimension. */
typedef struct weir_tensor_rows {
  uint64_t first, count;
} weir_tensor_rows;

typedef struct weir_tensor_wish {
  size_t size;                  /* sizeof(weir_tensor_wish) */
  uint64_t newer_than;          /* only a version above this; 0: any */
  uint64_t generation;          /* the hub that newer_than refers to; 0: any hub */
  int64_t timeout_us;           /* if positive: how long to wait for such a version */
  const weir_tensor_array* out; /* destination, with exactly the array's dtype and shape; NULL: allocate */
  /* Only these rows of an array, one after another, in any order; `out` then has their shape. At most 1024
   * runs that do not touch. 0 runs: the whole version. */
  const weir_tensor_rows* rows;
  size_t runs;
} weir_tensor_wish;

/* Fetches and waits. `wish` may be NULL. After an error the contents of `out` are unspecified. */
WEIR_TENSOR_API int weir_tensor_fetch(weir_tensor_peer* peer, const char* name, const weir_tensor_wish* wish,
                                      weir_tensor_fetched** fetched, weir_tensor_error* error);
/* Fetches several arrays at once, which costs less than one after the other: requests share messages, and
 * none waits for the answer to another. `wishes`, each of its elements, and `errors` may be NULL.
 * fetched[i] is NULL if that fetch failed, and errors[i] says why. Returns 0 if all succeeded, else the
 * first failure's number. */
WEIR_TENSOR_API int weir_tensor_fetch_many(weir_tensor_peer* peer, const char* const* names,
                                           const weir_tensor_wish* const* wishes, size_t count,
                                           weir_tensor_fetched** fetched, weir_tensor_error* errors);
/* Fetches in two steps, to overlap several. `out` must stay valid until the second, which frees `pending`. */
WEIR_TENSOR_API weir_tensor_pending* weir_tensor_start(weir_tensor_peer* peer, const char* name,
                                                       const weir_tensor_wish* wish);
WEIR_TENSOR_API int weir_tensor_finish(weir_tensor_peer* peer, weir_tensor_pending* pending,
                                       weir_tensor_fetched** fetched, weir_tensor_error* error);

/* Waits until weir_tensor_finish would not block, for timeout_us at most: 1, or 0 if the time is over. */
WEIR_TENSOR_API int weir_tensor_wait(weir_tensor_peer* peer, const weir_tensor_pending* pending,
                                     int64_t timeout_us);
/* A file descriptor for poll, epoll or an event loop: readable when a fetch that was started, or a follower's
 * next version, is done. Read its 8 bytes first and look then, by weir_tensor_wait or weir_tensor_follow_next
 * with a timeout of 0: one signal may stand for several. It belongs to the peer, and is one for all; do not
 * close it. From the first call on the peer has a thread, which does the work. */
WEIR_TENSOR_API int weir_tensor_descriptor(weir_tensor_peer* peer, int* descriptor, weir_tensor_error* error);
/* Ends a fetch that was started and frees `pending`. Afterwards nothing is written to `out` any more. It
 * takes a message to the hub and back, and a second at most. */
WEIR_TENSOR_API void weir_tensor_cancel(weir_tensor_peer* peer, weir_tensor_pending* pending);

/* Delivers each next version of a name without a request for each. Destinations for `ahead` versions (0:
 * 2) are posted at the hub before publication, and the hub writes a version to one of them as soon as it
 * is published, even while the program is busy. Version numbers only rise; if the program falls more than
 * `ahead` - 1 versions behind, some are skipped. When the hub goes, weir_tensor_follow_next fails with
 * WEIR_TENSOR_PEER_GONE once, and then starts with whatever the next hub has. `out` in the wish is
 * ignored. One thread at a time. The follower may outlive its peer, and must be freed all the same. */
typedef struct weir_tensor_follower weir_tensor_follower;
WEIR_TENSOR_API int weir_tensor_follow(weir_tensor_peer* peer, const char* name, const weir_tensor_wish* wish,
                                       uint32_t ahead, weir_tensor_follower** follower,
                                       weir_tensor_error* error);
WEIR_TENSOR_API int weir_tensor_follow_next(weir_tensor_follower* follower, int64_t timeout_us,
                                            weir_tensor_fetched** fetched, weir_tensor_error* error);
WEIR_TENSOR_API void weir_tensor_follow_free(weir_tensor_follower* follower);

/* Gets a version from the hub in this process, published or pushed: like weir_tensor_fetch, without `out`.
 * The data may be the version itself, so do not write to them. */
WEIR_TENSOR_API int weir_tensor_hub_get(weir_tensor_hub* hub, const char* name, const weir_tensor_wish* wish,
                                        weir_tensor_fetched** fetched, weir_tensor_error* error);

/* Makes a new version at the hub, as weir_tensor_publish does there, if the hub's options allow it. The
 * memory is the program's again when this returns. After PEER_GONE or TIMED_OUT the version may or may not
 * exist. */
WEIR_TENSOR_API int weir_tensor_push(weir_tensor_peer* peer, const char* name,
                                     const weir_tensor_array* arrays, size_t count, int as_tree,
                                     int64_t timeout_us, uint64_t* version, weir_tensor_error* error);

/* Adds the arrays to the newest version of `name` at the hub, element by element, and makes the sum a new
 * version; under a new name they become the first. Sums of one name are made one after the other, so
 * that none is lost. Floats of 16, 32 and 64 bits (both kinds of 16), and integers, which wrap. Otherwise as
 * weir_tensor_push; WEIR_TENSOR_SUPERSEDED: somebody published under the name meanwhile, and nothing was
 * added. */
WEIR_TENSOR_API int weir_tensor_add(weir_tensor_peer* peer, const char* name, const weir_tensor_array* arrays,
                                    size_t count, int as_tree, int64_t timeout_us, uint64_t* version,
                                    weir_tensor_error* error);

/* Says that this reader is done with a version that was lent (weir_tensor_lend), and leaves a word of at most
 * 1024 bytes for the publisher. WEIR_TENSOR_SUPERSEDED: it is not lent any more, so what was read since may
 * have changed. */
WEIR_TENSOR_API int weir_tensor_done(weir_tensor_peer* peer, const char* name, uint64_t version,
                                     uint64_t generation, const char* word, size_t word_bytes,
                                     int64_t timeout_us, weir_tensor_error* error);

/* The result of a fetch; valid until it is freed, even after its peer is. */
WEIR_TENSOR_API uint64_t weir_tensor_fetched_version(const weir_tensor_fetched* fetched);
WEIR_TENSOR_API uint64_t weir_tensor_fetched_generation(const weir_tensor_fetched* fetched);
/* Equal for versions of a name and generation whose dtypes, shapes and names are equal. */
WEIR_TENSOR_API uint64_t weir_tensor_fetched_metadata_id(const weir_tensor_fetched* fetched);
WEIR_TENSOR_API void* weir_tensor_fetched_data(const weir_tensor_fetched* fetched, size_t* bytes);
WEIR_TENSOR_API size_t weir_tensor_fetched_count(const weir_tensor_fetched* fetched);
/* Describes tensor number `which`; its data point into weir_tensor_fetched_data. 0, or
 * WEIR_TENSOR_BAD_ARRAY. */
WEIR_TENSOR_API int weir_tensor_fetched_array(const weir_tensor_fetched* fetched, size_t which,
                                              weir_tensor_array* array);
WEIR_TENSOR_API void weir_tensor_fetched_free(weir_tensor_fetched* fetched);

typedef struct weir_tensor_peer_stats {
  size_t size; /* sizeof(weir_tensor_peer_stats), set by the caller */
  uint64_t fetches, fetched_bytes, read_bytes, metadata_updates, connects, pushes, pushed_bytes, fallbacks;
  uint64_t transport; /* the newest connection's: 1 RDMA, 2 TCP, 3 TLS; 0 before the first */
} weir_tensor_peer_stats;
/* Fills in as many members as `size` covers. */
WEIR_TENSOR_API void weir_tensor_peer_get_stats(weir_tensor_peer* peer, weir_tensor_peer_stats* stats);

/* ---- Memory ---- */

/* Zeroed memory that the software NIC of another process maps, so that data here are copied without the
 * kernel. Each allocation holds a descriptor. NULL if none is left. */
WEIR_TENSOR_API void* weir_tensor_empty(size_t bytes);
WEIR_TENSOR_API void weir_tensor_empty_free(void* memory);

/* ---- GPU memory ---- */

/* For CUDA's GPUs. Arrays are published from host memory and fetched to it; data in a GPU's memory are
 * copied to host memory before, and from it afterwards. NVIDIA's driver, libcuda.so.1, is loaded by the
 * first of these calls; WEIR_TENSOR_NO_GPU means that there is no driver, or that it reported an error.
 * `device` is CUDA's device number.
 *
 * The copies of a GPU run on one stream, *stream (a CUstream of its primary context). Before a copy
 * begins, make it wait for the work that writes the GPU's memory or still reads it. */
WEIR_TENSOR_API int weir_tensor_gpu_stream(int device, void** stream, weir_tensor_error* error);
/* Start a copy to host memory, and from it. */
WEIR_TENSOR_API int weir_tensor_gpu_read(int device, void* host, const void* gpu_memory, size_t bytes,
                                         weir_tensor_error* error);
WEIR_TENSOR_API int weir_tensor_gpu_write(int device, void* gpu_memory, const void* host, size_t bytes,
                                          weir_tensor_error* error);
/* Waits until all copies that were started are done. */
WEIR_TENSOR_API int weir_tensor_gpu_wait(int device, weir_tensor_error* error);
/* Host memory for such copies: shared like that of weir_tensor_empty(), and pinned, up to 2 GiB in all. It
 * is not zeroed. Blocks are reused, so this costs little. */
WEIR_TENSOR_API int weir_tensor_staging_take(int device, size_t bytes, void** memory,
                                             weir_tensor_error* error);
/* Call once for each, but not while a version lies there or a copy is in progress. */
WEIR_TENSOR_API void weir_tensor_staging_give_back(void* memory);

#ifdef __cplusplus
}
#endif
#endif
