"""What every test shares: one thread a process, so that tests may run side by side and give the same sums anywhere.

No example has a time limit: a busy machine is no fault.
"""

import os

from hypothesis import settings

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("headway", deadline=None)
settings.load_profile("headway")
