#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""faults.py: makes each CUDA call of every program fail in turn, and each request to the operating system: allocations of memory,
opening, writing and closing files, starting threads and processes. The first run lets call 1 fail, the second run call 2, and so on,
until a run has no more calls. Exit status 0 counts as correct only with the whole output of a run without a failure; otherwise the
program must print one line that says what failed and end with a documented status. A crash, a run that does not end, a file that is
written in part, or a temporary file that is left behind is a defect."""
