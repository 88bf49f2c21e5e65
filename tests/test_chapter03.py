# SPDX-License-Identifier: MIT
"""Chapter 3: greetings, a sum, and the properties of the devices."""
import re
import shutil
import subprocess

import pytest

import helpers


def test_greeting(run):
    """An empty kernel has no effect to observe, so its launch is looked up in the source. It is checked: where the kernel
    cannot run, the program does not greet."""
    for name in "hello_world", "simple_kernel":
        assert run(f"chapter03/{name}", status=0).out == "Hello, World!\n"
    source = (helpers.ROOT / "chapter03/simple_kernel.cu").read_text()
    assert re.search(r"^    kernel<<<1, 1>>>\(\);$", source, re.M)
    result = run("chapter03/simple_kernel", status=2, env={"CUDA_VISIBLE_DEVICES": "none"})
    assert "Hello" not in result.out


@pytest.mark.parametrize("name", ["simple_kernel_params", "simple_device_call"])
def test_sum(run, rng, name):
    most = 10**9
    some = [rng.randint(-most, most) for _ in "ab"]
    for a, b in (2, 7), (-most, -most), (most, most), (1, -1), some:
        out = run(f"chapter03/{name}", f"--a={a}", f"--b={b}", status=0).out
        ways = f"through a pointer {a + b}, by recursion {a + b}\n" * (name == "simple_device_call")
        assert out == f"{a} + {b} = {a + b}\n{ways}"
    assert run(f"chapter03/{name}", status=0).out.startswith("2 + 7 = 9\n")


def test_pointer_rules(run):
    """What is documented holds, whatever the device does where nothing is; with --allowed only rules that are kept are tried."""
    out = run("chapter03/pointer_rules", status=0).out
    rows = re.findall(r"^(\S.*?) +\| (works|an error|undefined) +\| (.*)$", out, re.M)
    happened = {rule: what for rule, _, what in rows}
    kept = {rule for rule, documented, _ in rows if documented == "works"}
    assert len(happened) == 27 and {happened[rule] for rule in kept} == {"worked"}
    assert happened["cudaFree() of memory of malloc"] == "cudaErrorInvalidValue"
    if helpers.backend() == "cpu" and not helpers.sanitized():
        for rule in "host reads memory of cudaMalloc", "free() of memory of cudaMalloc":
            assert happened[rule] == "the process ended with status 1"
        assert happened["host to host, cudaMemcpyDeviceToDevice"] == "cudaErrorInvalidValue"
    only = run("chapter03/pointer_rules", "--allowed", status=0).out
    assert kept <= set(re.findall(r"^(.*?) +\|", only, re.M))
    assert not re.search("undefined|ended|cudaError", only)
    err = run("chapter03/pointer_rules", "--inject-error", status=1).err
    assert "outcomes[" in err and "types of memory[" in err


def devices_of(text):
    """Parses the output of enum_gpu: a dict of the first lines, and a dict for each device."""
    head, *sections = re.split(r"\n +--- General information for device (\d+) ---\n", text)

    def fields(part):
        return dict(re.findall(r"^([A-Z][^:\n]*): +(.*)$", part, re.M))

    return fields(head), {int(n): fields(part) for n, part in zip(sections[::2], sections[1::2])}


def number(text):
    return float(text.split()[0])


def test_enum_gpu(run):
    listed = run("chapter03/enum_gpu", "--list-devices", status=0).out.splitlines()
    head, devices = devices_of(run("chapter03/enum_gpu", status=0).out)
    assert int(head["Devices"]) == len(listed) == len(devices)
    for line, (n, device) in zip(listed, devices.items()):
        assert line.startswith(f"{n}: {device['Name']}, compute capability {device['Compute capability']}")
        assert number(device["Threads in a warp"]) == 32
        assert device["Maximum grid dimensions"] == "(2147483647, 65535, 65535)"
        if "Memory clock rate" in device:
            clock, width = number(device["Memory clock rate"]), number(device["Memory bus width"])
            assert clock > 0 and width > 0
            bandwidth = 2 * clock * 1e3 * width / 8 / 1e9
            assert number(device["Peak memory bandwidth"]) == pytest.approx(bandwidth, abs=0.05)
        else:
            assert device["Peak memory bandwidth"].startswith("unknown")
        cores = number(device["Cores per MP"]) * number(device["Multiprocessors"])
        assert number(device["Cores per MP"]) == (64 if float(device["Compute capability"]) <= 8 else 128)
        peak = 2 * cores * number(device["Clock rate"]) / 1e6
        assert number(device["Peak performance"]) == pytest.approx(peak, abs=0.5)
        assert device["Peak performance"].endswith(f" GFLOP/s by {cores:.0f} cores")
        others = {f"Peer access to device {m}" for m in devices if m != n}
        assert {k for k in device if k.startswith("Peer")} == others
    last = max(devices)
    _, one = devices_of(run("chapter03/enum_gpu", "--device", last, status=0).out)
    assert list(one) == [last]
    # The CPU back end measures its clock rate, so it differs between runs.
    vary = dict.fromkeys(["Clock rate", "Peak performance"])
    assert {**one[last], **vary} == {**devices[last], **vary}


@pytest.mark.backend("cpu")
def test_enum_gpu_prints_the_properties_that_it_names(run):
    """With CUDA_CPU_PROPERTIES=distinct no two numbers are equal, so a wrong property shows."""
    env = {"CUDA_CPU_PROPERTIES": "distinct", "CUDA_CPU_WORKERS": "3"}
    out = run("chapter03/enum_gpu", "--device", 0, status=0, env=env).out
    device = devices_of(out)[1][0]
    expected = {
        "Threads in a warp": "32",
        "Maximum threads per block": "1024",
        "Maximum threads per MP": "2048",
        "Maximum block dimensions": "(1023, 1022, 64)",
        "Maximum grid dimensions": "(2147483647, 65535, 65534)",
        "Registers per block": "65536",
        "Registers per MP": "65533",
        "Shared memory per block": "49152 bytes",
        "Shared memory per MP": "167936 bytes",
        "Total constant memory": "65532 bytes",
        "Maximum memory pitch": "2147483646 bytes",
        "Texture alignment": "512 bytes",
        "Maximum 1-D texture": "131072",
        "Maximum 2-D texture": "(131071, 65531)",
        "Maximum 3-D texture": "(16384, 16383, 16382)",
        "Maximum layered texture": "(32768, 32767), 2047 layers",
        "Texture in linear memory": "268435456 floats",
        "Copy engines": "2",
        "Multiprocessors": "3",
    }
    assert {name: device[name] for name in expected} == expected


@pytest.mark.backend("gpu")
@pytest.mark.skipif(not shutil.which("nvidia-smi"), reason="needs nvidia-smi")
def test_enum_gpu_agrees_with_nvidia_smi(run):
    _, devices = devices_of(run("chapter03/enum_gpu", status=0, env={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}).out)
    command = ["nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    said = subprocess.run(command, text=True, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    assert [f"{d['Name']}, {d['Compute capability']}" for d in devices.values()] == said


def test_device_with_the_most_multiprocessors(run):
    for kind in "any", "integrated", "discrete":
        result = run("chapter03/set_gpu", "--most", kind)
        rows = re.findall(r"^Device (\d+): .*, (\d+) multiprocessors, (\w+)$", result.out, re.M)
        counts = {int(n): int(count) for n, count, its in rows if kind in ("any", its)}
        if counts:
            best = max(counts, key=counts.get)
            assert result.out.endswith(f"\nID of the device with the most multiprocessors: {best}\n")
        assert result.status == (0 if counts else 2) and len(rows) == helpers.devices()
    run("chapter03/set_gpu", "--most=any", "--inject-error", status=1)


def chosen_by(result):
    """Parses the output of set_gpu: (current, chosen, {device: whether it meets the requirements})."""
    lines = re.findall(r"^Device (\d+): .*: (meets|does not meet) the requirements$", result.out, re.M)
    current = re.search(r"^ID of the current CUDA device: (\d+)$", result.out, re.M)
    closest = r"^ID of the CUDA device closest to compute capability [\d.]+: (\d+)$"
    chosen = re.search(closest, result.out, re.M)
    assert lines and current and chosen, str(result)
    return int(current[1]), int(chosen[1]), {int(n): how == "meets" for n, how in lines}


def test_set_gpu(run):
    listed = run("chapter03/set_gpu", "--list-devices", status=0).out
    found = re.findall(r"compute capability (\d+)\.(\d+)", listed)
    capabilities = [tuple(map(int, pair)) for pair in found]
    for major, minor in [(9, 0), (1, 0), (99, 9), capabilities[0]]:
        result = run("chapter03/set_gpu", "--major", major, "--minor", minor, status=0)
        current, chosen, meets = chosen_by(result)
        assert current == 0 and meets == {n: c >= (major, minor) for n, c in enumerate(capabilities)}
        assert ("No device meets the requirements." in result.out) == (not any(meets.values()))
        if any(meets.values()) and len(set(capabilities)) == 1:
            assert meets[chosen] and "This device does not meet" not in result.out
    last = len(capabilities) - 1
    assert chosen_by(run("chapter03/set_gpu", "--device", last, status=0))[0] == last
    result = run("chapter03/set_gpu", "--memory", "1048576G", status=0)
    assert not any(chosen_by(result)[2].values()) and "No device meets the requirements." in result.out
    assert all(chosen_by(run("chapter03/set_gpu", "--major=1", "--memory=1K", status=0))[2].values())


@pytest.mark.backend("cpu")
def test_set_gpu_of_unequal_devices(run):
    env = {"CUDA_CPU_DEVICES": "3", "CUDA_CPU_PROPERTIES": "unequal"}
    wanted = {"--minor=0": 0, "--minor=1": 1, "--minor=2": 2, "--memory=5G": 1, "--memory=9G": 2}
    for option, device in wanted.items():
        _, chosen, meets = chosen_by(run("chapter03/set_gpu", "--major=8", option, status=0, env=env))
        assert chosen == device and meets == {n: n >= device for n in range(3)}, option
