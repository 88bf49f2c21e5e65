# SPDX-License-Identifier: MIT
"""The commands of bench/then.ini at their full sizes, of which those that take long run here only."""
import pytest

import then
from test_figures import LONG, check_command


@pytest.mark.parametrize("command", filter(LONG.search, then.commands()))
def test_the_programs_print_the_figures(command, run):
    check_command(run, command)
