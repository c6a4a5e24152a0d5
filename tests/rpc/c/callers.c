/* Who calls, and whether they may. */
#include "fixture.h"
#include "tests.h"

void a_certificate_names_the_caller(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("test.certificate");
  weir_rpc_reply* reply = weir_rpc_run(client, &call);
  size_t size;
  const char* name = weir_rpc_reply_body(reply, &size);
  const char* wanted = strstr(address, "tls") != NULL ? "CN=server" : "";
  CHECK(size == strlen(wanted) + 1 && memcmp(name + 1, wanted, size - 1) == 0);
  expect_code(reply, WEIR_RPC_OK);
}

static int let_in(void* user, const weir_rpc_caller* caller, weir_rpc_identity* who, weir_rpc_error* error) {
  CHECK(user == &server && caller->size == sizeof *caller && caller->peer[0] != 0);
  if (caller->token_size == 0) {
    snprintf(error->message, sizeof error->message, "no token");
    return WEIR_RPC_UNAUTHENTICATED;
  }
  snprintf(who->name, sizeof who->name, "%s's bearer", caller->token);
  return 0;
}
static int may(void* user, const char* identity, const char* method, weir_rpc_error* error) {
  CHECK(user == &server);
  if (strcmp(method, "test.nothing") != 0) return 0;
  snprintf(error->message, sizeof error->message, "not %s", identity);
  return WEIR_RPC_DENIED;
}
static void whoami(void* user, weir_rpc_request* request) {
  char name[64];
  const int size = snprintf(name + 1, sizeof name - 1, "%s", weir_rpc_request_identity(request));
  (void)user;
  name[0] = (char)(0xa0 | size);
  weir_rpc_respond(request, name, (size_t)size + 1, NULL, 0, NULL, NULL);
}

void a_server_asks_the_program_who_may_call(weir_rpc_client* client) {
  (void)client;
  weir_rpc_error error;
  weir_rpc_server* guarded;
  weir_rpc_client* other;
  char at[128], where[128];
  weir_rpc_options_authenticate(options, let_in, &server);
  weir_rpc_options_authorise(options, may, &server);
  CHECK(weir_rpc_server_new(&guarded, options, &error) == 0);
  CHECK(weir_rpc_server_add(guarded, "test.whoami", NULL, whoami, NULL, &error) == 0);
  CHECK(weir_rpc_server_add(guarded, "test.nothing", NULL, nothing, NULL, &error) == 0);
  snprintf(where, sizeof where, "unix://%s/guarded", folder);
  CHECK(weir_rpc_server_listen(guarded, where, at, sizeof at, &error) == 0);

  weir_rpc_call call = WEIR_RPC_CALL("test.whoami");
  CHECK(weir_rpc_connect(&other, at, options, &error) == 0);
  weir_rpc_reply* refused = weir_rpc_run(other, &call);
  CHECK(strcmp(weir_rpc_reply_message(refused), "no token") == 0);
  expect_code(refused, WEIR_RPC_UNAUTHENTICATED);
  weir_rpc_close(other);

  CHECK(weir_rpc_options_set(options, "token", "gold", NULL) == 0);
  CHECK(weir_rpc_connect(&other, at, options, &error) == 0);
  weir_rpc_reply* named = weir_rpc_run(other, &call);
  size_t size;
  const char* name = weir_rpc_reply_body(named, &size);
  CHECK(size == 14 && memcmp(name + 1, "gold's bearer", 13) == 0);
  expect_code(named, WEIR_RPC_OK);
  call.method = "test.nothing";
  weir_rpc_reply* denied = weir_rpc_run(other, &call);
  CHECK(strcmp(weir_rpc_reply_message(denied), "not gold's bearer") == 0);
  expect_code(denied, WEIR_RPC_DENIED);
  weir_rpc_close(other);
  weir_rpc_server_free(guarded);
  CHECK(weir_rpc_options_set(options, "token", "", NULL) == 0);
  weir_rpc_options_authenticate(options, NULL, NULL);
  weir_rpc_options_authorise(options, NULL, NULL);
}

static int let_in_until(void* valid_us, const weir_rpc_caller* caller, weir_rpc_identity* who,
                        weir_rpc_error* error) {
  (void)caller, (void)error;
  who->valid_us = *(const int64_t*)valid_us;
  return 0;
}

void a_caller_is_let_in_for_as_long_as_the_program_says(weir_rpc_client* client) {
  static const struct {
    int64_t valid_us;
    int code;
  } rows[] = {{0, WEIR_RPC_OK},
              {INT64_MAX, WEIR_RPC_OK},
              {-1, WEIR_RPC_UNAUTHENTICATED}, /* as of a token that had expired when it was looked at */
              {INT64_MIN, WEIR_RPC_UNAUTHENTICATED}};
  (void)client;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    int64_t valid_us = rows[i].valid_us;
    weir_rpc_error error;
    weir_rpc_server* guarded;
    weir_rpc_client* other;
    char at[128], where[128];
    weir_rpc_options_authenticate(options, let_in_until, &valid_us);
    CHECK(weir_rpc_server_new(&guarded, options, &error) == 0);
    CHECK(weir_rpc_server_add(guarded, "test.nothing", NULL, nothing, NULL, &error) == 0);
    snprintf(where, sizeof where, "unix://%s/until", folder);
    CHECK(weir_rpc_server_listen(guarded, where, at, sizeof at, &error) == 0);
    CHECK(weir_rpc_connect(&other, at, options, &error) == 0);
    weir_rpc_call call = WEIR_RPC_CALL("test.nothing");
    expect_code(weir_rpc_run(other, &call), rows[i].code);
    weir_rpc_close(other);
    weir_rpc_server_free(guarded);
    weir_rpc_options_authenticate(options, NULL, NULL);
  }
}
