/* A program with an epoll loop of its own fetches arrays that are not there yet: nothing in it blocks, and it
 * has no thread for them. A timer of the same loop publishes one array after the other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <weir_tensor.h>

enum { ARRAYS = 3 };

static weir_tensor_error error;

static void must(int code) {
  if (code == 0) return;
  fprintf(stderr, "%s: %s; %s\n", weir_tensor_code_name(code), error.message, weir_tensor_next_step(code));
  exit(1);
}

static void watch(int epoll, int descriptor) {
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) exit(1);
}

int main(void) {
  static const char* const names[ARRAYS] = {"a", "b", "c"};
  static const uint64_t shape[1] = {4};
  static float data[ARRAYS][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};

  weir_tensor_hub* hub = NULL;
  weir_tensor_peer* peer = NULL;
  must(weir_tensor_listen(&hub, "rdma://127.0.0.1:0", NULL, &error));
  must(weir_tensor_connect(&peer, weir_tensor_hub_address(hub), NULL, &error));

  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  int done = -1;
  must(weir_tensor_descriptor(peer, &done, &error));
  watch(epoll, timer);
  watch(epoll, done);
  const struct itimerspec every_10_ms = {{0, 10000000}, {0, 10000000}};
  timerfd_settime(timer, 0, &every_10_ms, NULL);

  const weir_tensor_wish wish = {.size = sizeof wish, .timeout_us = 10000000};
  weir_tensor_pending* pending[ARRAYS];
  for (int i = 0; i < ARRAYS; ++i) pending[i] = weir_tensor_start(peer, names[i], &wish);

  int published = 0, fetched = 0;
  while (fetched < ARRAYS) {
    struct epoll_event event;
    if (epoll_wait(epoll, &event, 1, 10000) != 1) return 1;
    uint64_t count = 0;
    if (read(event.data.fd, &count, sizeof count) != sizeof count) return 1;
    if (event.data.fd == timer && published < ARRAYS) {
      weir_tensor_array array = {WEIR_TENSOR_FLOAT, 32, 1, 1, shape, data[published], NULL, 0};
      must(weir_tensor_publish(hub, names[published], &array, 1, 0, 1, NULL, &error));
      ++published;
    }
    if (event.data.fd != done) continue;
    for (int i = 0; i < ARRAYS; ++i) {
      if (pending[i] == NULL || weir_tensor_wait(peer, pending[i], 0) == 0) continue;
      weir_tensor_fetched* got = NULL;
      must(weir_tensor_finish(peer, pending[i], &got, &error));
      pending[i] = NULL;
      const float* numbers = weir_tensor_fetched_data(got, NULL);
      printf("%s: version %" PRIu64 ", %g %g %g %g\n", names[i], weir_tensor_fetched_version(got),
             (double)numbers[0], (double)numbers[1], (double)numbers[2], (double)numbers[3]);
      weir_tensor_fetched_free(got);
      ++fetched;
    }
  }
  close(epoll);
  close(timer);
  weir_tensor_peer_free(peer);
  weir_tensor_hub_free(hub);
  return 0;
}
