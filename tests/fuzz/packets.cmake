weir_fuzz_target(roce_transport SOURCES roce_transport_fuzz.cpp LINK weir_wire)
weir_fuzz_target(cm_mad SOURCES cm_mad_fuzz.cpp LINK weir_wire)
weir_fuzz_target(packet_sequence SOURCES packet_sequence_fuzz.cpp LINK weir_packet)
