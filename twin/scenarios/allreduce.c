// All-reduces of some MiB over all ranks, each checked, with what they took: mpicc -O2 -o allreduce
// allreduce.c
//
// usage: mpirun ... allreduce [MIB [TIMES]]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int mib = argc > 1 ? atoi(argv[1]) : 4, times = argc > 2 ? atoi(argv[2]) : 4;
  const int count = mib * (1 << 20) / (int)sizeof(float);
  float* const mine = malloc(sizeof(float) * (size_t)count);
  float* const sum = malloc(sizeof(float) * (size_t)count);
  for (int i = 0; i < count; ++i) mine[i] = (float)(i % 64 + rank);
  for (int time = 0; time < times; ++time) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double since = MPI_Wtime();
    MPI_Allreduce(mine, sum, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - since, longest;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; i < count; ++i) {
      if (sum[i] == (float)(ranks * (i % 64) + ranks * (ranks - 1) / 2)) continue;
      fprintf(stderr, "rank %d: a sum is wrong\n", rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    // What each rank's link carries one way, if the ranks form a ring: 2 (ranks - 1) / ranks of the bytes.
    if (rank == 0)
      printf("%d MiB over %d ranks: %.0f us, %.1f Gbit/s on each link\n", mib, ranks, longest * 1e6,
             2. * (ranks - 1) / ranks * mib * (1 << 20) * 8 / longest / 1e9);
  }
  MPI_Finalize();
  return 0;
}
