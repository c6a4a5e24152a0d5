/* The tests, by the file that has them. Each gets a client that is connected. */
#pragma once

#include <weir_rpc.h>

/* calls.c */
void a_call_brings_its_result(weir_rpc_client* client);
void attachments_travel_both_ways(weir_rpc_client* client);
void lent_memory_is_given_back(weir_rpc_client* client);
void failures_say_their_cause(weir_rpc_client* client);
void a_request_is_answered_from_another_thread(weir_rpc_client* client);
void an_event_loop_takes_many_replies(weir_rpc_client* client);
void threads_share_a_client(weir_rpc_client* client);
void reflection_lists_the_functions(weir_rpc_client* client);

/* endings.c */
void a_deadline_ends_the_call_at_both_ends(weir_rpc_client* client);
void the_longest_time_out_is_for_ever(weir_rpc_client* client);
void a_cancelled_call_ends_at_both_ends(weir_rpc_client* client);
void closing_ends_every_call(weir_rpc_client* client);
void a_client_that_was_shut_down_ends_calls_until_it_is_closed(weir_rpc_client* client);
void a_callback_may_close_its_client(weir_rpc_client* client);
void a_request_outlives_its_server(weir_rpc_client* client);

/* callers.c */
void a_certificate_names_the_caller(weir_rpc_client* client);
void a_server_asks_the_program_who_may_call(weir_rpc_client* client);
void a_caller_is_let_in_for_as_long_as_the_program_says(weir_rpc_client* client);

/* settings.c */
void bad_settings_are_named(weir_rpc_client* client);
void a_server_answers_http_if_it_is_told_to(weir_rpc_client* client);
void certificates_are_renewed_or_the_fault_is_named(weir_rpc_client* client);
void a_process_without_descriptors_is_told_so(weir_rpc_client* client);
