# SPDX-License-Identifier: MIT
"""chapter08/ripple_vulkan, which needs a GPU whose driver has Vulkan: on the CPU back end it says so. libs.sh and the build without
libvulkan-dev."""
import os
import pathlib
import re

import pytest

import formulas
import helpers
from trees import ROOT, run as shell, stand_in

PROGRAM = "chapter08/ripple_vulkan"
ENDING = helpers.ending()
# Vulkan drivers without a GPU, such as Mesa's lavapipe (Debian: mesa-vulkan-drivers)
SOFTWARE = sorted(pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))

# The other libraries are not looked for, which saves time.
OTHERS = dict.fromkeys(re.findall(r"^([A-Z_]+)\|", (ROOT / "scripts/libs.sh").read_text(), re.M), "1")
OTHERS = {f"HAVE_{name}": found for name, found in OTHERS.items() if name != "VULKAN"}

here = helpers.needs(PROGRAM)


def with_driver(file):
    """The environment in which Vulkan has only the driver that this file names."""
    return {"VK_DRIVER_FILES": str(file), "VK_ICD_FILENAMES": str(file)}


def waived(run, folder, driver, says):
    result = run(PROGRAM, "--size", 20, "--output", f"x.{ENDING}", status=2, env=with_driver(driver))
    assert re.fullmatch(rf"ripple_vulkan: {says}\n", result.err) and not result.out, str(result)
    assert os.listdir(folder) == []


@here
@pytest.mark.backend("cpu")
@pytest.mark.parametrize("driver", ["/nonexistent", *map(str, SOFTWARE)])
def test_the_cpu_back_end_does_not_share_memory(run, tmp_path, driver):
    """With and without a driver of Vulkan."""
    waived(run, tmp_path, driver, r"needs a CUDA device .* Vulkan, .* cannot \(CPU back end\)")


@here
def test_mistakes_on_the_command_line_come_first(run):
    """test_programs.py checks this for other programs."""
    assert "--size" in run(PROGRAM, "--help", status=0).out
    assert "--size" in run(PROGRAM, "--size", 0, status=64).err
    assert "--nonsense" in run(PROGRAM, "--nonsense", status=64).err
    assert "--device 999" in run(PROGRAM, "--device", 999, status=64).err
    assert "device" in run(PROGRAM, status=2, env={"CUDA_VISIBLE_DEVICES": ""}).err


def test_without_libvulkan_dev(tmp_path):
    """The program is not built, and the build names the package."""
    stand_in(
        tmp_path,
        "cc",
        'for a; do case $a in */probe.c) grep -q vulkan "$a" && exit 1 ;; esac; done; exec gcc "$@"',
    )
    config, env = tmp_path / "build/config.mk", {**OTHERS, "CC": str(tmp_path / "cc")}
    shell(ROOT, "scripts/libs.sh", "probe", "cpu", str(config), **env)
    lines = config.read_text().splitlines()
    assert f"SKIPPED += {PROGRAM} # needs vulkan" in lines
    assert any(line.startswith(f"LACKS_{PROGRAM} := vulkan, CUDA with Vulkan") for line in lines)
    log = shell(ROOT, "scripts/libs.sh", "report", "cpu", str(config), **env).splitlines()
    package = shell(ROOT, "scripts/setup.sh", "--how", "libvulkan-dev").strip()
    assert f"off: CUDA with Vulkan (Vulkan 1.2): {package}" in log
    assert f"off: {PROGRAM}: needs vulkan" in log


def test_with_libvulkan_dev(tmp_path):
    config = tmp_path / "build/config.mk"
    shell(ROOT, "scripts/libs.sh", "probe", "cpu", str(config), HAVE_VULKAN="1", **OTHERS)
    lines = config.read_text().splitlines()
    assert f"LIBS_{PROGRAM} := $(VULKAN_LIBS)" in lines and "VULKAN_LIBS := -lvulkan" in lines
    assert not [line for line in lines if f"SKIPPED += {PROGRAM}" in line or "DHAVE_VULKAN" in line]


# ---- On a GPU


@pytest.fixture
def vulkan():
    if not helpers.vulkan_device():
        pytest.skip("needs a GPU whose driver has Vulkan")


@pytest.mark.backend("gpu")
@here
def test_each_frame(run, tmp_path, vulkan):
    for size in 1, 15, 16, 17, 100:
        out = run(PROGRAM, "--size", size, "--frames", 20, "--output", f"{size}-%02d.{ENDING}", status=0).out
        assert "All 20 frames that Vulkan copied are right.\n" in out
        for ticks in range(20):
            expected = formulas.whole(formulas.ripple(size, ticks), (0, 1, 2))
            shown = helpers.pixels(tmp_path / f"{size}-{ticks:02d}.{ENDING}")
            helpers.compare("ripple_vulkan", shown, expected, mean=1 / size, worst=1)


@pytest.mark.backend("gpu")
@here
def test_injected_error(run, vulkan):
    err = run(PROGRAM, "--size", 20, "--frames", 5, "--inject-error", status=1).err
    assert err.endswith("Frame 0 is wrong.\n") and err.count("is wrong") == 1


@pytest.mark.backend("gpu")
@here
def test_without_a_driver(run, tmp_path, vulkan):
    waived(
        run,
        tmp_path,
        "/nonexistent",
        r"needs a driver of Vulkan, found none \(docs/building.md, Containers\)",
    )
    for driver in SOFTWARE:
        waived(run, tmp_path, driver, "needs a driver of Vulkan 1.2 for the CUDA device .*, found llvmpipe.*")
