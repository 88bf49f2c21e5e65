# SPDX-License-Identifier: MIT
"""Chapter 11: dot products from mapped host memory and on several devices, and copies between devices."""
import os
import re
import resource
import subprocess
import sys

import pytest

import helpers

LADDERS = ["dot_ladder", "heat_ladder"]
SEVERAL = ["multidevice", "portable", "peer_copy", *LADDERS]
DOT = ["multidevice", "portable"]


def check_dot(result, size, times=1):
    exact = (size - 1) * size * (2 * size - 1) // 3  # twice the sum of the squares below size
    values = re.findall(r"^Value calculated:  (\S+)$", result.out, re.M)
    assert len(values) == times
    assert all(abs(float(value) - exact) <= 1e-4 * exact for value in values)


def enough(gpus):
    """Environment variables for that many devices; skips the test where there are fewer GPUs."""
    if helpers.backend() == "cpu":
        return {"CUDA_CPU_DEVICES": str(gpus)}
    if helpers.devices() < gpus:
        pytest.skip(f"needs {gpus} GPUs")
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))}


def test_mapped_memory(run, default_run, rng):
    for size in [None, 1, 2, 255, 256, 257, 32 * 256 + 1, rng.randint(3, 10**6)]:
        result = (
            run("chapter11/time_zero2", "--size", size, status=0)
            if size
            else default_run("chapter11/time_zero2")
        )
        check_dot(result, size or 33 << 20, times=2)
        assert re.findall(
            r"^Time using (\w+):  [\d.]+ ms, [\d.]+ GB/s; kernel [\d.]+ ms, [\d.]+ GB/s$", result.out, re.M
        ) == ["cudaMalloc", "cudaHostAlloc"]


def test_vectors_that_are_read_several_times(run, rng):
    """Every sum is checked by the program; here the rows, and the number of reads from which copying is faster."""
    for size, most in [(1, 1), (257, 3), (rng.randint(1000, 10**5), rng.randint(2, 9))]:
        out = run("chapter11/time_zero2", "--size", size, "--reads", most, status=0).out
        assert re.search(r"^Integrated: (yes|no)\nKernels read pageable memory: (yes|no)$", out, re.M)
        rows = re.findall(
            r"^ +(\d+) reads?:  pageable, copied [\d.]+ ms  pinned, copied ([\d.]+) ms  mapped ([\d.]+) ms$",
            out,
            re.M,
        )
        assert [int(reads) for reads, _, _ in rows] == [2**i for i in range(most.bit_length())]
        faster = [reads for reads, copied, mapped in rows if float(copied) < float(mapped)]
        stated = re.search(r"^Copying from pinned memory is faster from (\d+) reads? on", out, re.M)
        even = any(copied == mapped for _, copied, mapped in rows)  # within the digits that are printed
        assert even or (stated and stated[1]) == (faster[0] if faster else None), out
    result = run("chapter11/time_zero2", "--size", 300, "--reads", 4, "--inject-error", status=1)
    assert "pageable, copied" in result.err


def shares(result):
    """(device, number of elements) of each device, from the printed lines."""
    lines = re.findall(r"^GPU (\d+): (?:(\d+) elements, .* GB/s|nothing to do)$", result.out, re.M)
    return [(int(device), int(elements or 0)) for device, elements in lines]


@pytest.mark.parametrize("name", DOT)
@pytest.mark.parametrize("gpus", [1, 2, 3, 4, 5])
def test_parts(run, rng, name, gpus):
    """Parts of different lengths, and more devices than elements."""
    env = enough(gpus)
    for size in [1, 2, 3, 4, 5, 7, 1024, rng.randint(10, 10**6)]:
        result = run(f"chapter11/{name}", "--size", size, "--gpus", gpus, status=0, env=env)
        check_dot(result, size)
        assert shares(result) == [(i, size // gpus + (i < size % gpus)) for i in range(gpus)]


def check_slowest(result):
    slowest, fastest, ratio = map(
        float,
        re.search(
            r"^Slowest GPU (\S+) ms, fastest (\S+) ms: (\S+) times as long$", result.out, re.M
        ).groups(),
    )
    assert slowest >= fastest and (ratio == pytest.approx(slowest / fastest, rel=0.2) or slowest < 0.1)


@pytest.mark.parametrize("name", DOT)
def test_unequal_parts(run, rng, name):
    for gpus, share in [(2, 1), (2, 50), (2, 99), (3, rng.randint(1, 99))]:
        env = enough(gpus)
        for size in [1, 99, rng.randint(1000, 10**6) | 1]:
            result = run(
                f"chapter11/{name}", "--size", size, "--gpus", gpus, "--share", share, status=0, env=env
            )
            check_dot(result, size)
            first, *others = [elements for _, elements in shares(result)]
            assert first == size * share // 100 and first + sum(others) == size
            assert len(others) == gpus - 1 and max(others) - min(others) <= 1
            check_slowest(result)
    for bad in ["--share=50", "--balance"], ["--share=50", "--gpus=1"]:
        assert "--share" in run(f"chapter11/{name}", *bad, status=64).err


@pytest.mark.parametrize("name", DOT)
def test_parts_by_speed(run, rng, name):
    for gpus in 2, 3:
        for size in [1, 17, rng.randint(10**4, 10**6)]:
            result = run(
                f"chapter11/{name}", "--size", size, "--gpus", gpus, "--balance", status=0, env=enough(gpus)
            )
            check_dot(result, size)
            assert len(shares(result)) == gpus and sum(elements for _, elements in shares(result)) == size
            check_slowest(result)


@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_one_thread_for_all_devices(run, rng, gpus):
    env = enough(gpus)
    late = [{"CUDA_CPU_STREAMS": "late"}] if helpers.backend() == "cpu" else []
    for size in [1, 2, rng.randint(3, 10**6)]:
        for more in [{}, *late]:
            result = run(
                "chapter11/multidevice",
                "--one-thread",
                "--size",
                size,
                "--gpus",
                gpus,
                status=0,
                env={**env, **more},
            )
            check_dot(result, size)
            assert shares(result) == [(i, size // gpus + (i < size % gpus)) for i in range(gpus)]
            assert re.search(
                r"^One thread for all: \S+ ms; the times of the GPUs add up to \S+ ms$", result.out, re.M
            )
    run("chapter11/multidevice", "--one-thread", "--size", 999, "--share=30", status=0, env=enough(2))


def test_memory_that_another_thread_has_pinned(run, rng):
    for size in [1, rng.randint(2, 10**6)]:
        out = run("chapter11/portable", "--no-portable", "--size", size, status=0, env=enough(2)).out
        rows = re.findall(
            r"^(\w+) +memory: \S+ ms, \S+ GB/s; asynchronous copy: (\w+), the host went on (?:at once|when it was done)$",
            out,
            re.M,
        )
        assert rows == [(kind, "cudaSuccess") for kind in ("pageable", "pinned", "portable")]
    bad = run("chapter11/portable", "--no-portable", "--size", 9, "--inject-error", status=1, env=enough(2))
    assert "portable" in bad.err


@pytest.mark.parametrize("name", DOT)
def test_default_is_all(run, name):
    gpus = min(helpers.devices(), 4) if helpers.backend() == "gpu" else 4
    if gpus < 2:
        pytest.skip("needs 2 GPUs")
    env = enough(gpus)
    result = run(f"chapter11/{name}", status=0, env=env)
    check_dot(result, 33 << 20)
    assert sum(elements for _, elements in shares(result)) == 33 << 20 and len(shares(result)) == gpus
    result = run(f"chapter11/{name}", "--size", 1000, "--device", 1, status=0, env=env)
    assert [device for device, _ in shares(result)] == [(1 + i) % gpus for i in range(gpus)]


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("name", DOT)
def test_any_number_of_workers(run, rng, name):
    for workers in 1, 2, 8:
        for schedule in "forward", "reverse", f"random:{rng.randrange(1000)}":
            env = {"CUDA_CPU_DEVICES": "3", "CUDA_CPU_WORKERS": str(workers), "CUDA_CPU_SCHEDULE": schedule}
            check_dot(run(f"chapter11/{name}", "--size", 54321, status=0, env=env), 54321)


@pytest.mark.parametrize("name", SEVERAL)
def test_too_few(run, name):
    """One line and status 2 on a machine with one device, and when --gpus asks for more devices than there are."""
    one = run(f"chapter11/{name}", status=2, env={"CUDA_VISIBLE_DEVICES": "0"})
    assert one.err == f"{name}: needs 2 GPUs, found 1\n" and not one.out
    many = run(f"chapter11/{name}", "--gpus", 64, status=2)
    assert many.err == f"{name}: needs 64 GPUs, found {helpers.devices()}\n" and not many.out
    nine = run(f"chapter11/{name}", "--gpus", 9, status=2, env={"CUDA_VISIBLE_DEVICES": "0,999,1"})
    assert (
        nine.err == f"{name}: needs 9 GPUs, found 1\n"
    )  # CUDA ignores all devices after one that does not exist
    for gpus in 0, 65, -1:
        result = run(f"chapter11/{name}", "--gpus", gpus, status=64)
        assert result.errors == [
            f"{name}: --gpus {gpus}: must be a whole number from {1 + (name == 'peer_copy')} to 64"
        ]


@pytest.mark.parametrize("gpus", [2, 3, 4])
def test_peer_copies(run, rng, gpus):
    env = enough(gpus)
    for size in [1, 3, 4096, rng.randint(5, 10**6)]:
        out = run("chapter11/peer_copy", "--size", size, "--gpus", gpus, status=0, env=env).out
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


@pytest.mark.parametrize("gpus", [1, 2, 3, 5])
def test_ladders_on_any_number_of_devices(rungs, rng, gpus):
    """Equal parts, parts of different lengths, and more devices than elements; streams that run as late as possible."""
    env = enough(gpus)
    for name, sizes in ("dot_ladder", (1, 10007)), ("heat_ladder", (1, 16 * gpus, rng.randint(41, 140))):
        for size in sizes:
            share = ["--share", rng.randint(1, 99)] if gpus > 1 and rng.randrange(2) else []
            steps = ["--iterations", rng.choice([1, 12, 15, 25])] if name == "heat_ladder" else []
            streams = {"CUDA_CPU_STREAMS": rng.choice(["eager", "late", f"random:{rng.randrange(1000)}"])}
            rows = rungs(
                f"chapter11/{name}", "--size", size, "--gpus", gpus, *share, *steps, env={**env, **streams}
            )
            skipped = {row["skipped"] for row in rows} - {None}
            assert len(rows) == 12 and skipped <= {"needs 12 rows on each GPU", "needs peer access"}
            narrow = name == "heat_ladder" and gpus > 1 and (share or size < 16 * gpus)
            assert not skipped or narrow or helpers.backend() == "gpu"


@pytest.mark.parametrize("name", LADDERS)
def test_ladders_without_peer_access(run, rungs, name):
    peer = {"dot_ladder": ["peer stores"], "heat_ladder": ["peer stores", "flags"]}[name]
    for row in rungs(f"chapter11/{name}", "--size", 60, "--no-peer", env=enough(2)):
        assert row["skipped"] == ("needs peer access" if row["name"] in peer else None)
    cost = r"^\d+ bytes to the next GPU: [\d.]+ us through the host(, [\d.]+ us with peer access|; no peer access)$"
    for option, says in ("--no-peer", "; no peer access"), ("--gpus=2", ", "):
        out = run(f"chapter11/{name}", "--size", 60, option, status=0, env=enough(2)).out
        found = re.search(cost, out, re.M)
        assert found and (helpers.backend() == "gpu" or found[1].startswith(says)), out


@pytest.mark.backend("cpu")
@pytest.mark.parametrize("name", LADDERS)
def test_ladders_under_any_schedule(rungs, rng, name):
    for workers in 1, 4:
        for schedule in "reverse", f"random:{rng.randrange(1000)}":
            env = {"CUDA_CPU_DEVICES": "3", "CUDA_CPU_WORKERS": str(workers), "CUDA_CPU_SCHEDULE": schedule}
            rungs(f"chapter11/{name}", "--size", 77, env=env)


def test_ladders_of_the_same_name():
    """In tables of results they are told apart by their chapter, and their plots are different files."""
    code = "from results import *; [print(topic(p), plot_path('x', p).relative_to(RESULTS)) for p in sys.argv[1:]]"
    programs = [
        "chapter05/dot_ladder",
        "chapter11/dot_ladder",
        "chapter11/heat_ladder",
        "chapter11/zero_copy_ladder",
    ]
    printed = subprocess.run(
        [sys.executable, "-c", code, *programs],
        cwd=helpers.ROOT / "bench",
        env={k: v for k, v in os.environ.items() if k != "RESULTS"},
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    assert printed.splitlines() == [
        "dot x/chapter05/dot.svg",
        "dot (chapter 11) x/chapter11/dot.svg",
        "heat (chapter 11) x/chapter11/heat.svg",
        "zero_copy x/chapter11/zero_copy.svg",
    ]


def test_ladders_refuse(run):
    for name in LADDERS:
        assert (
            "--share needs two devices" in run(f"chapter11/{name}", "--gpus=1", "--share=50", status=64).err
        )


@pytest.mark.backend("cpu")
@pytest.mark.skipif(helpers.sanitized(), reason="sanitizers need more addresses than the limit leaves")
@pytest.mark.parametrize(
    "path",
    [
        "chapter11/time_zero2",
        "chapter11/portable",
        "chapter11/multidevice",
        "chapter10/copy_timed",
        "chapter10/basic_single_stream",
        "chapter10/basic_double_stream",
        "appendix_a/dot",
        "appendix_a/hashtable_gpu",
        "appendix_a/hashtable_cpu",
    ],
)
def test_pinned_memory_is_refused(run, path):
    """With too small an address space, one line says how much memory is needed and how much is free. Before it, only the
    names of devices are printed."""
    result = run(path, status=1, limits={resource.RLIMIT_AS: 200 << 20}, env={"CUDA_CPU_DEVICES": "2"})
    named = re.compile(r"CPU back end: .*|(Measured on )?(the )?([Dd]evice \d+|[Hh]ost): .*")
    assert len(result.errors) == 1 and all(named.fullmatch(line) for line in result.out.splitlines()), str(
        result
    )
    figures = re.match(
        rf"{os.path.basename(path)}: out of memory: needs ([\d.]+) GiB of \w+ memory, ([\d.]+) GiB are free$",
        result.err,
    )
    assert figures and float(figures[2]) < 200 / 1024 and float(figures[2]) < float(figures[1]), str(result)


@pytest.mark.backend("cpu")
@pytest.mark.skipif(helpers.sanitized(), reason="sanitizers need more addresses than the limit leaves")
def test_parts_on_all_devices_count_together(run):
    """Each part alone would fit, but on the CPU back end all parts are in the memory of the host."""
    size = 10 << 20  # 80 MiB for both vectors on the host, and the same on the devices
    for mib, status in (150, 1), (1000, 0):
        result = run(
            "chapter11/multidevice",
            "--size",
            size,
            "--gpus",
            4,
            status=status,
            limits={resource.RLIMIT_AS: mib << 20},
            env={"CUDA_CPU_DEVICES": "4", "CUDA_CPU_WORKERS": "1"},
        )
        assert (
            result.errors == []
            if status == 0
            else re.search(r"^multidevice: out of memory: needs 0\.1\d GiB", result.err)
        ), str(result)


def test_a_device_that_disappears(run):
    """CUDA ignores the entries of CUDA_VISIBLE_DEVICES after one that does not exist."""
    several = {"1,0": 2, "0,1,-1": 2} if helpers.backend() == "cpu" or helpers.devices() >= 2 else {}
    for visible, count in {
        "0": 1,
        "0,999": 1,
        "0,999,1": 1,
        "0,none,1": 1,
        "-1,0": 0,
        "999,0": 0,
        "": 0,
        **several,
    }.items():
        env = {
            "CUDA_VISIBLE_DEVICES": visible,
            **({"CUDA_CPU_DEVICES": "2"} if helpers.backend() == "cpu" else {}),
        }
        for name in SEVERAL:
            result = run(f"chapter11/{name}", "--size", 50, status=0 if count > 1 else 2, env=env)
            found = f"needs 2 GPUs, found {count}" if count else "needs a CUDA device, found none"
            assert count > 1 or result.errors == [f"{name}: {found}"], (visible, str(result))
        result = run("chapter11/time_zero2", "--device", count, status=64 if count else 2, env=env)
        assert result.errors == [
            f"time_zero2: --device {count}: no such device, found {count} (--list-devices shows them)"
            if count
            else "time_zero2: needs a CUDA device, found none"
        ]
