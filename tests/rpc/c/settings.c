/* What is refused with the name of what is wrong. */
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "tests.h"

void bad_settings_are_named(weir_rpc_client* client) {
  (void)client;
  static const struct {
    const char *name, *value, *says;
  } bad[] = {{"colour", "red", "colour"},
             {"timeout_ms", "soon", "soon"},
             {"timeout_ms", "-1", "-1"},
             {"timeout_ms", "", "timeout_ms"},
             {"tls.check_certificate", "2", "0 to 1"},
             {"compression", "gzip", "gzip"},
             {"http", "2", "0 to 1"},
             {"rdma.receive_blocks", "5000", "0 to 4096"},
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

/* The first bytes of the answer to `request`. */
static void ask(const char* at, const char* request, char* answer, size_t size) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int to_server = socket(AF_INET, SOCK_STREAM, 0);
  to.sin_port = htons((uint16_t)atoi(strrchr(at, ':') + 1));
  CHECK(connect(to_server, (struct sockaddr*)&to, sizeof to) == 0);
  CHECK(send(to_server, request, strlen(request), 0) == (ssize_t)strlen(request));
  const ssize_t got = recv(to_server, answer, size - 1, 0);
  answer[got > 0 ? got : 0] = 0;
  close(to_server);
}

void a_server_answers_http_if_it_is_told_to(weir_rpc_client* client) {
  (void)client;
  weir_rpc_error error;
  char at[128], answer[256];
  for (int on = 0; on < 2; ++on) {
    weir_rpc_options* of_server = weir_rpc_options_new();
    weir_rpc_server* other;
    CHECK(weir_rpc_options_set(of_server, "http.hosts", "shop.example,other.example", &error) == 0);
    CHECK(weir_rpc_options_set(of_server, "http", on ? "1" : "0", &error) == 0);
    CHECK(weir_rpc_server_new(&other, of_server, &error) == 0);
    CHECK(weir_rpc_server_listen(other, "tcp://127.0.0.1:0", at, sizeof at, &error) == 0);
    ask(at, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", answer, sizeof answer);
    CHECK((strncmp(answer, "HTTP/1.1 200", 12) == 0) == on);
    weir_rpc_server_free(other);
    weir_rpc_options_free(of_server);
  }
}

void certificates_are_renewed_or_the_fault_is_named(weir_rpc_client* client) {
  weir_rpc_error error = {0, ""};
  const int secure = strstr(address, "tls") != NULL;
  if (!secure) {
    CHECK(weir_rpc_server_renew_certificates(server, &error) != 0 && error.message[0] != 0);
    return;
  }
  CHECK(weir_rpc_server_renew_certificates(server, &error) == 0);
  weir_rpc_call call = hello();
  check_hello(weir_rpc_run(client, &call));
}

static int is_told(int code, const weir_rpc_error* error) {
  return code != 0 && error->code == code && strstr(error->message, "open files") != NULL;
}

void a_process_without_descriptors_is_told_so(weir_rpc_client* client) {
  struct rlimit before, none_left;
  weir_rpc_error error = {0, ""};
  weir_rpc_client* none = client;
  weir_rpc_server* other;
  CHECK(weir_rpc_server_new(&other, options, &error) == 0);
  CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none_left = before;
  none_left.rlim_cur = 3; /* those that are open stay */
  CHECK(setrlimit(RLIMIT_NOFILE, &none_left) == 0);
  const int connect_told = is_told(weir_rpc_connect(&none, address, options, &error), &error);
  const int listen_told =
      is_told(weir_rpc_server_listen(other, "tcp://127.0.0.1:0", NULL, 0, &error), &error);
  CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(connect_told && none == NULL);
  CHECK(listen_told);
  CHECK(weir_rpc_server_listen(other, "tcp://127.0.0.1:0", NULL, 0, &error) == 0); /* there are some again */
  weir_rpc_server_free(other);
}
