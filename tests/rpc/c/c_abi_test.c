/* libweir_rpc from C: a server and clients in one process, over the transport that is asked for.
 *
 * usage: c_abi_test tcp|unix|tls|rdma|rdma+tls */
#define _GNU_SOURCE
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir_rpc.h>

#define CHECK(what)                                                        \
  do {                                                                     \
    if (!(what)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what); \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

enum { large = 1 << 20, at_once = 64, threads = 4, calls_a_thread = 200, longest_ms = 30000 };

static char folder[] = "/tmp/weir-c-abi-XXXXXX";
static char address[256];
static weir_rpc_server* server;

/* ---- What the server does ---- */

/* Requests that nobody has answered yet. */
static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held_changed = PTHREAD_COND_INITIALIZER;
static weir_rpc_request* held;

static weir_rpc_request* take_held(void) {
  pthread_mutex_lock(&held_mutex);
  while (held == NULL) pthread_cond_wait(&held_changed, &held_mutex);
  weir_rpc_request* request = held;
  held = NULL;
  pthread_mutex_unlock(&held_mutex);
  return request;
}

static void hold(void* user, weir_rpc_request* request) {
  (void)user;
  pthread_mutex_lock(&held_mutex);
  CHECK(held == NULL);
  held = request;
  pthread_cond_signal(&held_changed);
  pthread_mutex_unlock(&held_mutex);
}

/* [value] -> value, and the attachment back. */
static void echo(void* user, weir_rpc_request* request) {
  size_t size, attached;
  const char* arguments = weir_rpc_request_arguments(request, &size);
  const void* attachment = weir_rpc_request_attachment(request, &attached);
  CHECK(user == &server);
  CHECK(strcmp(weir_rpc_request_method(request), "test.echo") == 0);
  CHECK(size >= 1 && (unsigned char)arguments[0] == 0x91);
  weir_rpc_respond(request, arguments + 1, size - 1, attachment, attached, NULL, NULL);
}

static void nothing(void* user, weir_rpc_request* request) {
  (void)user;
  weir_rpc_respond(request, NULL, 0, NULL, 0, NULL, NULL);
}

static void deny(void* user, weir_rpc_request* request) {
  (void)user;
  weir_rpc_refuse(request, WEIR_RPC_DENIED, "not you");
}

static void certificate(void* user, weir_rpc_request* request) {
  (void)user;
  char text[64];
  const char* named = weir_rpc_request_certificate(request);
  CHECK(strlen(named) < 32);
  text[0] = (char)(0xa0 | strlen(named)); /* a MessagePack string */
  memcpy(text + 1, named, strlen(named));
  CHECK(weir_rpc_request_peer(request)[0] != 0);
  CHECK(weir_rpc_request_remaining_us(request) > 0);
  weir_rpc_respond(request, text, strlen(named) + 1, NULL, 0, NULL, NULL);
}

static void count(void* counter) { atomic_fetch_add((atomic_int*)counter, 1); }

static atomic_int released;
static char lent[large];
static void lend(void* user, weir_rpc_request* request) {
  (void)user;
  weir_rpc_respond(request, NULL, 0, lent, sizeof lent, count, &released);
}

/* ---- What clients do ---- */

static weir_rpc_options* options;

static weir_rpc_client* connected(void) {
  weir_rpc_client* client = NULL;
  weir_rpc_error error = {0, ""};
  if (weir_rpc_connect(&client, address, options, &error) != 0) {
    fprintf(stderr, "%s: %s: %s\n", address, weir_rpc_code_name(error.code), error.message);
    exit(1);
  }
  CHECK(weir_rpc_is_open(client));
  return client;
}

static weir_rpc_call hello(void) {
  weir_rpc_call call = WEIR_RPC_CALL("test.echo");
  call.arguments = "\x91\xa5hello";
  call.arguments_size = 7;
  return call;
}

static void check_hello(weir_rpc_reply* reply) {
  size_t size;
  const void* body = weir_rpc_reply_body(reply, &size);
  CHECK(weir_rpc_reply_code(reply) == WEIR_RPC_OK);
  CHECK(weir_rpc_reply_message(reply)[0] == 0);
  CHECK(size == 6 && memcmp(body, "\xa5hello", 6) == 0);
  weir_rpc_reply_free(reply);
}

static void expect_code(weir_rpc_reply* reply, int code) {
  if (weir_rpc_reply_code(reply) != code) {
    fprintf(stderr, "expected %s, got %s: %s\n", weir_rpc_code_name(code),
            weir_rpc_code_name(weir_rpc_reply_code(reply)), weir_rpc_reply_message(reply));
    exit(1);
  }
  if (code != 0) CHECK(weir_rpc_reply_message(reply)[0] != 0 && weir_rpc_next_step(code)[0] != 0);
  weir_rpc_reply_free(reply);
}

static void a_call_brings_its_result(weir_rpc_client* client) {
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

static void attachments_travel_both_ways(weir_rpc_client* client) {
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

static void lent_memory_is_given_back(weir_rpc_client* client) {
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

static void failures_say_their_cause(weir_rpc_client* client) {
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

static void await_cancellation(weir_rpc_request* request) {
  while (!weir_rpc_request_cancelled(request)) sched_yield();
  weir_rpc_respond(request, NULL, 0, NULL, 0, NULL, NULL);
}

static void a_deadline_ends_the_call_at_both_ends(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("test.hold");
  call.timeout_us = 20000;
  expect_code(weir_rpc_run(client, &call), WEIR_RPC_DEADLINE_EXCEEDED);
  await_cancellation(take_held());
}

static weir_rpc_reply* next_reply(weir_rpc_client* client, void** user) {
  weir_rpc_reply* reply;
  while ((reply = weir_rpc_take(client, user)) == NULL) {
    struct pollfd wait = {weir_rpc_fd(client), POLLIN, 0};
    CHECK(poll(&wait, 1, longest_ms) == 1);
  }
  return reply;
}

static void a_cancelled_call_ends_at_both_ends(weir_rpc_client* client) {
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
  if (pthread_mutex_lock(&held_mutex) == 0) { /* it may have arrived all the same */
    weir_rpc_request* late = held;
    held = NULL;
    pthread_mutex_unlock(&held_mutex);
    if (late != NULL) await_cancellation(late);
  }
}

static void a_request_is_answered_from_another_thread(weir_rpc_client* client) {
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

static void an_event_loop_takes_many_replies(weir_rpc_client* client) {
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

static void threads_share_a_client(weir_rpc_client* client) {
  pthread_t all[threads];
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&all[i], NULL, many_calls, client) == 0);
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
}

static atomic_int ended;
static void count_closed(void* client, weir_rpc_reply* reply) {
  (void)client;
  expect_code(reply, WEIR_RPC_CLOSED);
  atomic_fetch_add(&ended, 1);
}

static void closing_ends_every_call(weir_rpc_client* client) {
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

static void a_client_that_was_shut_down_ends_calls_until_it_is_closed(weir_rpc_client* client) {
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

static void a_callback_may_close_its_client(weir_rpc_client* client) {
  (void)client;
  char byte;
  weir_rpc_client* other = connected();
  weir_rpc_call call = hello();
  CHECK(pipe(closed_from_inside) == 0);
  weir_rpc_start(other, &call, close_from_inside, other);
  CHECK(read(closed_from_inside[0], &byte, 1) == 1);
}

static void a_certificate_names_the_caller(weir_rpc_client* client) {
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

static void a_server_asks_the_program_who_may_call(weir_rpc_client* client) {
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

static void bad_settings_are_named(weir_rpc_client* client) {
  (void)client;
  static const struct {
    const char *name, *value, *says;
  } bad[] = {{"colour", "red", "colour"},
             {"timeout_ms", "soon", "soon"},
             {"timeout_ms", "-1", "-1"},
             {"timeout_ms", "", "timeout_ms"},
             {"tls.check_certificate", "2", "0 to 1"},
             {"compression", "gzip", "gzip"},
             {"rdma.provider", "mine", "mine"}};
  weir_rpc_error error;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    CHECK(weir_rpc_options_set(options, bad[i].name, bad[i].value, &error) == WEIR_RPC_BAD_SETTING);
    CHECK(error.code == WEIR_RPC_BAD_SETTING && strstr(error.message, bad[i].says) != NULL);
  }
  weir_rpc_client* none = NULL;
  CHECK(weir_rpc_connect(&none, "ftp://x:1", NULL, &error) == WEIR_RPC_BAD_ADDRESS && none == NULL);
  CHECK(weir_rpc_connect(&none, "unix:///nowhere/at/all", NULL, &error) == WEIR_RPC_UNREACHABLE);
  CHECK(weir_rpc_connect(NULL, address, NULL, NULL) == WEIR_RPC_BAD_SETTING);
  CHECK(weir_rpc_server_add(server, "test.late", NULL, nothing, NULL, &error) == WEIR_RPC_BAD_SETTING);
  CHECK(strcmp(weir_rpc_code_name(WEIR_RPC_OVERLOADED), "overloaded") == 0);
  CHECK(strcmp(weir_rpc_code_name(9999), "unknown") == 0);
}

static void reflection_lists_the_functions(weir_rpc_client* client) {
  weir_rpc_call call = WEIR_RPC_CALL("weir.methods");
  weir_rpc_reply* reply = weir_rpc_run(client, &call);
  size_t size;
  const void* body = weir_rpc_reply_body(reply, &size);
  CHECK(memmem(body, size, "test.echo", 9) != NULL && memmem(body, size, "(any) -> any", 12) != NULL);
  expect_code(reply, WEIR_RPC_OK);
}

/* The last: without its server. */
static void a_request_outlives_its_server(weir_rpc_client* client) {
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

/* ---- */

static void make_options(const char* transport) {
  options = weir_rpc_options_new();
  CHECK(weir_rpc_options_set(options, "timeout_ms", "30000", NULL) == 0);
  if (strstr(transport, "tls") == NULL) return;
  char key[64], made[64], command[512];
  snprintf(key, sizeof key, "%s/key", folder);
  snprintf(made, sizeof made, "%s/certificate", folder);
  snprintf(command, sizeof command,
           "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server "
           "-days 2 -keyout %s -out %s >/dev/null 2>&1",
           key, made);
  CHECK(system(command) == 0);
  CHECK(weir_rpc_options_set(options, "tls.certificate", made, NULL) == 0);
  CHECK(weir_rpc_options_set(options, "tls.key", key, NULL) == 0);
  CHECK(weir_rpc_options_set(options, "tls.authority", made, NULL) == 0);
  CHECK(weir_rpc_options_set(options, "tls.server_name", "server", NULL) == 0);
}

static void start_server(const char* transport) {
  weir_rpc_error error = {0, ""};
  char where[128];
  CHECK(weir_rpc_server_new(&server, options, &error) == 0);
  CHECK(weir_rpc_server_add(server, "test.echo", "(any) -> any", echo, &server, &error) == 0);
  CHECK(weir_rpc_server_add(server, "test.nothing", NULL, nothing, NULL, &error) == 0);
  CHECK(weir_rpc_server_add(server, "test.hold", NULL, hold, NULL, &error) == 0);
  CHECK(weir_rpc_server_add(server, "test.deny", NULL, deny, NULL, &error) == 0);
  CHECK(weir_rpc_server_add(server, "test.lend", NULL, lend, NULL, &error) == 0);
  CHECK(weir_rpc_server_add(server, "test.certificate", NULL, certificate, NULL, &error) == 0);
  CHECK(weir_rpc_server_add(server, "test.echo", NULL, echo, NULL, &error) == WEIR_RPC_BAD_SETTING);
  if (strcmp(transport, "unix") == 0)
    snprintf(where, sizeof where, "unix://%s/socket", folder);
  else
    snprintf(where, sizeof where, "%s://127.0.0.1:0", transport);
  if (weir_rpc_server_listen(server, where, address, sizeof address, &error) != 0) {
    fprintf(stderr, "%s: %s\n", where, error.message);
    exit(1);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: c_abi_test tcp|unix|tls|rdma|rdma+tls\n"), 2;
  CHECK(mkdtemp(folder) != NULL);
  make_options(argv[1]);
  start_server(argv[1]);
  static const struct {
    const char* name;
    void (*run)(weir_rpc_client*);
  } tests[] = {
#define TEST(function) {#function, function}
      TEST(a_call_brings_its_result),
      TEST(attachments_travel_both_ways),
      TEST(lent_memory_is_given_back),
      TEST(failures_say_their_cause),
      TEST(a_deadline_ends_the_call_at_both_ends),
      TEST(a_cancelled_call_ends_at_both_ends),
      TEST(a_request_is_answered_from_another_thread),
      TEST(an_event_loop_takes_many_replies),
      TEST(threads_share_a_client),
      TEST(closing_ends_every_call),
      TEST(a_client_that_was_shut_down_ends_calls_until_it_is_closed),
      TEST(a_callback_may_close_its_client),
      TEST(a_certificate_names_the_caller),
      TEST(a_server_asks_the_program_who_may_call),
      TEST(bad_settings_are_named),
      TEST(reflection_lists_the_functions),
      TEST(a_request_outlives_its_server),
  };
  weir_rpc_client* client = connected();
  for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
    tests[i].run(client);
    printf("ok %s\n", tests[i].name);
    fflush(stdout);
  }
  weir_rpc_close(client);
  weir_rpc_options_free(options);
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
  return 0;
}
