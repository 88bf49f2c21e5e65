// SPDX-License-Identifier: MIT
/*
 * dot_ladder: dot product on several GPUs, from one after the other to sums that travel over NVLink
 *
 * Teaches: GPUs work at the same time only if the host does not wait for one before it starts the next: it
 *          has a thread for each, as in the book, or makes asynchronous calls. If the vectors are in host
 *          memory, the copies limit the speed; each GPU has a link of its own for them. If they stay in
 *          device memory, the bandwidth of all device memories together is the limit. With peer-to-peer
 *          access the GPUs add their partial sums without the host.
 * Terms:   host thread, scaling, peer-to-peer access, NVLink, partial sum, last-block reduction, stream,
 *          portable pinned memory, vectorized load, relaxed
 * Book:    11.3 (ladder)
 * Rungs:   0 one GPU (the same kernel); 1 in turn (the host waits for each GPU); 2 host threads (one for
 *          each GPU); 3 asynchronous (one host thread, streams, pinned memory); 4 peer copies (sums copied
 *          to the first GPU, which adds them); 5 peer stores (kernels store sums there, its last block
 *          waits)
 * Build:   nvcc -o dot_ladder chapter11/dot_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/dot_ladder --size 1G
 * Differs: random data. Memory allocation is not timed. Times are those of the host's clock, from the first
 *          call until all GPUs have finished. The column "x book" compares with one GPU that runs the same
 *          kernel.
 * Needs:   gpus=2
 * Limit:   reads from the device memory of each GPU. What is left is one wait of the host for all of them.
 * Bench:   64K 1M 16M 64M 1G
 * Check:   --size 30003
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/ptx.h" // load_relaxed(), store_relaxed()
#include "dot_part.h"      // part_dot(), blocks_for(), THREADS
#include "gpus.h"          // gpus, device_id[], peer_access, wait_for_gpus()

// A GPU and its part of the vectors.
struct Part {
    int device;
    size_t n;
    const float *a, *b;   // on the host
    float *dev_a, *dev_b; // on the device
    float *sums, *sum;    // of each block, and of the part
    unsigned blocks;
    cudaStream_t stream;
    cudaEvent_t done;
    float returned; // the sum, on the host
};

static size_t n = BENCH_SIZE(1 << 30, 1 << 20); // --size
static Part whole, part[MAX_GPUS];              // all on the first GPU; on all GPUs
static bool resident;                           // the vectors are in device memory already
static float *all_sums;                         // of all parts, on the first device
static unsigned long long *all_flagged;         // the same, each beside the number of its run
static float *dev_c, *pinned_c;                 // the result, on the first device and on the host
static float c;
static void make_vectors(void);
static void free_vectors(void);

__global__ void __launch_bounds__(THREADS, 2)
    dot(const float *a, const float *b, size_t n, float *sums, float *sum) {
    float x;
    if (part_dot(a, b, n, sums, &x) && threadIdx.x == 0)
        *sum = x;
}

static void copy_vectors(const Part &p, cudaStream_t stream) {
    HANDLE_ERROR(cudaMemcpyAsync(p.dev_a, p.a, p.n * sizeof(float), cudaMemcpyHostToDevice, stream));
    HANDLE_ERROR(cudaMemcpyAsync(p.dev_b, p.b, p.n * sizeof(float), cudaMemcpyHostToDevice, stream));
}

// Enqueues the kernel for a part. If the vectors are in host memory, copies to the device come first.
static void start(const Part &p, float *sum, cudaStream_t stream) {
    if (!resident)
        copy_vectors(p, stream);
    dot<<<p.blocks, THREADS, 0, stream>>>(p.dev_a, p.dev_b, p.n, p.sums, sum);
    HANDLE_LAUNCH();
}

// ---- the rungs ----

// Rungs 0, 1 and 2: computes the sum of a part and returns when it is on the host. cudaMemcpy() waits for the
// kernel.
static void *routine(void *data) {
    Part &p = *(Part *)data;
    HANDLE_ERROR(cudaSetDevice(p.device));
    start(p, p.sum, 0);
    HANDLE_ERROR(cudaMemcpy(&p.returned, p.sum, sizeof(float), cudaMemcpyDeviceToHost));
    return NULL;
}

static void run_one(void) {
    routine(&whole);
    c = whole.returned;
}

static void add_returned(void) {
    c = 0;
    for (int i = 0; i < gpus; i++)
        c += part[i].returned;
}

// Rung 1, the wrong way: the host waits for each GPU before it starts the next one.
static void run_in_turn(void) {
    for (int i = 0; i < gpus; i++)
        routine(&part[i]);
    add_returned();
}

// Rung 2, the book's: a host thread for each GPU.
static void run_threads(void) {
    CUTThread threads[MAX_GPUS];
    for (int i = 1; i < gpus; i++)
        threads[i] = start_thread(routine, &part[i]);
    routine(&part[0]);
    wait_for_threads(threads + 1, gpus - 1);
    add_returned();
}

// Rung 3: one host thread and one stream per GPU. All calls are asynchronous, so all GPUs work at the same
// time. The sums are copied to pinned memory, since copies to pageable memory would wait.
static void run_asynchronous(void) {
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(part[i].device));
        start(part[i], part[i].sum, part[i].stream);
        HANDLE_ERROR(cudaMemcpyAsync(&pinned_c[i], part[i].sum, sizeof(float), cudaMemcpyDeviceToHost,
                                     part[i].stream));
    }
    wait_for_gpus();
    c = 0;
    for (int i = 0; i < gpus; i++)
        c += pinned_c[i];
}

// Rung 4: the sums go to the first GPU, which adds them, and the host waits for that GPU only. The copies of
// other GPUs are ordered before the addition by events.
__global__ void add_sums(const float *sums, int n, float *c) {
    float x = 0;
    for (int i = 0; i < n; i++)
        x += sums[i];
    *c = x;
}

static void get_result(void) {
    HANDLE_ERROR(cudaMemcpyAsync(pinned_c, dev_c, sizeof(float), cudaMemcpyDeviceToHost, part[0].stream));
    HANDLE_ERROR(cudaStreamSynchronize(part[0].stream));
    c = *pinned_c;
}

static void run_peer_copies(void) {
    for (int i = gpus - 1; i >= 0; i--) {
        HANDLE_ERROR(cudaSetDevice(part[i].device));
        start(part[i], i == 0 ? all_sums : part[i].sum, part[i].stream);
        if (i == 0)
            continue;
        HANDLE_ERROR(cudaMemcpyPeerAsync(&all_sums[i], part[0].device, part[i].sum, part[i].device,
                                         sizeof(float), part[i].stream));
        HANDLE_ERROR(cudaEventRecord(part[i].done, part[i].stream));
    }
    for (int i = 1; i < gpus; i++)
        HANDLE_ERROR(cudaStreamWaitEvent(part[0].stream, part[i].done, 0));
    add_sums<<<1, 1, 0, part[0].stream>>>(all_sums, gpus, dev_c);
    HANDLE_LAUNCH();
    get_result();
}

// Rung 5: each kernel stores its sum into the memory of the first GPU, whose last block waits for all of
// them. The sum and the number of the run are one word of 8 bytes, which is stored in a single access: a
// thread that reads the number has read the sum too. The kernels of the other GPUs are launched first and
// never wait.
__global__ void __launch_bounds__(THREADS, 2)
    dot_peers(const float *a, const float *b, size_t n, float *sums, unsigned long long *flagged, int gpu,
              int gpus, unsigned run, float *c) {
    float x;
    if (!part_dot(a, b, n, sums, &x) || threadIdx.x > 0)
        return;
    if (gpu > 0) {
        store_relaxed(&flagged[gpu], (unsigned long long)run << 32 | __float_as_uint(x));
        return;
    }
    for (int i = 1; i < gpus; i++) {
        unsigned long long word = load_relaxed(&flagged[i]);
        while (word >> 32 != run) {
            __nanosleep(20);
            word = load_relaxed(&flagged[i]);
        }
        x += __uint_as_float((unsigned)word);
    }
    *c = x;
}

static void run_peer_stores(void) {
    static unsigned run = 0;
    run++;
    for (int i = gpus - 1; i >= 0; i--) {
        const Part &p = part[i];
        HANDLE_ERROR(cudaSetDevice(p.device));
        if (!resident)
            copy_vectors(p, p.stream);
        dot_peers<<<p.blocks, THREADS, 0, p.stream>>>(p.dev_a, p.dev_b, p.n, p.sums, all_flagged, i, gpus,
                                                      run, dev_c);
        HANDLE_LAUNCH();
        if (CPU_BACKEND) // whose devices need not work at the same time
            HANDLE_ERROR(cudaStreamSynchronize(p.stream));
    }
    get_result();
}

// The limit: both vectors are read from the memory of each GPU or, if they are in host memory, copied to it,
// on all GPUs at the same time.
static void run_reads(void) {
    for (int i = 0; i < gpus; i++) {
        const Part &p = part[i];
        HANDLE_ERROR(cudaSetDevice(p.device));
        if (resident)
            for (const float *vector : {p.dev_a, p.dev_b})
                bench_read(vector, p.n * sizeof(float), (int *)p.sums, p.stream);
        else
            copy_vectors(p, p.stream);
    }
    wait_for_gpus();
}

static const char *peers_needed(void) {
    return peer_access ? NULL : "needs peer access";
}

static const Rung rungs[] = {
    {"one GPU", "the same kernel", run_one},
    {"in turn", "the host waits for each GPU", run_in_turn},
    {"host threads", "one for each GPU", run_threads},
    {"asynchronous", "one host thread, streams, pinned memory", run_asynchronous},
    {"peer copies", "sums copied to the first GPU, which adds them", run_peer_copies},
    {"peer stores", "kernels store sums there, its last block waits", run_peer_stores, RUNG, 0, 0,
     peers_needed},
    {"vectors alone", "read or copied, on every GPU", run_reads, LIMIT},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    make_vectors();
    for (const char *place : {"in device memory", "in host memory"}) {
        resident = place == std::string("in device memory");
        bench.data = place;
        bench_run(rungs);
    }
    int status = bench_finish();
    free_vectors();
    return status;
}

// ---------------------------------------------------------------------------------------- check

static Part make_part(int device, const float *a, const float *b, size_t n) {
    Part p = {};
    p.device = device;
    p.n = n;
    p.a = a;
    p.b = b;
    p.blocks = blocks_for(n, device);
    size_t bytes = max_of(n, 1) * sizeof(float);
    HANDLE_ERROR(cudaSetDevice(device));
    bench_malloc(&p.dev_a, bytes);
    bench_malloc(&p.dev_b, bytes);
    bench_malloc(&p.sums, p.blocks * sizeof(float));
    bench_malloc(&p.sum, sizeof(float));
    HANDLE_ERROR(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    HANDLE_ERROR(cudaEventCreateWithFlags(&p.done, cudaEventDisableTiming));
    return p;
}

static void free_part(const Part &p) {
    HANDLE_ERROR(cudaSetDevice(p.device));
    HANDLE_ERROR(cudaStreamDestroy(p.stream));
    HANDLE_ERROR(cudaEventDestroy(p.done));
}

static size_t elements[MAX_GPUS]; // of each part
static float *a, *b;              // on the host
static double expected, longest;  // the reference; the longest chain of additions

void settings(int argc, char **argv) {
    parse_options(
        argc, argv, "Dot product on several devices, from the book's way to the fastest.", LADDER,
        {OPTION_SIZE("size", &n, 1, 1LL << 36, "elements in a vector"), OPTION_GPUS, OPTION_NO_PEER});
    choose_gpus();
    for (int i = 0; i < gpus; i++)
        elements[i] = n / gpus + ((size_t)i < n % gpus);
    for (int i = gpus - 1; i >= 0; i--) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        size_t device = (3 * elements[i] + (i == 0 ? 3 * n : 0)) * sizeof(float);
        require_memory(2 * n * sizeof(float), device + (1 << 20));
    }
    bench.title = std::to_string(n) + " floats, " + std::to_string(gpus) + " GPUs";
    bench.size = n;
    bench.work = 2.0 * n * sizeof(float); // two vectors are read
    bench.devices = name_gpus;
    bench.host_clock = true;
    bench.left = [](const std::string &) { // by the copies
        std::vector<BenchLeft> left;
        for (int i = 0; i < gpus && !resident; i++) {
            left.push_back({part[i].dev_a, part[i].a, part[i].n * sizeof(float)});
            left.push_back({part[i].dev_b, part[i].b, part[i].n * sizeof(float)});
        }
        return left;
    };
}

// The longest chain of dependent additions in the sum of a part: in a thread, in its block, and in the last
// block. It determines the bound of the rounding error.
static double additions(const Part &p) {
    return ceil((double)p.n / (4 * p.blocks * THREADS)) + 64 + (double)p.blocks / THREADS;
}

// Random numbers from 0 to 1, the reference in double, and the parts.
static void make_vectors(void) {
    HANDLE_ERROR(cudaSetDevice(device_id[0]));
    bench_malloc_host(&a, n * sizeof(float), cudaHostAllocPortable);
    bench_malloc_host(&b, n * sizeof(float), cudaHostAllocPortable);
    bench_malloc_host(&pinned_c, gpus * sizeof(float), cudaHostAllocPortable);
    bench_malloc(&all_sums, gpus * sizeof(float));
    bench_malloc(&all_flagged, gpus * sizeof(unsigned long long));
    bench_malloc(&dev_c, sizeof(float));
    random_floats(a, n, 1);
    random_floats(b, n, 1);
    for (size_t i = 0; i < n; i++)
        expected += (double)a[i] * b[i];
    enable_peer_access();
    whole = make_part(device_id[0], a, b, n);
    copy_vectors(whole, whole.stream);
    longest = additions(whole);
    size_t from = 0;
    for (int i = 0; i < gpus; from += elements[i++]) {
        part[i] = make_part(device_id[i], a + from, b + from, elements[i]);
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        copy_vectors(part[i], part[i].stream);
        longest = max_of(longest, additions(part[i]) + gpus);
    }
    wait_for_gpus();
}

static void free_vectors(void) {
    free_part(whole);
    for (int i = 0; i < gpus; i++)
        free_part(part[i]);
}

// Overwrites all sums, and the vectors on the devices if copying them belongs to the work.
static void poison_part(const Part &p) {
    HANDLE_ERROR(cudaSetDevice(p.device));
    HANDLE_ERROR(cudaMemset(p.sums, 0xff, p.blocks * sizeof(float)));
    HANDLE_ERROR(cudaMemset(p.sum, 0xff, sizeof(float)));
    if (!resident) {
        HANDLE_ERROR(cudaMemset(p.dev_a, 0xff, p.n * sizeof(float)));
        HANDLE_ERROR(cudaMemset(p.dev_b, 0xff, p.n * sizeof(float)));
    }
}

static void poison(void) {
    poison_part(whole);
    for (int i = 0; i < gpus; i++) {
        poison_part(part[i]);
        part[i].returned = pinned_c[i] = NAN;
    }
    HANDLE_ERROR(cudaSetDevice(device_id[0]));
    HANDLE_ERROR(cudaMemset(all_sums, 0xff, gpus * sizeof(float)));
    HANDLE_ERROR(cudaMemset(all_flagged, 0, gpus * sizeof(unsigned long long))); // no run has the number 0
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, sizeof(float)));
    whole.returned = c = NAN;
    wait_for_gpus();
}

// Each product and each addition has a relative rounding error of at most 2^-24. With random data the
// rounding errors partly cancel (likely_roundings()). All products are positive, so the bound is relative to
// the sum itself.
static bool check(const char *name, BenchError *error) {
    error->max = fabs(c - expected) / expected;
    double bound = likely_roundings(longest + 2) * 0x1p-24;
    if (!(error->max <= bound))
        fprintf(stderr, "%s: got %.9g, expected %.9g, at most %.2g off\n", name, c, expected,
                bound * expected);
    bool ok =
        check_value((std::string(name) + ": error in units of its bound").c_str(), error->max / bound, 0, 1);
    if (name != std::string("peer stores"))
        return ok;
    HostArray<unsigned long long> flagged(all_flagged, gpus); // for the number 0 the kernel would not wait
    int unnumbered = 0;
    for (int i = 1; i < gpus; i++)
        unnumbered += flagged[i] >> 32 == 0;
    return check_value("words without the number of a run", unnumbered, 0, 0) && ok;
}
