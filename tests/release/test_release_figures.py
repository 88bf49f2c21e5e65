# SPDX-License-Identifier: MIT
"""The commands of bench/then.ini at their full sizes, of which those that take long run here only."""
import pytest

import helpers
import then
from test_figures import LONG, check_command

# 4096 x 4096 matrices take more than nine minutes on two CPU cores
COMMANDS = [c for c in then.commands() if LONG.search(c) and not ("wmma" in c and helpers.backend() == "cpu")]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_programs_print_the_figures(command, run):
    check_command(run, command)
