# Draws calls per second at 128 B; rpc_compare.py --chart calls it with `folder` (a file for each kind of connections) and `out`.
# It looks like the charts of weir-benchmark (cli/benchmark/chart.cpp).
set terminal svg size 1040,430 font 'Sans,11' background rgb 'white' rounded
set output out
set multiplot layout 1,2 title "128 byte values, median of the rounds"
set datafile missing "?"
set border 3 lc rgb '#888888'
set tics nomirror textcolor rgb '#333333'
set grid ytics lc rgb '#e4e4e4' lt 1
set logscale x 4
set logscale y
set xtics (1, 4, 16, 64, 256)
set xlabel "calls in flight (logarithmic)"
set ylabel "calls a second (logarithmic)"
set yrange [10000:8000000]
set format y "%.0s%c"
set key below maxrows 2 samplen 2
set bmargin 7.5
set lmargin 11
set xrange [0.8:320]
set style line 1 lw 2 pt 7 ps 0.6 lc rgb '#0072b2'  # RDMA
set style line 2 lw 2 pt 7 ps 0.6 lc rgb '#c3a26b'  # unix
set style line 3 lw 2 pt 7 ps 0.6 lc rgb '#9aa5b1'  # TCP
set style line 4 lw 2 pt 7 ps 0.6 lc rgb '#d55e00'
set style line 5 lw 2 pt 7 ps 0.6 lc rgb '#333333'
has(column) = int(system(sprintf("awk '$%d != \"?\"' %s/each %s/one | wc -l", column, folder, folder))) > 0
do for [mode in "each one"] {
  set title mode eq "each" ? "a connection for each call in flight" : "one connection"
  plot folder."/".mode using 1:4 with linespoints ls 1 title "rpc/, RDMA", \
       "" using 1:2 with linespoints ls 3 title "rpc/, TCP", \
       (has(3) ? folder."/".mode : "/dev/null") using 1:3 with linespoints ls 2 title (has(3) ? "rpc/, unix" : ""), \
       folder."/".mode using 1:5 with linespoints ls 4 title "coro\\_rpc, TCP", \
       "" using 1:6 with linespoints ls 5 title "gRPC, TCP"
}
unset multiplot
