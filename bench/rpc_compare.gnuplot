# Draws calls per second at 128 B; rpc_compare.py --chart calls it with `folder` (a file for each kind of connections) and `out`.
set terminal svg size 900,430 background "white" font "sans-serif,12"
set output out
set multiplot layout 1,2
set datafile missing "?"
set logscale x 4
set logscale y
set xtics (1, 4, 16, 64, 256)
set xlabel "calls in flight (logarithmic)"
set ylabel "calls per second, 128 B (logarithmic)"
set yrange [1000:5000000]
set format y "%.0s%c"
set grid
set key below maxrows 2
set bmargin 7.5  # of which the key has three lines
set xrange [0.8:320]
do for [mode in "each one"] {
  set title mode eq "each" ? "a connection for each call in flight" : "one connection"
  plot folder."/".mode using 1:4 with linespoints title "rpc/ over RDMA", \
       "" using 1:3 with linespoints title "rpc/ over unix", \
       "" using 1:2 with linespoints title "rpc/ over TCP", \
       "" using 1:5 with linespoints dashtype 2 title "coro\\_rpc over TCP", \
       "" using 1:6 with linespoints dashtype 3 linecolor "black" title "gRPC over TCP"
}
unset multiplot
