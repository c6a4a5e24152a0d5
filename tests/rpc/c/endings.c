/* Every way for a call, a client and a server to end. */
#include <unistd.h>

#include "fixture.h"
#include "tests.h"

void a_deadline_ends_the_call_at_both_ends(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("test.hold");
  call.timeout_us = 20000;
  expect_code(weir_rpc_run(client, &call), WEIR_RPC_DEADLINE_EXCEEDED);
  await_cancellation(take_held());
}

void the_longest_time_out_is_for_ever(weir_rpc_client* client) {
  weir_rpc_call call = hello();
  call.timeout_us = INT64_MAX;
  check_hello(weir_rpc_run(client, &call));
}

void a_cancelled_call_ends_at_both_ends(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("test.hold");
  void* user = NULL;
  const uint64_t id = weir_rpc_start(client, &call, NULL, &call);
  weir_rpc_request* request = take_held(); /* it runs */
  weir_rpc_cancel(client, id);
  expect_code(next_reply(client, &user), WEIR_RPC_CANCELLED);
  CHECK(user == &call);
  await_cancellation(request);
  weir_rpc_cancel(client, id);                                        /* of a call that is over: nothing */
  weir_rpc_cancel(client, weir_rpc_start(client, &call, NULL, NULL)); /* perhaps before it was sent */
  expect_code(next_reply(client, NULL), WEIR_RPC_CANCELLED);
  check_hello((call = hello(), weir_rpc_run(client, &call)));
  weir_rpc_request* late = held_by_now(); /* it may have arrived all the same */
  if (late != NULL) await_cancellation(late);
}

static atomic_int ended;
static void count_closed(void* client, weir_rpc_reply* reply) {
  (void)client;
  expect_code(reply, WEIR_RPC_CLOSED);
  atomic_fetch_add(&ended, 1);
}

void closing_ends_every_call(weir_rpc_client* client) {
  weir_rpc_client* other = connected();
  weir_rpc_call call = WEIR_RPC_CALL("test.hold");
  weir_rpc_start(other, &call, count_closed, other);
  weir_rpc_request* request = take_held();
  weir_rpc_close(other);
  CHECK(atomic_load(&ended) == 1);
  await_cancellation(request);
  weir_rpc_call still = hello();
  check_hello(weir_rpc_run(client, &still)); /* the other connection is as it was */
}

void a_client_that_was_shut_down_ends_calls_until_it_is_closed(weir_rpc_client* client) {
  (void)client;
  weir_rpc_client* other = connected();
  weir_rpc_call call = WEIR_RPC_CALL("test.hold");
  weir_rpc_start(other, &call, NULL, NULL);
  weir_rpc_request* request = take_held();
  weir_rpc_shutdown(other);
  expect_code(next_reply(other, NULL), WEIR_RPC_CLOSED);
  await_cancellation(request);
  call = hello();
  expect_code(weir_rpc_run(other, &call), WEIR_RPC_CLOSED);
  CHECK(!weir_rpc_is_open(other));
  weir_rpc_close(other);
}

static int closed_from_inside[2];
static void close_from_inside(void* client, weir_rpc_reply* reply) {
  weir_rpc_call call = hello();
  expect_code(weir_rpc_run(client, &call), WEIR_RPC_BAD_SETTING); /* would wait for itself */
  check_hello(reply);
  weir_rpc_close(client);
  CHECK(write(closed_from_inside[1], "x", 1) == 1);
}

void a_callback_may_close_its_client(weir_rpc_client* client) {
  (void)client;
  char byte;
  weir_rpc_client* other = connected();
  weir_rpc_call call = hello();
  CHECK(pipe(closed_from_inside) == 0);
  weir_rpc_start(other, &call, close_from_inside, other);
  CHECK(read(closed_from_inside[0], &byte, 1) == 1);
}

void a_request_outlives_its_server(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("test.hold");
  weir_rpc_start(client, &call, NULL, NULL);
  weir_rpc_request* request = take_held();
  weir_rpc_server_drain(server);
  weir_rpc_server_free(server);
  expect_code(next_reply(client, NULL), WEIR_RPC_CONNECTION_LOST);
  CHECK(!weir_rpc_is_open(client));
  CHECK(weir_rpc_request_cancelled(request));
  const int before = atomic_load(&released);
  weir_rpc_respond(request, NULL, 0, lent, sizeof lent, count, &released);
  CHECK(atomic_load(&released) == before + 1);
  call = hello();
  expect_code(weir_rpc_run(client, &call), WEIR_RPC_CONNECTION_LOST);
}
