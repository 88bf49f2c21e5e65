// SPDX-License-Identifier: MIT
// From the text of a .cu to a running program, in a page's worker or in node: clang preprocesses, cu2cpp translates, clang compiles,
// wasm-ld links, and wasi.js runs. build.mjs has written the files that this loads.
//
// What every .cu includes is 2 MB after preprocessing. It is preprocessed and compiled once, by build.mjs (the prelude). For a
// program, its own text is preprocessed with the macros of the prelude, in whose presence headers that were included are empty; the
// translator gets both parts, since it has to know the functions of the headers; and the compiler gets the translation of the second part.
import {Exit, run} from "./wasi.js";

const WARNINGS = ["-Wall", "-Wextra",
    ..."unused-parameter sign-compare overloaded-shift-op-parentheses misleading-indentation unknown-pragmas macro-redefined".split(" ")
       .map(name => `-Wno-${name}`)];
const FOLDERS = ["/usr/include/wasm32-wasip1/c++/v1", "/usr/include/c++/v1", "/usr/include", "/usr/include/wasm32-wasip1"];
// clang's options without its driver, which would run clang a second time to find them
export const CLANG = ["-cc1", "-triple", "wasm32-unknown-wasip1", "-resource-dir", "/usr", "-isysroot", "/usr",
    ...FOLDERS.flatMap(folder => ["-internal-isystem", folder]), "-fgnuc-version=4.2.1", "-ferror-limit", "19", "-O2",
    "-fexceptions", "-fignore-exceptions", "-fno-finite-loops",
    "-ffp-contract=off", "-vectorize-loops", "-vectorize-slp", "-mconstructor-aliases",
    ..."_WASI_EMULATED_SIGNAL _WASI_EMULATED_PROCESS_CLOCKS _WASI_EMULATED_GETPID _GNU_SOURCE".split(" ").map(name => `-D${name}`),
    "-I", "/headers/linux", "-I", "/headers/include", "-I", "/headers", "-I", "/headers/common"];
export const CXX = ["-x", "c++", "-std=gnu++17", "-fdeprecated-macro", "-fcxx-exceptions"];
export const CUDA = ["-D__NVCC__", "-D__CUDACC__", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0", "-D__CUDACC_VER_BUILD__=88",
    "-D__CUDA_ARCH_LIST__=800", "-D__CU2CPP__", '-DCUDA_CPU_UNIT="program"'];
// cc1's names of -fno-strict-aliasing and of what cucc/driver/compiler.c chooses for clang
export const TRANSLATED = [...CXX, "-relaxed-aliasing", "-no-enable-noundef-analysis"];
// --check: the program calls functions of the runtime at each access, as for ThreadSanitizer.
export const CHECK = {
    defines: ["-DCUDA_CPU_SEVERAL", "-DCUDA_CPU_CHECK"],
    options: ["-fsanitize=thread", "-mllvm", "-tsan-distinguish-volatile=1", "-mllvm", "-tsan-instrument-read-before-write=1",
        "-mllvm", "-tsan-instrument-func-entry-exit=0",
        "-fno-delete-null-pointer-checks", "-debug-info-kind=line-tables-only", "-dwarf-version=4"],
};
const LIBRARIES = ["-L/usr/lib/wasm32-wasip1", ..."c++ c++abi m wasi-emulated-signal wasi-emulated-process-clocks wasi-emulated-getpid c"
    .split(" ").map(name => `-l${name}`), "/usr/lib/wasm32-unknown-wasip1/libclang_rt.builtins.a"];
export const MOST_OUTPUT = 1 << 20, MOST_MEMORY = 1 << 30;
const MOST_CHECKED = 2 ** 32; // each word that a kernel accesses takes 60 bytes more

const decode = bytes => new TextDecoder().decode(bytes), encode = text => new TextEncoder().encode(text);

// Runs clang, wasm-ld or ar; returns its status, the files that it has written, and what it printed and said. What clang preprocesses is to
// be printed: it writes each token by a call, and a call copies the whole file.
export async function tool(runLLVM, args, files) {
    const printed = [], said = [], keep = list => bytes => bytes && list.push(decode(bytes));
    let status = 0, written;
    try {
        written = await runLLVM(args, files, {stdout: keep(printed), stderr: keep(said), decodeASCII: false, fetchProgress() {}});
    } catch (error) {
        if (error.code === undefined)
            throw new Error(`${args[0]} failed: ${error.message}: ${said.join("")}`);
        [status, written] = [error.code || 1, error.files ?? {}];
    }
    return {status, written, printed: printed.join(""), said: said.join("")};
}

export const link = (runLLVM, output, objects, files, memory = MOST_MEMORY) => tool(runLLVM, ["wasm-ld", "-o", output,
    "/usr/lib/wasm32-wasip1/crt1-command.o", ...objects, ...LIBRARIES, "--strip-all", "--export-table",
    "--export=__stack_pointer", "-z", "stack-size=1048576",
    `--max-memory=${memory}`], files);

// Runs cu2cpp; returns what it has written, and what it said.
export function translate(module, text, device, options = []) {
    const files = new Map([["in.ii", encode(text)], ...device ? [["device.ii", encode(device)]] : []]), said = [];
    const args = [...options, ...device ? ["-d", "device.ii"] : [], "-o", "out.ii", "in.ii"]; // without GNU, options come first
    const write = (number, bytes) => said.push(decode(bytes));
    const status = run(module, {args: Object.assign(args, {name: "cu2cpp"}), files, write});
    return {status, text: files.has("out.ii") && !status ? decode(files.get("out.ii")) : "", said: said.join("")};
}

// The lines "file:line:column: severity: text" of a compiler, or "file:line: text" of cu2cpp, about the person's file; those about other
// files are told at line 1.
export function diagnose(said, name) {
    const found = [];
    for (const line of said.split("\n")) {
        const form = /^(\S[^:]*):(\d+):(?:(\d+):)? (?:(fatal error|error|warning|note): )?(.*)/;
        const [, file, at, column, severity, text] = line.match(form) ?? [];
        if (!file || (severity === "note" && file !== name))
            continue;
        const own = file === name;
        found.push({line: own ? +at : 1, column: own ? +(column ?? 1) : 1, severity: (severity ?? "error").replace("fatal ", ""),
            text: own ? text : `${file}:${at}: ${text}`});
    }
    return found;
}

export class Pipeline {
    // `unpacked(url)` resolves to a response with the bytes of a file that build.mjs has written into the folder, importBinaryen(url) to
    // the module binaryen.js of it.
    static async start(folder, unpacked, importBinaryen) {
        globalThis.unpacked = unpacked; // build.mjs has made @yowasp/clang call it
        const own = new Pipeline, {runLLVM} = await import(new URL("clang/bundle.js", folder));
        const load = async name => new Uint8Array(await (await unpacked(new URL(name, folder))).arrayBuffer());
        const [, headers, translator, library, prelude] = await Promise.all([runLLVM(null, {}, {fetchProgress() {}}),
            ...["headers.json", "cu2cpp.wasm", "library.a"].map(load), own.loadPrelude("prelude", load)]);
        return Object.assign(own, {folder, importBinaryen, runLLVM, load, library, headers: JSON.parse(decode(headers)), prelude,
            translator: await WebAssembly.compile(translator)});
    }

    async loadPrelude(kind, load = this.load) {
        const [bytes, macros, stored] = await Promise.all(["ii", "macros", "pch"].map(part => load(`${kind}.${part}`)));
        const text = decode(bytes);
        // The files of @yowasp/clang take /.. for nothing, so that the options -I /headers and -I /headers/common find "../common/book.h".
        const known = new Set([...text.matchAll(/^# \d+ "(\/headers\/[^"]*)" 1/gm)].map(match => match[1].replaceAll("/..", "")));
        return {text, bytes, macros: decode(macros), stored, known};
    }

    // Compiles and links a program. Returns {diagnostics, module, times}; without a module, the diagnostics say why.
    async compile({text, name = "program.cu", check, exercise}, progress = () => {}) {
        const {runLLVM} = this, times = {}, diagnostics = [];
        const timed = async (what, step) => {
            const start = performance.now();
            progress(what);
            const result = await step();
            times[what] = (times[what] ?? 0) + performance.now() - start;
            return result;
        };
        const refused = said => {
            const all = diagnose(said, name);
            diagnostics.push(...all.length ? all : [{line: 1, column: 1, severity: "error", text: said.trim() || "it failed"}]);
            return {diagnostics, times};
        };
        if (check)
            this.check ??= await timed("fetches what looks for races", () => this.loadPrelude("check"));
        const own = check ? this.check : this.prelude, source = {headers: emptied(this.headers, own.known), "macros.h": own.macros};
        place(source, name, text);
        const preprocess = async macros => {
            const done = await tool(runLLVM, ["clang++", ...CLANG, ...CXX, ...macros, "-E", "-imacros", "/macros.h",
                "-iquote", `/headers/${name.replace(/[^/]*$/, "")}`, "-o", "-", name], source);
            return {...done, text: done.status ? "" : after(done.printed, name)};
        };
        const host = await timed("preprocesses", () => preprocess([]));
        if (host.status)
            return refused(host.said);
        const device = /\b__CUDA_ARCH__\b/.test(text) && await timed("preprocesses", () => preprocess(["-D__CUDA_ARCH__=800"]));
        if (device.status)
            return refused(device.said);
        const whole = own.text + host.text, forDevice = device && own.text + device.text;
        const translated = await timed("translates", () => translate(this.translator, whole, forDevice, check ? ["-f"] : []));
        if (translated.status)
            return refused(translated.said);
        const known = translated.text.startsWith(own.text);
        const input = known ? {"in.ii": translated.text.slice(own.text.length), "prelude.pch": own.stored, "prelude.h": own.bytes}
            : {"in.ii": translated.text};
        // Variables that an exercise does not set yet have some value: clang would end the program where one is used.
        const set = exercise ? ["-ftrivial-auto-var-init=pattern"] : [];
        const options = ["clang++", ...CLANG, ...TRANSLATED, ...set, ...check ? [...CHECK.options, "-S"] : ["-emit-obj"], ...WARNINGS,
            ...known ? ["-include-pch", "/prelude.pch", "-fno-validate-pch"] : [], "-main-file-name", "program.cu",
            "-o", check ? "-" : "/out.o", "/in.ii"];
        let object = await timed("compiles", () => tool(runLLVM, options, input));
        if (object.status)
            return refused(object.said);
        diagnostics.push(...diagnose(object.said, name).filter(one => one.severity === "warning"));
        if (check)
            object = await timed("assembles", () => tool(runLLVM, ["clang", "-cc1as", "-triple", "wasm32-unknown-wasip1",
                "-target-cpu", "generic", "-filetype", "obj", "-o", "/out.o", "/in.s"], {"in.s": withLines(object.printed, name)}));
        if (object.status)
            return refused(object.said);
        const linked = await timed("links", () => link(runLLVM, "out.wasm", ["out.o", "library.a"],
            {"out.o": object.written["out.o"], "library.a": this.library}, check ? MOST_CHECKED : MOST_MEMORY));
        if (linked.status)
            return refused(linked.said);
        let program = linked.written["out.wasm"];
        // Whether the threads of a kernel wait, and it is not split into loops: cu2cpp says so. In an exercise all wait (CUDA_CPU_STRICT).
        const explain = () => translate(this.translator, whole, forDevice, ["-e"]).said;
        if (check || exercise || input["in.ii"].includes("::cuda_cpu::Fibers") && / fibers: /.test(explain()))
            program = await timed("adds stack switches", () => this.withSwitches(program));
        const module = await timed("loads", () => WebAssembly.compile(program));
        return {diagnostics, module, times};
    }

    // Asyncify makes it possible to leave the functions that call swap() of wasi.js, and to continue them.
    async withSwitches(program) {
        const {default: binaryen} = await (this.binaryen ??= this.importBinaryen(new URL("binaryen.js", this.folder)));
        const module = binaryen.readBinary(program);
        const {MutableGlobals, NontrappingFPToInt, SignExt, BulkMemory, BulkMemoryOpt, Multivalue, ReferenceTypes} = binaryen.Features;
        module.setFeatures(MutableGlobals | NontrappingFPToInt | SignExt | BulkMemory | BulkMemoryOpt | Multivalue | ReferenceTypes);
        binaryen.setOptimizeLevel(0); // the program is not faster with more, and this takes ten times as long
        binaryen.setPassArgument("asyncify-imports", "playground.swap");
        module.runPasses(["asyncify"]);
        const bytes = module.emitBinary();
        module.dispose();
        return bytes;
    }

    // Compiles what a message {text, name, args, check, exercise} asks for, has it run by `execute`, and tells the rest of the worker's
    // contract to `post`.
    async run(asked, post, execute) {
        const {diagnostics, module, times} = await this.compile(asked, what => post({progress: {what, done: 0, total: 0}}));
        post({diagnostics});
        if (!module)
            return post({end: {status: "does not compile", times}});
        post({progress: {what: "runs", done: 0, total: 0}});
        const {status, time} = await execute({module, ...asked}, post);
        post({end: {status, times: {...times, run: time}}});
    }
}

// Runs a program and passes on what it prints and draws. Returns {status, time}.
export function execute({module, name = "program.cu", args = [], exercise}, post) {
    const decoders = {1: new TextDecoder(), 2: new TextDecoder()}, start = performance.now(), files = new Map;
    let printed = 0, status;
    const write = (number, bytes) => {
        printed += bytes.length;
        if (printed > MOST_OUTPUT)
            throw new Exit("more than 1 MB of output");
        const text = decoders[number].decode(bytes, {stream: true});
        if (text)
            post({[number === 1 ? "out" : "err"]: text});
    };
    const renamed = (name, bytes) => post({file: {name, bytes}});
    try {
        status = run(module, {args: Object.assign([...args], {name: name.replace(/.*\/|[.]cu$/g, "")}), files, write, renamed, exercise});
        files.forEach((bytes, name) => renamed(name, bytes.slice()));
    } catch (error) {
        status = error instanceof Exit ? error.status : `the program was ended: ${error.message}`;
    }
    return {status, time: performance.now() - start};
}

// Adds a file to a tree of folders.
export function place(tree, path, content) {
    const parts = path.split("/"), file = parts.pop();
    for (const part of parts)
        tree = tree[part] = {...tree[part]};
    tree[file] = content;
}

// The tree of headers, in which these are empty
function emptied(tree, paths, at = "/headers") {
    const content = (name, value) => typeof value === "object" ? emptied(value, paths, `${at}/${name}`)
        : paths.has(`${at}/${name}`) ? "" : value;
    return Object.fromEntries(Object.entries(tree).map(([name, value]) => [name, content(name, value)]));
}

// The text of the assembler, in which each access, and each call of CUDA, comes after a call that says the line of the person's file
function withLines(text, name) {
    let line = 0;
    const form = /^\t[.]loc\t.*# (.*)|^\tcall\t(?:__tsan_(?!func_|init)|cuda)\w+/gm; // after #: the place, and inlined calls
    return `\t.functype\trace_at_line (i32) -> ()\n` + text.replace(form, (all, places) => {
        if (!places)
            return `\ti32.const\t${line}\n\tcall\trace_at_line\n${all}`;
        line = places.split(" ").find(place => place.startsWith(`${name}:`))?.split(":")[1] ?? line;
        return all;
    });
}

// A preprocessed text from the first line of the file itself on, as if it began there
function after(text, name) {
    const at = text.indexOf(`\n# 1 "${name}" 2\n`, text.indexOf("/macros.h")) + 1;
    return text.slice(at).replace(/ 2\n/, "\n");
}
