# The tests of rdma/ on the system's device.
failed=0
for test in stream coroutine bad_peer tls process idle limits channel channel_bad_peer channel_process; do
  "$WEIR_BUILD/bin/rdma_${test}_test" --gtest_brief=1 || failed=1
done
exit $failed
