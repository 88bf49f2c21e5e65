#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compile_commands.py C_COMMAND PREPROCESSOR_FLAGS FILE…: prints compile_commands.json: how each source is compiled, for editors and
other tools. A .cu is parsed as .clangd says, in one step and without the toolkit, and not as it is built."""
import json
import re
import sys

from programs import ROOT

c, flags, *files = sys.argv[1:]
below_add = re.findall("^    - ([^'\"\n]*)$", (ROOT / ".clangd").read_text(), re.M)
cuda = " ".join(["clang++", *below_add, flags])
commands = {file: f"{cuda if file.endswith('.cu') else c} -c {file}" for file in files}
entries = [{"directory": str(ROOT), "file": file, "command": commands[file]} for file in files]
print(json.dumps(entries, indent=1))
