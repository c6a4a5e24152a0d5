/* What the tests of libweir_rpc from C share: a server in this process and what its functions do, and clients
 * of it, over the transport that is asked for. One test runs at a time. */
#pragma once

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir_rpc.h>

#define CHECK(what)                                                        \
  do {                                                                     \
    if (!(what)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

enum { large = 1 << 20 };

extern char folder[]; /* of this run */
extern char address[256];
extern weir_rpc_options* options;
extern weir_rpc_server* server;

void set_up(const char* transport);
void tear_down(void);

/* ---- What the server does ---- */

/* test.hold's request, when it has come; whoever takes it answers it. */
weir_rpc_request* take_held(void);
weir_rpc_request* held_by_now(void); /* or NULL */
void nothing(void* user, weir_rpc_request* request);
/* test.lend's memory, and how often it was given back. */
extern char lent[large];
extern atomic_int released;
void count(void* counter);

/* ---- What clients do ---- */

weir_rpc_client* connected(void);
weir_rpc_call hello(void);
void check_hello(weir_rpc_reply* reply);
void expect_code(weir_rpc_reply* reply, int code);
weir_rpc_reply* next_reply(weir_rpc_client* client, void** user);
void await_cancellation(weir_rpc_request* request);
