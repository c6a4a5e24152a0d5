/* Calls and what they bring, waited for and through an event loop. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>

#include "fixture.h"
#include "tests.h"

enum { at_once = 64, threads = 4, calls_a_thread = 200 };

void a_call_brings_its_result(weir_rpc_client* client) {
  weir_rpc_call call = hello();
  check_hello(weir_rpc_run(client, &call));
  CHECK(weir_rpc_server_open(server) == 1);
  weir_rpc_call none = WEIR_RPC_CALL("test.nothing");
  weir_rpc_reply* reply = weir_rpc_run(client, &none);
  size_t size;
  const void* body = weir_rpc_reply_body(reply, &size);
  CHECK(size == 1 && memcmp(body, "\xc0", 1) == 0);
  expect_code(reply, WEIR_RPC_OK);
}

void attachments_travel_both_ways(weir_rpc_client* client) {
  char *out = malloc(large), *in = malloc(large);
  for (size_t i = 0; i < large; ++i) out[i] = (char)(i * 7 + i / 251);
  weir_rpc_call call = hello();
  call.attachment = out;
  call.attachment_size = large;
  for (int own_memory = 0; own_memory < 2; ++own_memory) {
    call.reply_into = own_memory ? in : NULL;
    call.reply_into_size = own_memory ? large : 0;
    weir_rpc_reply* reply = weir_rpc_run(client, &call);
    size_t size;
    const void* back = weir_rpc_reply_attachment(reply, &size);
    CHECK(size == large && memcmp(back, out, large) == 0);
    CHECK((back == in) == own_memory);
    check_hello(reply);
  }
  free(out);
  free(in);
}

void lent_memory_is_given_back(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("test.lend");
  const int before = atomic_load(&released);
  weir_rpc_reply* reply = weir_rpc_run(client, &call);
  size_t size;
  weir_rpc_reply_attachment(reply, &size);
  CHECK(size == sizeof lent);
  expect_code(reply, WEIR_RPC_OK);
  weir_rpc_call next = hello(); /* behind what was lent */
  check_hello(weir_rpc_run(client, &next));
  CHECK(atomic_load(&released) == before + 1);
}

void failures_say_their_cause(weir_rpc_client* client) {
  weir_rpc_call unknown = WEIR_RPC_CALL("test.sell");
  expect_code(weir_rpc_run(client, &unknown), WEIR_RPC_UNKNOWN_METHOD);
  weir_rpc_call denied = WEIR_RPC_CALL("test.deny");
  weir_rpc_reply* reply = weir_rpc_run(client, &denied);
  CHECK(strcmp(weir_rpc_reply_message(reply), "not you") == 0);
  CHECK(weir_rpc_did_not_run(weir_rpc_reply_code(reply)));
  expect_code(reply, WEIR_RPC_DENIED);
  weir_rpc_call nameless = WEIR_RPC_CALL(NULL);
  expect_code(weir_rpc_run(client, &nameless), WEIR_RPC_BAD_SETTING);
  weir_rpc_call short_one = hello();
  short_one.size = 8;
  expect_code(weir_rpc_run(client, &short_one), WEIR_RPC_BAD_SETTING);
}

void a_request_is_answered_from_another_thread(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("test.hold");
  void* user = NULL;
  weir_rpc_start(client, &call, NULL, &user);
  weir_rpc_respond(take_held(), "\x07", 1, NULL, 0, NULL, NULL);
  weir_rpc_reply* reply = next_reply(client, &user);
  size_t size;
  CHECK(memcmp(weir_rpc_reply_body(reply, &size), "\x07", 1) == 0 && size == 1);
  CHECK(user == &user);
  expect_code(reply, WEIR_RPC_OK);
}

void an_event_loop_takes_many_replies(weir_rpc_client* client) {
  char seen[at_once] = {0};
  weir_rpc_call call = hello();
  for (int i = 0; i < at_once; ++i) weir_rpc_start(client, &call, NULL, &seen[i]);
  for (int i = 0; i < at_once; ++i) {
    void* user = NULL;
    check_hello(next_reply(client, &user));
    CHECK(++*(char*)user == 1);
  }
  struct pollfd none = {weir_rpc_fd(client), POLLIN, 0};
  CHECK(weir_rpc_take(client, NULL) == NULL && poll(&none, 1, 0) == 0);
}

static void* many_calls(void* client) {
  for (int i = 0; i < calls_a_thread; ++i) {
    weir_rpc_call call = hello();
    check_hello(weir_rpc_run(client, &call));
  }
  return NULL;
}

void threads_share_a_client(weir_rpc_client* client) {
  pthread_t all[threads];
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&all[i], NULL, many_calls, client) == 0);
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
}

void reflection_lists_the_functions(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("weir.methods");
  weir_rpc_reply* reply = weir_rpc_run(client, &call);
  size_t size;
  const void* body = weir_rpc_reply_body(reply, &size);
  CHECK(memmem(body, size, "test.echo", 9) != NULL && memmem(body, size, "(any) -> any", 12) != NULL);
  expect_code(reply, WEIR_RPC_OK);
}
