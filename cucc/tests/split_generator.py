# SPDX-License-Identifier: MIT
"""Random kernels with barriers in uniform control flow, or without barriers, to be run as loops and with fibers."""
import re


class Generator:
    """What the kernel computes depends on its barriers only, not on the order of its threads: a thread writes its element of
    the shared array between two barriers, and others read it between the next two."""

    def __init__(self, rng, whole_warps):
        self.rng = rng
        self.whole_warps = (
            whole_warps  # only what CUDA defines: no early returns, no lockstep without __syncwarp()
        )
        self.names = 0
        self.shapes = []  # of the grid and the block for each kernel
        self.loops = 0

    def name(self, letter):
        self.names += 1
        return f"{letter}{self.names}"

    def uniform(self):  # an expression that is the same in all threads
        pick = self.rng.choice
        a = pick([*self.same, "n", "(int)blockIdx.x", "(int)blockDim.x", "K", "LIMIT", "many", "5"])
        b = pick([*self.same, "n", "3", "FEW", "(int)gridDim.x"])
        return pick(
            [a, f"{a} + {b}", f"({a} ^ {b})", f"min({a}, {b})", f"{a} * 3 - {b}", f"({a} > {b} ? {b} : 2)"]
        )

    def thread(self):  # an expression that differs between threads
        pick = self.rng.choice
        a = pick([*self.own, *self.fixed, "rank", "threadIdx.x", "in[rank]", "step"])
        b = pick([*self.own, *self.fixed, *self.same, "threadIdx.y", "9u", "helper(rank, n)"])
        c = pick([f"{x}[{self.rng.randrange(3)}]" for x in self.arrays] or ["7u"])
        return pick(
            [f"{a} + {b}", f"({a} ^ {c})", f"{a} * 5u - {c}", f"({b}) * 3u + {a}", f"({a} & 1 ? {b} : {c})"]
        )

    def target(self):
        return self.rng.choice([*self.own, *[f"{x}[{self.rng.randrange(3)}]" for x in self.arrays]])

    def variable(self):
        return self.rng.choice([x for x in self.own if x != "step"])

    def region(self):  # a statement without barriers
        x, y, own, pick = self.target(), self.name("l"), self.variable(), self.rng.choice
        a, b, number = self.thread(), self.thread(), self.rng.randrange(8)
        count = f"atomicAdd(&total[{number}], ({a}) | 1u);"  # adding 0 again and again would be polling
        perhaps = pick([count, ""])
        kind, base = pick(["unsigned", "int", "size_t"]), pick(["", "blockDim.x * (n & 1) + "])
        first, step = f"{kind} {y} = {base}threadIdx.x", f"{y} += blockDim.x + {number % 3}"
        kinds = [
            f"if ({a} & 2) {{ {x} += {b}; }} else {x} ^= 5u;",
            f"for (unsigned j = 0; j < ({a}) % 4; j++) {{ if (j == 2) continue; {x} += j; }}",
            f"switch ({a} % 3) {{ case 0: {x}++; break; case 1: {x} += 2; break; default: --{x}; }}",
            f"{{ unsigned {y} = {a}; {x} += {y} * 2; }}",
            f"change(&{own}, {a});",
            f"change_reference({own}, {a});",
            count,
            f"if (threadIdx.x < {pick(['K', 'n', 'FEW'])}) {x} += {a};",
            # all threads execute an iteration together
            f"for ({first}; {y} < 40; {step}) {{ {perhaps} {x} += in[{y}]; }}",
            f"{{ {first}; while ({y} < 40) {{ {perhaps} {x} ^= {y}; {step}; }} }}",
            *[f"{x} {pick(['=', '+=', '^=', '*='])} {a};" for _ in range(3)],
            *[f"{{ unsigned *{y} = {array}; {y}[1] += {a}; }}" for array in self.arrays[:1]],
        ]
        if self.rng.random() < 0.3 and not self.whole_warps:
            return self.chunk()
        if self.rng.random() < 0.03 and not self.whole_warps:
            return f"if ({a} % 11 == 3) {{ out[rank] ^= {b}; return; }}"
        return pick(kinds)

    def chunk(self):
        """A loop that neighbouring threads may execute together. Its sums of floats are rounded, in a fixed order."""
        x, y, j, pick = self.variable(), self.name("f"), self.name("j"), self.rng.choice
        bound, start = pick(["n + 9", "12", "many * 2"]), pick(["0", "a % 7", "rank * 0.25f"])
        step = pick(
            [
                f"{y} = {y} * 1.25f + {j};",
                f"{y} += in[{j}] % 9 * 0.1f;",
                f"{{ float t = {y} * 0.7f; {y} = t + 2; {x} += 3; }}",
            ]
        )
        leave = pick([f"if ({y} > 5) break;", f"if ({y} > 9 || {x} % 5 == 1) {{ {x} ^= 7u; break; }}"])
        alone = step if "in[" not in step else f"{y} = {y} * 0.9f + 1.5f;"
        kinds = [
            f"for (int {j} = 0; {j} < {bound}; {j}++) {{ {step} }}",
            f"for (int {j} = 0; {j} < {bound}; {j} += 2) {{ {alone} {leave} {alone} }}",
            f"int {j} = 1; while ({y} < 11.5f && {j} < {bound}) {{ {alone} {j}++; }} {x} += {j};",
            f"int {j}; for ({j} = 0; {j} < {bound}; {j}++) {{ {step} }} {x} += {j};",
            f"for (int {j} = 1; {y} < {j} + 7; {j} *= 2) {{ {alone} if ({j} > 30) break; }}",
            f"for (int {j} = 0; {j} < 9; {j}++) for (int l = {j}; l < {bound}; l++) {{ {step} {y} -= l; }}",
            f"{x} += escape({y}, {bound}) + ({self.same[0] if self.same else 3} & 1);",
        ]
        return f"float {y} = {start}; {pick(kinds)} {x} += (unsigned)({y} * 8);"

    def declaration(self):
        x, y, first, second = self.name("v"), self.name("w"), self.thread(), self.uniform()
        kinds = [  # a declaration, and what each new name is
            (f"int {x} = {second};", (self.same, x)),
            (f"int {x}; {x} = {second};", (self.same, x)),
            (f"const unsigned {x} = {first};", (self.fixed, x)),
            (f"int {x} = threadIdx.x;", (self.fixed, x)),
            (f"unsigned {x}[3] = {{1, 2}};", (self.arrays, x)),
            (f"{self.rng.choice(['unsigned', 'auto'])} {x} = {first};", (self.own, x)),
            (f"unsigned {x} = {first}, {y}; {y} = {x} + 1;", (self.own, x), (self.own, y)),
            (f"Pair {y} = {{rank, 4u}}; {y}.b += {first};", (self.own, f"{y}.a")),
            (f"T {x} = {first}; const unsigned *{y} = in + rank;", (self.own, x), (self.fixed, f"{y}[0]")),
        ]
        text, *names = self.rng.choice(kinds)
        for kind, name in names:
            kind.append(name)
        return text

    def lanes(self):  # a warp operation
        x, pick = self.target(), self.rng.choice
        mask, value, name = pick(["0xffffffff", "~0u", "ALL"]), self.thread(), self.name("w")
        near = pick(["1", "3", "17", "40", self.uniform(), "(rank & 7)"])
        near = f"(({near}) & 31)" if self.whole_warps else near
        width = pick(["", "", ", 8", ", 2"])
        shuffle = f"__shfl_{pick(['up_', 'down_', 'xor_', ''])}sync({mask}, {value}, {near}{width})"
        reduce = (
            f"__reduce_{pick(['add', 'min', 'max'])}_sync({mask}, ({pick(['int', 'unsigned'])})({value}))"
        )
        first = f"if (threadIdx.x < {pick([32, 64])})"
        size = pick([32, 32, 16, 8, 4, 2])
        tile = f"auto {name} = cg::tiled_partition<{size}>(cg::this_thread_block());"
        sum_of_tile = f"cg::reduce({name}, (int)({value}), cg::{pick(['plus', 'less', 'bit_xor'])}<int>())"
        of_tile = f"{name}.shfl{pick(['_up', '_down', '_xor', ''])}({value}, ({near}) & {size - 1})"
        kinds = [
            f"{x} += {shuffle};",
            f"{x} = ({value}) * 3 + {shuffle};",
            f"{x} ^= {reduce};",
            f"for (int d = 16; d > 0; d /= 2) {x} += __shfl_xor_sync({mask}, {x} + 1, d);",
            f"{x} += warp_sum<unsigned>({value});",
            f"{{ {tile} {x} ^= {sum_of_tile}; {x} += {name}.thread_rank() + {name}.meta_group_rank(); }}",
            f"{{ {tile} {x} += {of_tile}; {x} ^= {name}.ballot({x} & 2) + {name}.any({value} & 5); {name}.sync(); }}",
            # lanes in lockstep
            f"{{ volatile unsigned *{name} = cache; {name}[rank] = {value}; {x} ^= {name}[rank ^ {pick([1, 24])}];\n"
            f"{name}[rank] {pick(['=', '+=', '^='])} {name}[rank ^ {pick([2, 31])}] * 3; {x} += __shfl_xor_sync({mask}, 1 + {name}[rank ^ 5], 1); }}",
            f"{first} {{ {x} += warp_sum<unsigned>({x} * 3); __syncwarp(); {x}++; }}",
            f"{{ int {name} = threadIdx.x / 32; if ({name} == 1) {x} ^= {shuffle}; else {x}++; }}",
            f"{{ const int {name} = threadIdx.x{pick(['', ' + 32 * blockIdx.x * blockDim.x'])};\n"
            f"if ({name}{pick([' < 64', ' / 32 == 1', ' >> 5 < n'])}) {x} ^= {shuffle}; else {x}++; }}",
            f"{x} += __popc(__ballot_sync({mask}, ({value}) >> (n & 3) & 1)) + __all_sync({mask}, {x} & 8);",
        ]
        if self.warps:
            kinds += [
                f"if (__any_sync({mask}, {value} % 9 == 1)) {x} += {shuffle};",
                f"for (int {name} = threadIdx.x / 32; {name} < n; {name} += 2) {{ {x} ^= {shuffle}; {x}++; }}",
                f"{{ unsigned {name} = __ballot_sync({mask}, {value} & 4); if ({name} & 2) {x} += {shuffle}; }}",
            ]
        else:
            kinds += [f"{x} = block_sum({value}, n);", f"spread({x}, {value});"]
        if self.whole_warps:
            kinds = [text for text in kinds if "volatile" not in text]
        return pick(kinds)

    def exchange(self):
        if self.alone:
            return self.region()
        if self.warps or self.rng.random() < 0.4:
            return self.lanes()
        x = self.target()
        return (
            f"cache[rank] = {self.thread()}; BARRIER\n"
            f"{x} += cache[(rank + {self.rng.randrange(1, 9)}) % threads]; __syncthreads();"
        )

    def block(self, depth, in_loop=False):
        """Statements between braces, which see the variables outside"""
        saved = [list(x) for x in (self.own, self.fixed, self.same, self.arrays)]
        text = "\n".join(self.statement(depth, in_loop) for _ in range(self.rng.randrange(1, 5)))
        self.own, self.fixed, self.same, self.arrays = saved
        return f"{{\n{text}\n}}"

    def body(self, depth, in_loop):
        """Of a loop; mostly with a barrier between two iterations"""
        return f"{{ {self.block(depth - 1, in_loop)} {self.rng.choice([''] + 5 * ['__syncthreads();'])} }}"

    def statement(self, depth, in_loop):
        kind = self.rng.randrange(20)
        if kind < 5:
            return self.region()
        if kind < 9:
            return self.declaration()
        if kind < 12:
            return self.exchange()
        if kind == 12:
            return self.rng.choice(
                ["__syncthreads();", f"if ({self.uniform()} > 2) {{ {self.region()} __syncthreads(); }}"]
            )
        assignable = [x for x in self.same if x not in self.kept]
        if kind == 13 and assignable:
            x = self.rng.choice(assignable)
            return self.rng.choice([f"{x} += {self.uniform()};", f"{x}++;", f"{x} = {self.uniform()};"])
        if kind == 14 and in_loop:
            return f"if ({self.uniform()} > 40) {self.rng.choice(['break', 'continue'] if in_loop == 'for' else ['break'])};"
        if depth == 0 or kind < 15 or self.loops > 4:
            return self.region()
        if kind == 15:
            other = f" else {self.block(depth - 1, in_loop)}" if self.rng.random() < 0.5 else ""
            return f"if ({self.uniform()} > 4) {self.block(depth - 1, in_loop)}{other}"
        self.loops += 1
        i, bound = self.rng.choice(["i", "k"]) + str(depth), self.uniform()
        self.kept.add(i)
        self.same.append(i)
        body = self.body(depth, "for" if kind < 18 else "while")
        text = [
            f"for (int {i} = ({bound} + 1) & 3; {i} >= 0; --{i}) {body}",
            f"#pragma unroll\nfor (int {i} = 1; {i} < (({bound} + 1) & 7); {i} <<= 1) {body}",
            f"{{ int {i} = 3;\nwhile ({i} > 0) {{ {i} -= 1; {body} }} }}",
            f"{{ int {i} = 2;\ndo {{ {self.exchange()} {body} }} while ({i}-- > 0); }}",
        ][kind - 16]
        self.same.remove(i)
        self.loops -= 1
        return text

    def kernel(self, number):
        """The text of a kernel"""
        self.own, self.fixed, self.same, self.arrays, self.kept = ["a", "step"], ["rank"], [], [], {"many"}
        self.shapes.append(("3", "block"))
        self.warps = number % 3 == 2  # no barriers of the block
        self.alone = number % 4 == 3  # no barriers at all
        body = "\n".join([self.exchange(), *[self.statement(3, False) for _ in range(8)], self.exchange()])
        body += (
            "\nout[rank] += " + " + ".join([*self.own, *self.fixed, *[f"{x}[1]" for x in self.arrays]]) + ";"
        )
        head = f"""(const unsigned *in, unsigned *out, unsigned *total, int n, T step) {{
__shared__ unsigned cache[MOST_THREADS];
const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
const int many = 7;
unsigned rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
unsigned a = rank * 3;
in += blockIdx.x * threads; out += blockIdx.x * threads;
"""
        if self.warps:
            body = body.replace("__syncthreads();", "__syncwarp();")
        if self.alone:
            body = body.replace("__syncthreads();", "")
            if self.rng.random() < 0.5:  # it calls nothing
                body = re.sub(r"(change|change_reference|atomicAdd)\(.*?\);", ";", body)
                body = body.replace("helper(rank, n)", "7u").replace("min(", "3 + (").replace(", 2)", " + 2)")
            if not (self.whole_warps or number % 8 == 3):
                guard = self.rng.choice(
                    [
                        "rank < n * 9u",
                        "(int)threadIdx.x - 1 < n && threadIdx.y < 4u",
                        "(threadIdx.x > 2) && n > 0",
                    ]
                )
                body = (
                    f"if ({guard}) {{\n{body}\n}}"
                    if self.rng.random() < 0.5
                    else f"if (!({guard})) return;\n{body}"
                )
                body = re.sub(r"if \(!\((.*?) && (.*?)\)\) return", r"if (!(\1) || !(\2)) return", body)
                body = body.replace("if (!(rank < n * 9u))", "if (rank >= n * 9u)")
        return f"template <class T, int K> __global__ void split{number}{head}{body}\n}}\n"

    def kernel_of_grid(self, number):
        """A kernel that uses the place of its thread in the grid: blocks may run together."""
        self.own, self.fixed, self.same, self.arrays, self.alone = ["a", "step"], ["rank"], [], [], True
        kinds = [self.declaration, self.chunk, self.chunk, self.region]
        body = "\n".join(self.rng.choice(kinds)() for _ in range(self.rng.randrange(1, 4)))
        body += "\nout[rank] += " + " + ".join([*self.own, *self.fixed]) + ";"
        single, pick = self.rng.random() < 0.3, self.rng.choice
        product = pick(["blockIdx.x * blockDim.x", "blockDim.x * blockIdx.x", "(int)blockIdx.x * blockDim.x"])
        place = {
            "x": "blockIdx.x" if single else pick([f"{product} + threadIdx.x", f"threadIdx.x + {product}"]),
            "y": "blockIdx.y * blockDim.y + threadIdx.y",
            "z": "blockIdx.z * blockDim.z + threadIdx.z",
        }
        fast, middle, slow = pick(["xyz", "xyz", "xyz", "yxz", "zyx"])
        size = {a: f"(gridDim.{a} * blockDim.{a})" for a in "xyz"}
        self.shapes.append(
            ("dim3(5, 2)", "dim3(1, block.y, block.z)") if single else (pick(["3", "dim3(1, 3)"]), "block")
        )
        head = f"""(const unsigned *in, unsigned *out, unsigned *total, int n, T step) {{
const int many = 7;
const int column = {place[fast]}, row = {place[middle]}, layer = {place[slow]};
int rank = (layer * {size[middle]} + row) * {size[fast]} + column;
unsigned a = rank * 3;
"""
        body = re.sub(r"(change|change_reference|atomicAdd)\(.*?\);", ";", body).replace(
            "helper(rank, n)", "7u"
        )
        body = body.replace("threadIdx.x", "column").replace("threadIdx.y", "row").replace("blockIdx.x", "K")
        guard = pick(
            ["", "column < n * 3 + 2 && row < 5", "column > 0 && column < n + 40", "row >= 1 && column <= 17"]
        )
        body = f"if ({guard}) {{\n{body}\n}}" if guard else body
        return f"template <class T, int K> __global__ void split{number}{head}{body}\n}}\n"


PROLOGUE = """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstring>
#define MOST_THREADS 128
#define BARRIER __syncthreads();
namespace cg = cooperative_groups;
constexpr int LIMIT = 6;
enum { FEW = 2 };
struct Pair { unsigned a, b; };
__device__ unsigned helper(unsigned rank, int n) { return rank * n + INDEX; }
const unsigned ALL = 0xffffffff;
template <class T> __device__ __forceinline__ T warp_sum(T x) {
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_down_sync(0xffffffff, x, d);
    return x;
}
__device__ unsigned block_sum(const unsigned x, int n) {
    __shared__ unsigned sums[32];
    const unsigned sum = warp_sum(x);
    __syncthreads();
    const unsigned rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (rank % 32 == 0)
        sums[rank / 32] = sum;
    __syncthreads();
    unsigned y = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : n;
    if (threadIdx.x < 32)
        y = warp_sum(y);
    return y;
}
__device__ void spread(unsigned &x, unsigned y) {
    __shared__ unsigned all[MOST_THREADS];
    unsigned rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    all[rank] = y;
    __syncthreads();
    x ^= all[rank / 2];
    __syncthreads();
}
__device__ unsigned escape(float x, int n) {
    float y = 1;
    for (int i = 0; i < n; i++) {
        y = y * x * 0.5f + 0.25f;
        if (y > 20)
            return i;
        if (y < -3) {
            x = 0.5f;
            return i + (y < -9 ? 100u : 3u);
        }
    }
    if (x > 0.3f)
        return 17;
    return 18 + n;
}
__device__ void change(unsigned *x, unsigned y) { *x = *x * 3 + y; }
__device__ void change_reference(unsigned &x, unsigned y) { x ^= y; }
"""

MAIN = """
unsigned *in, *out;
template <class F> unsigned run(F kernel, dim3 grid, dim3 block, int n) {
    memset(out, 0, 4 * 400);
    for (int i = 0; i < 384; i++) in[i] = i * 2654435761u;
    kernel<<<grid, block>>>(in, out, out + 384, n, 5u);
    unsigned hash = cudaDeviceSynchronize();
    for (int i = 0; i < 400; i++) hash = (hash ^ out[i]) * 16777619u;
    return hash;
}
int main() {
    cudaMallocManaged(&in, 4 * 400);
    cudaMallocManaged(&out, 4 * 400);
    const dim3 blocks[] = {BLOCKS};
    for (dim3 block : blocks) for (int n : {1, 8}) {
        printf("block %u %u %u, n %d\\n", block.x, block.y, block.z, n);
"""


def program(rng, count, whole_warps=False):
    """A program that prints the results of `count` kernels with blocks of several shapes. `whole_warps`: it has the same
    results on every GPU."""
    generator = Generator(rng, whole_warps)
    blocks = "{128}, {32}, {64}, {8, 4, 2}, {2, 32}, {64, 2}"
    blocks = blocks if whole_warps else "{128}, {33}, {7, 5}, {4, 3, 3}, {1}, {2, 32}, {64, 2}"
    # If no function asks for the thread's index, compilers may use vectors.
    text = PROLOGUE.replace("INDEX", rng.choice(["threadIdx.x + 2 * threadIdx.y", "n / 3"]))
    for k in range(count):
        text += generator.kernel_of_grid(k) if k % 4 == 1 and not whole_warps else generator.kernel(k)
    text += MAIN.replace("BLOCKS", blocks)
    for k in range(count):
        grid, block = generator.shapes[k]
        text += (
            f"""        printf("  kernel {k}: %u\\n", run(split{k}<unsigned, 3>, {grid}, {block}, n));\n"""
        )
    return text + "    }\n}\n"
