# SPDX-License-Identifier: MIT
"""Chapter 11: dot products from mapped host memory and on several devices, and copies between devices."""
import re
import resource

import pytest

import helpers
from formulas import exact_dot

LADDERS = ["dot_ladder", "heat_ladder"]
SEVERAL = ["multidevice", "portable", "one_thread", "peer_copy", *LADDERS]
DOT = ["multidevice", "portable", "one_thread"]


def check_dot(result, size, times=1):
    values = re.findall(r"^Value calculated:  (\S+)$", result.out, re.M)
    assert len(values) == times
    assert all(abs(float(value) - exact_dot(size)) <= 1e-4 * exact_dot(size) for value in values)


def enough(gpus):
    """Environment variables for that many devices; skips the test where there are fewer GPUs."""
    if helpers.backend() == "cpu":
        return {"CUDA_CPU_DEVICES": str(gpus)}
    if helpers.devices() < gpus:
        pytest.skip(f"needs {gpus} GPUs")
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))}


def test_mapped_memory(run, rng):
    for size in 1, 257, rng.randint(3, 10**6):
        result = run("chapter11/time_zero2", "--size", size, status=0)
        check_dot(result, size, times=2)
        line = r"^Time using (\w+):  [\d.]+ ms, [\d.]+ GB/s; kernel [\d.]+ ms, [\d.]+ GB/s$"
        assert re.findall(line, result.out, re.M) == ["cudaMalloc", "cudaHostAlloc"]


def test_vectors_that_are_read_several_times(run, rng):
    """Every sum is checked by the program; here the rows, and the number of reads from which copying is faster."""
    for size, most in (257, 3), (rng.randint(1000, 10**5), rng.randint(2, 9)):
        out = run("chapter11/time_zero2", "--size", size, "--reads", most, status=0).out
        assert re.search(r"^Integrated: (yes|no)\nKernels read pageable memory: (yes|no)$", out, re.M)
        row = r"^ +(\d+) reads?:  pageable, copied \S+ ms  pinned, copied (\S+) ms  mapped (\S+) ms$"
        rows = re.findall(row, out, re.M)
        assert [int(reads) for reads, _, _ in rows] == [2**i for i in range(most.bit_length())]
        faster = [reads for reads, copied, mapped in rows if float(copied) < float(mapped)]
        stated = re.search(r"^Copying from pinned memory is faster from (\d+) reads? on", out, re.M)
        if helpers.backend() == "cpu":
            assert "faster" not in out  # these times say nothing about a bus
            continue
        even = any(copied == mapped for _, copied, mapped in rows)  # within the digits that are printed
        assert even or (stated and stated[1]) == (faster[0] if faster else None), out
    result = run("chapter11/time_zero2", "--size", 300, "--reads", 4, "--inject-error", status=1)
    assert "pageable, copied" in result.err


# ---- Parts on several devices


def shares(result):
    """(device, number of elements) of each device, from the printed lines."""
    return [tuple(map(int, line)) for line in re.findall(r"^GPU (\d+): (\d+) elements", result.out, re.M)]


@pytest.mark.parametrize("name", DOT)
@pytest.mark.parametrize("gpus", [1, 2, 5])
def test_equal_parts(run, rng, name, gpus):
    """Also more devices than elements, and streams that run as late as possible."""
    env = enough(gpus) | ({"CUDA_CPU_STREAMS": "late"} if helpers.backend() == "cpu" else {})
    for size in 1, 4, rng.randint(10, 10**6):
        result = run(f"chapter11/{name}", "--size", size, "--gpus", gpus, status=0, env=env)
        check_dot(result, size)
        parts = [elements for _, elements in shares(result)]
        assert [device for device, _ in shares(result)] == list(range(gpus)) and sum(parts) == size
        if name == "one_thread":
            assert max(parts) - min(parts) <= 1
        else:
            assert parts[:-1] == [size // gpus] * (gpus - 1)
        if name == "portable":
            assert f"This thread set device 0, then {gpus - 1}\n" in result.out
    run(f"chapter11/{name}", "--size", 99, "--gpus", gpus, "--inject-error", status=1, env=env)


@pytest.mark.parametrize("gpus", [2, 5])
def test_parts_that_are_not_equal(run, rng, gpus):
    """A share for the first device, and parts by speed."""
    env = enough(gpus)
    line = r"^Slowest GPU (\S+) ms, fastest (\S+) ms: (\S+) times as long$"
    for size in 1, rng.randint(10, 10**6):
        command, share = ["chapter11/one_thread", "--size", size, "--gpus", gpus], rng.choice([1, 50, 99])
        for option in f"--share={share}", "--balance":
            result = run(*command, option, status=0, env=env)
            check_dot(result, size)
            first, *others = [elements for _, elements in shares(result)]
            assert len(others) == gpus - 1 and first + sum(others) == size
            if "share" in option:
                assert first == size * share // 100 and max(others) - min(others) <= 1
            slowest, fastest, ratio = map(float, re.search(line, result.out, re.M).groups())
            low = (slowest - 0.0005) / (fastest + 0.0005)
            high = (slowest + 0.0005) / max(fastest - 0.0005, 1e-9)
            assert slowest >= fastest and low - 0.01 <= ratio <= high + 0.01  # of the times before rounding
    assert "--share" in run(*command, "--share=50", "--balance", status=64, env=env).err
    alone = run("chapter11/one_thread", "--gpus", 1, "--share=50", status=64, env=env)
    assert "--share needs two devices" in alone.err


def test_memory_that_another_thread_has_pinned(run, rng):
    size, env = rng.randint(2, 10**6), enough(2)
    out = run("chapter11/portable", "--no-portable", "--size", size, status=0, env=env).out
    row = r"^(\w+) +memory: .+ GB/s; asynchronous copy: (\w+)$"
    kinds = [(kind, "cudaSuccess") for kind in ("pageable", "pinned", "portable")]
    assert re.findall(row, out, re.M) == kinds
    bad = run("chapter11/portable", "--no-portable", "--size", 9, "--inject-error", status=1, env=env)
    assert "portable" in bad.err


@pytest.mark.parametrize("name", DOT)
def test_default_is_all(run, name):
    gpus = min(helpers.devices(), 4) if helpers.backend() == "gpu" else 4
    env = enough(max(gpus, 2))
    result = run(f"chapter11/{name}", "--size", 1000, "--device", 1, status=0, env=env)
    assert [device for device, _ in shares(result)] == [(1 + i) % gpus for i in range(gpus)]


@pytest.mark.parametrize("name", SEVERAL)
def test_too_few(run, name):
    """One line and status 2 on a machine with one device, and when --gpus asks for more devices than there are. CUDA ignores all
    devices after one that does not exist."""
    for visible, options, says in [
        ("0", [], "needs 2 GPUs, found 1"),
        ("0,999,1", ["--gpus", 9], "needs 9 GPUs, found 1"),
        ("-1,0", [], "needs a CUDA device, found none"),
    ]:
        result = run(f"chapter11/{name}", *options, status=2, env={"CUDA_VISIBLE_DEVICES": visible})
        assert result.err == f"{name}: {says}\n" and not result.out
    many = run(f"chapter11/{name}", "--gpus", 64, status=2)
    assert many.err == f"{name}: needs 64 GPUs, found {helpers.devices()}\n" and not many.out
    result = run(f"chapter11/{name}", "--gpus", 65, status=64)
    least = 1 + (name == "peer_copy")
    assert result.errors == [f"{name}: --gpus 65: must be a whole number from {least} to 64"]


@pytest.mark.parametrize("gpus", [2, 4])
def test_peer_copies(run, rng, gpus):
    for size in 3, rng.randint(5, 10**6):
        out = run("chapter11/peer_copy", "--size", size, "--gpus", gpus, status=0, env=enough(gpus)).out
        ids = list(range(gpus))
        header, *rows = out.partition("Peer access, from row to column:\n")[2].splitlines()[: gpus + 1]
        assert [int(i) for i in header.split()] == ids
        can = {}
        for i, row in zip(ids, rows):
            first, *cells = row.split()
            assert int(first) == i and cells[i] == "-" and set(cells) <= {"-", "yes", "no"}
            can.update({(i, j): cells[j] == "yes" for j in ids if j != i})
        assert helpers.backend() == "gpu" or all(can.values())
        for i, j in can:
            ways = re.findall(rf"^{i} to {j}  (.*?) +[\d.]+ GB/s, +[\d.]+ us for one byte$", out, re.M)
            assert ways == (["by the host", "peer access"] if can[i, j] and can[j, i] else ["by the host"])


# ---- Ladders


@pytest.mark.parametrize("gpus", [1, 2, 5])
def test_ladders_on_any_number_of_devices(rungs, rng, gpus):
    """Equal parts, and more devices than elements; streams that run as late as possible."""
    env = enough(gpus)
    for name in LADDERS:
        for size in (1, 10007) if name == "dot_ladder" else (1, 4 * gpus, 16 * gpus, rng.randint(41, 140)):
            steps = ["--iterations", rng.choice([1, 12, 15, 25])] if name == "heat_ladder" else []
            late = {"CUDA_CPU_STREAMS": rng.choice(["late", f"random:{rng.randrange(1000)}"])}
            options = ["--size", size, "--gpus", gpus, *steps]
            rows = rungs(f"chapter11/{name}", *options, env={**env, **late})
            skipped = {row["skipped"] for row in rows} - {None}
            assert len(rows) == 12 and skipped <= {"needs 12 rows on each GPU", "needs peer access"}
            narrow_rows = [row for row in rows if row["skipped"] == "needs 12 rows on each GPU"]
            assert {row["data"] for row in narrow_rows} <= {"12 steps per exchange"}
            narrow = name == "heat_ladder" and gpus > 1 and size < 16 * gpus
            assert not skipped or narrow or helpers.backend() == "gpu"


@pytest.mark.parametrize("name", LADDERS)
def test_ladders_without_peer_access(rungs, name):
    peer = {"dot_ladder": ["peer stores"], "heat_ladder": ["peer stores", "flags"]}[name]
    for row in rungs(f"chapter11/{name}", "--size", 60, "--no-peer", env=enough(2)):
        assert row["skipped"] == ("needs peer access" if row["name"] in peer else None)


# ---- Memory that is refused


@pytest.mark.backend("cpu")
@pytest.mark.skipif(helpers.sanitized(), reason="sanitizers need more addresses than the limit leaves")
def test_parts_on_all_devices_count_together(run):
    """Each part alone would fit, but on the CPU back end all parts are in the memory of the host: 80 MiB for both vectors on the
    host, and the same on the devices."""
    for mib, status, says in (150, 1, r"multidevice: out of memory: needs 0\.1\d GiB"), (1000, 0, "$"):
        command = "chapter11/multidevice", "--size", 10 << 20, "--gpus", 4
        env = {"CUDA_CPU_DEVICES": "4", "CUDA_CPU_WORKERS": "1"}
        result = run(*command, status=status, limits={resource.RLIMIT_AS: mib << 20}, env=env)
        assert re.match(says, result.err), str(result)
