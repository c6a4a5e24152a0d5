#define _GNU_SOURCE
#include "fixture.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
const char* __tsan_default_suppressions(void);
/* OpenSSL is not compiled for ThreadSanitizer, which so does not see its atomics. */
__attribute__((visibility("default"))) const char* __tsan_default_suppressions(void) {
  return "called_from_lib:libcrypto.so.3\ncalled_from_lib:libssl.so.3\n";
}
#endif

enum { longest_ms = 30000 };

char folder[] = "/tmp/weir-c-abi-XXXXXX";
char address[256];
weir_rpc_options* options;
weir_rpc_server* server;

/* ---- What the server does ---- */

static pthread_mutex_t held_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held_changed = PTHREAD_COND_INITIALIZER;
static weir_rpc_request* held;

weir_rpc_request* take_held(void) {
  pthread_mutex_lock(&held_mutex);
  while (held == NULL) pthread_cond_wait(&held_changed, &held_mutex);
  weir_rpc_request* request = held;
  held = NULL;
  pthread_mutex_unlock(&held_mutex);
  return request;
}

weir_rpc_request* held_by_now(void) {
  pthread_mutex_lock(&held_mutex);
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

void nothing(void* user, weir_rpc_request* request) {
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

void count(void* counter) { atomic_fetch_add((atomic_int*)counter, 1); }

atomic_int released;
char lent[large];
static void lend(void* user, weir_rpc_request* request) {
  (void)user;
  weir_rpc_respond(request, NULL, 0, lent, sizeof lent, count, &released);
}

/* ---- What clients do ---- */

weir_rpc_client* connected(void) {
  weir_rpc_client* client = NULL;
  weir_rpc_error error = {0, ""};
  if (weir_rpc_connect(&client, address, options, &error) != 0) {
    fprintf(stderr, "%s: %s: %s\n", address, weir_rpc_code_name(error.code), error.message);
    exit(1);
  }
  CHECK(weir_rpc_is_open(client));
  return client;
}

weir_rpc_call hello(void) {
  weir_rpc_call call = WEIR_RPC_CALL("test.echo");
  call.arguments = "\x91\xa5hello";
  call.arguments_size = 7;
  return call;
}

void check_hello(weir_rpc_reply* reply) {
  size_t size;
  const void* body = weir_rpc_reply_body(reply, &size);
  CHECK(weir_rpc_reply_code(reply) == WEIR_RPC_OK);
  CHECK(weir_rpc_reply_message(reply)[0] == 0);
  CHECK(size == 6 && memcmp(body, "\xa5hello", 6) == 0);
  weir_rpc_reply_free(reply);
}

void expect_code(weir_rpc_reply* reply, int code) {
  if (weir_rpc_reply_code(reply) != code) {
    fprintf(stderr, "expected %s, got %s: %s\n", weir_rpc_code_name(code),
            weir_rpc_code_name(weir_rpc_reply_code(reply)), weir_rpc_reply_message(reply));
    exit(1);
  }
  if (code != 0) CHECK(weir_rpc_reply_message(reply)[0] != 0 && weir_rpc_next_step(code)[0] != 0);
  weir_rpc_reply_free(reply);
}

void await_cancellation(weir_rpc_request* request) {
  while (!weir_rpc_request_cancelled(request)) sched_yield();
  weir_rpc_respond(request, NULL, 0, NULL, 0, NULL, NULL);
}

weir_rpc_reply* next_reply(weir_rpc_client* client, void** user) {
  weir_rpc_reply* reply;
  while ((reply = weir_rpc_take(client, user)) == NULL) {
    struct pollfd wait = {weir_rpc_fd(client), POLLIN, 0};
    CHECK(poll(&wait, 1, longest_ms) == 1);
  }
  return reply;
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

void set_up(const char* transport) {
  CHECK(mkdtemp(folder) != NULL);
  make_options(transport);
  start_server(transport);
}

void tear_down(void) {
  char command[64];
  weir_rpc_options_free(options);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
}
