/* libweir_rpc from C: a server and clients in one process, over the transport that is asked for.
 *
 * usage: c_abi_test tcp|unix|tls|rdma|rdma+tls */
#include "fixture.h"
#include "tests.h"

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: c_abi_test tcp|unix|tls|rdma|rdma+tls\n"), 2;
  set_up(argv[1]);
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
      TEST(the_longest_time_out_is_for_ever),
      TEST(a_cancelled_call_ends_at_both_ends),
      TEST(a_request_is_answered_from_another_thread),
      TEST(an_event_loop_takes_many_replies),
      TEST(threads_share_a_client),
      TEST(closing_ends_every_call),
      TEST(a_client_that_was_shut_down_ends_calls_until_it_is_closed),
      TEST(a_callback_may_close_its_client),
      TEST(a_certificate_names_the_caller),
      TEST(a_server_asks_the_program_who_may_call),
      TEST(a_caller_is_let_in_for_as_long_as_the_program_says),
      TEST(bad_settings_are_named),
      TEST(a_server_answers_http_if_it_is_told_to),
      TEST(certificates_are_renewed_or_the_fault_is_named),
      TEST(a_process_without_descriptors_is_told_so),
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
  tear_down();
  return 0;
}
