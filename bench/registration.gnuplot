# Draws what `registration --data` printed:
#   registration --data > registration.dat && gnuplot -e "data='registration.dat'; out='registration.svg'" bench/registration.gnuplot
set terminal svg size 760,420 background "white" font "sans-serif,12"
set output out
set logscale x 2
set logscale y
set xlabel "size of the transfer (logarithmic)"
set ylabel "microseconds (logarithmic)"
set key left top
set grid
set rmargin 6
set xtics ("4 KiB" 4096, "16 KiB" 16384, "64 KiB" 65536, "256 KiB" 262144, "1 MiB" 1048576, "4 MiB" 4194304, "16 MiB" 16777216, "64 MiB" 67108864)
plot data using 1:2 with linespoints title "register for each transfer", \
     data using 1:3 with linespoints title "registered once, copy", \
     data using 1:4 with linespoints title "pool: made in registered memory", \
     data using 1:5 with lines dashtype 2 title "registration alone", \
     data using 1:6 with lines dashtype 2 title "memcpy alone", \
     data using 1:7 with lines dashtype 3 title "mlock + munlock (what pinning costs)"
