/* libweir_rpc: calls between programs over TCP, unix sockets, TLS and RDMA, for every language that can call
 * C.
 *
 *   weir_rpc_client *client;
 *   weir_rpc_error error;
 *   if (weir_rpc_connect(&client, "rdma://10.0.0.1:9000", NULL, &error) != 0) puts(error.message);
 *   weir_rpc_call call = WEIR_RPC_CALL("shop.add");
 *   call.arguments = "\x92\x02\x03", call.arguments_size = 3;          MessagePack: [2, 3]
 *   weir_rpc_reply *reply = weir_rpc_run(client, &call);
 *   if (weir_rpc_reply_code(reply) == 0) use(weir_rpc_reply_body(reply, &size), size);
 *   weir_rpc_reply_free(reply);
 *   weir_rpc_close(client);
 *
 * Arguments are one MessagePack array, a result is one MessagePack value. A method is named as `weir rpc
 * list` prints it; the method "weir.methods" lists them with their types.
 *
 * Threads: every function may be called from any thread at any time, also from several at once on one client
 * or server, except that nothing may use an object while or after another thread closes or frees it. Each
 * client and each server has one thread of its own, which does its I/O; callbacks run there and must not
 * block. Processes that fork: use a client or server only in the process that made it.
 *
 * Errors: functions that can fail return 0 or an error number (enum weir_rpc_code) and, where `error` is not
 * NULL, say there what happened and what to do; WEIR_RPC_OVERLOADED where the process has no descriptors,
 * threads or memory left. Every call that was started ends exactly once: with its
 * reply, its deadline, its cancellation or the end of the connection.
 *
 * ABI: structures are opaque, begin with their size or never change, and the functions have version nodes, so
 * programs go on working with later libraries of the same soname. */
#ifndef WEIR_RPC_H
#define WEIR_RPC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEIR_RPC_API __attribute__((visibility("default")))
#else
#define WEIR_RPC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. Later versions may add numbers. */
enum weir_rpc_code {
  WEIR_RPC_OK = 0,
  /* said by the server */
  WEIR_RPC_UNKNOWN_METHOD = 1,
  WEIR_RPC_BAD_ARGUMENTS = 2,
  WEIR_RPC_TOO_LARGE = 3,
  WEIR_RPC_DEADLINE_EXCEEDED = 4,
  WEIR_RPC_CANCELLED = 5,
  WEIR_RPC_OVERLOADED = 6,
  WEIR_RPC_DRAINING = 7,
  WEIR_RPC_FAILED = 8,
  WEIR_RPC_DENIED = 9,
  WEIR_RPC_VERSION_MISMATCH = 10,
  WEIR_RPC_WRONG_CODEC = 11,
  WEIR_RPC_UNAUTHENTICATED = 12,
  WEIR_RPC_SCHEMA_MISMATCH = 13,
  /* said by this side */
  WEIR_RPC_BAD_REPLY = 64,
  WEIR_RPC_CONNECTION_LOST = 65,
  WEIR_RPC_CLOSED = 66,
  WEIR_RPC_PROTOCOL = 67,
  WEIR_RPC_BAD_ADDRESS = 68,
  WEIR_RPC_UNREACHABLE = 69,
  WEIR_RPC_TLS = 70,
  WEIR_RPC_RDMA = 71,
  WEIR_RPC_BAD_SETTING = 72
};

/* "deadline_exceeded"; "unknown" for a number that this library does not know. Never NULL. */
WEIR_RPC_API const char* weir_rpc_code_name(int code);
/* What the caller can do about it, a sentence. Never NULL. */
WEIR_RPC_API const char* weir_rpc_next_step(int code);
/* 1 if the function certainly did not run, so that calling again cannot run it twice. */
WEIR_RPC_API int weir_rpc_did_not_run(int code);
/* The version of the library, "0.1.0". */
WEIR_RPC_API const char* weir_rpc_version(void);

/* `message` says the cause in this place and often what to do; cut off where it is longer. */
typedef struct weir_rpc_error {
  int32_t code;
  char message[508];
} weir_rpc_error;

// clang-format off
/* Settings of a client or a server, by name. NULL wherever options are taken means: all defaults.
 *
 *   timeout_ms             of calls that do not say (client; 30000; 0: for ever)
 *   connect_timeout_ms     (client; 5000)
 *   keepalive_ms           silence of a server after which, if it answers no ping, it has gone (client; 120000; 0: for ever)
 *   max_in_flight          calls at once on a connection (client; 65536; server: functions at once, 1024)
 *   body_bytes             largest arguments and results, sent or taken (67108864; arguments 4194304)
 *   attachment_bytes       largest attachments (1073741824)
 *   token                  sent to the server when the client connects
 *   compression            lz4, zstd or none (the default): of bodies, where both ends have it
 *   compress_from_bytes    smaller bodies go as they are (1024)
 *   exceptions_to_callers  1: callers get the text of an exception that leaves a C++ function (server; 0)
 *   tls.certificate        a file in PEM form, as are the next two
 *   tls.key
 *   tls.authority
 *   tls.server_name        that the server's certificate must be for; else the address's host
 *   tls.check_certificate  1 or 0 (client; 1)
 *   http                   1: HTTP/1.1 with JSON is answered on the server's own ports, docs/rpc.md (server; 0)
 *   http.timeout_ms        of a request that does not say (30000)
 *   http.body_bytes        largest JSON of a request (262144)
 *   http.reply_bytes       largest result, before it becomes JSON (4194304)
 *   http.origins           pages that may call from a browser, as "https://shop.example,https://other.example"
 *   http.hosts             names besides this host's own by which clients may call, with commas between them
 *   rdma.provider          auto, weir or system; else what WEIR_RDMA_PROVIDER says
 *   rdma.library_dir       where Weir's libibverbs.so.1 is; else beside this library, or in LD_LIBRARY_PATH
 *   rdma.receive_blocks    receives that a connection over rdma:// has posted at all times (32; to 4096)
 *   rdma.send_blocks       (16; 4 to 4096)
 *   rdma.block_bytes       size of each (16384; a power of two from 1024 to 1048576)
 *   rdma.held_bytes        received and not yet read before the peer is slowed down (4194304)
 *   rdma.inline_bytes      messages up to this travel in the work request (256; 0: none)
 *   rdma.shared_receives   1: connections of a thread share 16 MiB of receives (0)
 *   rdma.ack_timeout_ms    (250)
 *   rdma.keepalive_ms      how often the device is asked whether the peer is there (3000; 0: never)
 */
// clang-format on
typedef struct weir_rpc_options weir_rpc_options;
WEIR_RPC_API weir_rpc_options* weir_rpc_options_new(void);
WEIR_RPC_API void weir_rpc_options_free(weir_rpc_options* options);
WEIR_RPC_API int weir_rpc_options_set(weir_rpc_options* options, const char* name, const char* value,
                                      weir_rpc_error* error);

/* Who may call a server that is made with these options: the same as in C++ (rpc/authentication.hpp). All run
 * in the server's thread, so what they do is to be quick; `error->message` is what the caller is told. */
typedef struct weir_rpc_caller {
  size_t size;       /* sizeof(weir_rpc_caller) of the library's release */
  const char* token; /* with a zero behind it; empty: none came */
  size_t token_size;
  const char* certificate; /* whom the client's certificate names, "CN=..."; empty: none was shown */
  const char* peer;
} weir_rpc_caller;
typedef struct weir_rpc_identity {
  size_t size;      /* sizeof(weir_rpc_identity) of the library's release */
  char name[256];   /* what weir_rpc_request_identity will say */
  int64_t valid_us; /* then a newer token is asked of the client; 0: for ever; below 0: that is now */
} weir_rpc_identity;
/* When a token comes, or at the first request without one. 0 lets the caller in, with what was written to
 * `identity`; a code refuses it: WEIR_RPC_UNAUTHENTICATED or another of those that servers say. */
typedef int (*weir_rpc_authenticate)(void* user, const weir_rpc_caller* caller, weir_rpc_identity* identity,
                                     weir_rpc_error* error);
/* For each call; 0, or a code such as WEIR_RPC_DENIED. */
typedef int (*weir_rpc_authorise)(void* user, const char* identity, const char* method,
                                  weir_rpc_error* error);
WEIR_RPC_API void weir_rpc_options_authenticate(weir_rpc_options* options, weir_rpc_authenticate authenticate,
                                                void* user);
WEIR_RPC_API void weir_rpc_options_authorise(weir_rpc_options* options, weir_rpc_authorise authorise,
                                             void* user);

/* ---- Calling ---- */

typedef struct weir_rpc_client weir_rpc_client;
typedef struct weir_rpc_reply weir_rpc_reply;

/* Connects to tcp://HOST:PORT, unix:///PATH, tls://HOST:PORT, rdma://HOST:PORT or rdma+tls://HOST:PORT.
 * Blocks, connect_timeout_ms at most. A client whose connection was lost stays so: connect another. */
WEIR_RPC_API int weir_rpc_connect(weir_rpc_client** client, const char* address,
                                  const weir_rpc_options* options, weir_rpc_error* error);
/* Ends all calls with WEIR_RPC_CLOSED, and makes later ones end so; the client stays for weir_rpc_close. For
 * programs whose threads share a client: shut it down, wait until nobody uses it, close it. */
WEIR_RPC_API void weir_rpc_shutdown(weir_rpc_client* client);
/* Ends all calls with WEIR_RPC_CLOSED, and frees the client when their callbacks have run. In a callback of
 * the client itself it returns before that. Replies stay valid. NULL does nothing. */
WEIR_RPC_API void weir_rpc_close(weir_rpc_client* client);
/* 1 while calls can be made: neither lost nor asked by the server to leave. */
WEIR_RPC_API int weir_rpc_is_open(weir_rpc_client* client);

#define WEIR_RPC_MSGPACK 0u
#define WEIR_RPC_PROTOBUF 1u

#define WEIR_RPC_IDEMPOTENT 1u /* may run twice: what retries rest on */

typedef struct weir_rpc_call {
  size_t size; /* sizeof(weir_rpc_call) */
  const char* method;
  const void* arguments; /* a MessagePack array, or a message; NULL: none */
  size_t arguments_size;
  const void*
      attachment; /* raw bytes beside the arguments, sent from where they lie; over RDMA from a copy */
  size_t attachment_size;
  void* reply_into; /* where the reply's attachment goes if it fits; else the reply has memory of its own */
  size_t reply_into_size;
  int64_t timeout_us; /* 0: the client's timeout_ms */
  uint32_t flags;
  uint32_t codec; /* of `arguments`: WEIR_RPC_MSGPACK, or what `weir rpc list` names */
} weir_rpc_call;

#define WEIR_RPC_CALL(name) {sizeof(weir_rpc_call), (name), NULL, 0, NULL, 0, NULL, 0, 0, 0, 0}

/* Calls and waits. Never NULL (but for want of memory); free the reply. */
WEIR_RPC_API weir_rpc_reply* weir_rpc_run(weir_rpc_client* client, const weir_rpc_call* call);

/* Calls without waiting, and gives a number of the call to cancel it by. `method` and `arguments` are copied;
 * `attachment` and `reply_into` must stay until the call ended. `done` runs once in the client's thread and
 * owns the reply. With `done` NULL the reply waits in a queue: see weir_rpc_fd. */
typedef void (*weir_rpc_done)(void* user, weir_rpc_reply* reply);
WEIR_RPC_API uint64_t weir_rpc_start(weir_rpc_client* client, const weir_rpc_call* call, weir_rpc_done done,
                                     void* user);
/* Ends the call with WEIR_RPC_CANCELLED, and tells the server, unless it has ended. */
WEIR_RPC_API void weir_rpc_cancel(weir_rpc_client* client, uint64_t call);

/* For event loops: a descriptor that is readable while replies of calls without `done` wait, and the next of
 * them, with the `user` of its call; NULL when none waits. The descriptor is the client's: do not close it,
 * do not read it. */
WEIR_RPC_API int weir_rpc_fd(weir_rpc_client* client);
WEIR_RPC_API weir_rpc_reply* weir_rpc_take(weir_rpc_client* client, void** user);

/* A reply. What the functions return is valid until it is freed. */
WEIR_RPC_API int weir_rpc_reply_code(const weir_rpc_reply* reply);
WEIR_RPC_API const char* weir_rpc_reply_message(
    const weir_rpc_reply* reply); /* empty if the call succeeded */
WEIR_RPC_API const void* weir_rpc_reply_body(const weir_rpc_reply* reply, size_t* size);
/* In reply_into if it fitted there. */
WEIR_RPC_API const void* weir_rpc_reply_attachment(const weir_rpc_reply* reply, size_t* size);
WEIR_RPC_API void weir_rpc_reply_free(weir_rpc_reply* reply);

/* ---- Serving ---- */

typedef struct weir_rpc_server weir_rpc_server;
typedef struct weir_rpc_request weir_rpc_request;

/* Runs in the server's thread and owns the request: it is to be answered with weir_rpc_respond or
 * weir_rpc_refuse, now or later and from any thread, once. */
typedef void (*weir_rpc_handler)(void* user, weir_rpc_request* request);

WEIR_RPC_API int weir_rpc_server_new(weir_rpc_server** server, const weir_rpc_options* options,
                                     weir_rpc_error* error);
/* Before the server listens. `types` is what reflection tells, such as "(i32, i32) -> i32"; NULL: nothing. */
WEIR_RPC_API int weir_rpc_server_add(weir_rpc_server* server, const char* method, const char* types,
                                     weir_rpc_handler handler, void* user, weir_rpc_error* error);
/* Any number of addresses. `bound`, if not NULL, takes the address with the port that the kernel chose where
 * 0 was asked for. */
WEIR_RPC_API int weir_rpc_server_listen(weir_rpc_server* server, const char* address, char* bound,
                                        size_t bound_size, weir_rpc_error* error);
/* Reads the files of tls.certificate, tls.key and tls.authority again: new connections begin with them, and
 * none ends. If they do not go together nothing changes. */
WEIR_RPC_API int weir_rpc_server_renew_certificates(weir_rpc_server* server, weir_rpc_error* error);
/* Accepts nothing more, takes no new calls, answers those under way. */
WEIR_RPC_API void weir_rpc_server_drain(weir_rpc_server* server);
/* Connections open now. */
WEIR_RPC_API uint32_t weir_rpc_server_open(weir_rpc_server* server);
/* Closes all connections. Requests that were not answered yet stay valid and still are to be answered, which
 * frees them. */
WEIR_RPC_API void weir_rpc_server_free(weir_rpc_server* server);

/* A request. What the functions return is valid until it is answered. */
WEIR_RPC_API const char* weir_rpc_request_method(const weir_rpc_request* request);
WEIR_RPC_API const void* weir_rpc_request_arguments(const weir_rpc_request* request, size_t* size);
WEIR_RPC_API const void* weir_rpc_request_attachment(const weir_rpc_request* request, size_t* size);
WEIR_RPC_API const char* weir_rpc_request_peer(const weir_rpc_request* request);
/* Whom the caller's certificate names, "CN=..."; empty without one. */
WEIR_RPC_API const char* weir_rpc_request_certificate(const weir_rpc_request* request);
/* Who weir_rpc_authenticate said that the caller is; empty without one. */
WEIR_RPC_API const char* weir_rpc_request_identity(const weir_rpc_request* request);
/* Microseconds that the caller still waits; -1: for ever. */
WEIR_RPC_API int64_t weir_rpc_request_remaining_us(const weir_rpc_request* request);
/* 1 once nobody waits for the answer any more; it is to be answered all the same. */
WEIR_RPC_API int weir_rpc_request_cancelled(const weir_rpc_request* request);

/* `result` is one MessagePack value, copied; NULL: nil. `attachment` is sent from where it lies (over RDMA
 * from a copy): `release`, if not NULL, is called with `owner` when it is no longer used, from any thread;
 * with NULL it is copied. */
typedef void (*weir_rpc_release)(void* owner);
WEIR_RPC_API void weir_rpc_respond(weir_rpc_request* request, const void* result, size_t result_size,
                                   const void* attachment, size_t attachment_size, weir_rpc_release release,
                                   void* owner);
/* Answers with an error; `code` is one of those that servers say, anything else becomes WEIR_RPC_FAILED. */
WEIR_RPC_API void weir_rpc_refuse(weir_rpc_request* request, int code, const char* message);

#ifdef __cplusplus
}
#endif

#endif
