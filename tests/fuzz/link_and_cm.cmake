weir_fuzz_target(link_frame SOURCES link_frame_fuzz.cpp LINK weir_link)
weir_fuzz_target(cm_message SOURCES cm_message_fuzz.cpp LINK weir_cm_rules)
weir_fuzz_target(carried_run SOURCES carried_run_fuzz.cpp LINK weir_link_users)
weir_fuzz_target(stream_frame SOURCES stream_frame_fuzz.cpp LINK weir_link_stream)
