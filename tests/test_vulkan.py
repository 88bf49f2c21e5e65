# SPDX-License-Identifier: MIT
"""chapter08/ripple_vulkan, which needs a GPU whose driver has Vulkan: on the CPU back end it says so."""
import os
import pathlib
import re

import pytest

import formulas
import helpers

PROGRAM = "chapter08/ripple_vulkan"
ENDING = helpers.ending()
# Vulkan drivers without a GPU, such as Mesa's lavapipe (Debian: mesa-vulkan-drivers)
SOFTWARE = sorted(pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))


def waived(run, folder, driver, says):
    """With only the driver of Vulkan that this file names"""
    env = dict.fromkeys(["VK_DRIVER_FILES", "VK_ICD_FILENAMES"], str(driver))
    result = run(PROGRAM, "--size", 20, "--output", f"x.{ENDING}", status=2, env=env)
    assert re.fullmatch(rf"ripple_vulkan: {says}\n", result.err) and not result.out, str(result)
    assert os.listdir(folder) == []


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("driver", ["/nonexistent", *map(str, SOFTWARE)])
def test_the_cpu_back_end_does_not_share_memory(run, tmp_path, driver):
    """With and without a driver of Vulkan."""
    waived(run, tmp_path, driver, r"needs a CUDA device .* Vulkan, .* cannot \(CPU back end\)")


# ---- On a GPU


@pytest.fixture
def vulkan():
    if helpers.waived(PROGRAM):
        pytest.skip("needs a GPU whose driver has Vulkan")


@pytest.mark.backend("gpu")
def test_each_frame(run, tmp_path, vulkan):
    for size in 1, 15, 16, 17, 100:
        out = run(PROGRAM, "--size", size, "--frames", 20, "--output", f"{size}-%02d.{ENDING}", status=0).out
        assert "All 20 frames that Vulkan copied are right.\n" in out
        for ticks in range(20):
            expected = formulas.whole(formulas.ripple(size, ticks), (0, 1, 2))
            shown = helpers.pixels(tmp_path / f"{size}-{ticks:02d}.{ENDING}")
            helpers.compare("ripple_vulkan", shown, expected, mean=1 / size, worst=1)
    err = run(PROGRAM, "--size", 20, "--frames", 5, "--inject-error", status=1).err
    assert err.endswith("Frame 0 is wrong.\n") and err.count("is wrong") == 1


@pytest.mark.backend("gpu")
def test_without_a_driver(run, tmp_path, vulkan):
    none = r"needs a driver of Vulkan, found none \(docs/building.md, Containers\)"
    waived(run, tmp_path, "/nonexistent", none)
    for driver in SOFTWARE:
        waived(run, tmp_path, driver, "needs a driver of Vulkan 1.2 for the CUDA device .*, found none")
