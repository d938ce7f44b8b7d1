"""What every test shares: one thread a process, so that tests may run side by side and give the same sums anywhere."""

import os

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, "1")
