// SPDX-License-Identifier: MIT
// node build.mjs OUT BUILD: writes the playground's compiler into the folder OUT, with clang of npm (@yowasp/clang) alone: cu2cpp and the
// libraries as WebAssembly, the headers, and the prelude (pipeline.js). BUILD keeps objects between calls.
import {execFileSync} from "node:child_process";
import {createHash} from "node:crypto";
import {cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {gzipSync} from "node:zlib";
import {runLLVM} from "@yowasp/clang";
import {CHECK, CLANG, CUDA, CXX, link, place, tool, TRANSLATED, translate} from "./pipeline.js";

const HERE = dirname(fileURLToPath(import.meta.url)), ROOT = join(HERE, "../.."), [OUT, BUILD] = process.argv.slice(2);
const STUBS = ["link.h", "setjmp.h", "spawn.h", "sys/mman.h", "sys/prctl.h", "sys/resource.h", "sys/wait.h", "emscripten/fiber.h"];
const PRELUDE = ["/headers/linux/linux.h", "cuda_runtime.h", "cuda_cpu/unit.h", "assert.h", "float.h", "limits.h", "math.h", "stdint.h",
    "stdio.h", "stdlib.h", "string.h", "time.h", "algorithm", "initializer_list", "numeric", "string", "type_traits", "utility", "vector"];

function tree(folder, keep = /./) {
    const all = {};
    for (const entry of readdirSync(folder, {withFileTypes: true})) {
        const path = join(folder, entry.name);
        if (entry.isDirectory())
            all[entry.name] = tree(path, keep);
        else if (keep.test(entry.name))
            all[entry.name] = readFileSync(path, "utf8");
    }
    return all;
}

async function must(args, files) {
    const done = await tool(runLLVM, args, files);
    if (done.status)
        throw new Error(`${args.join(" ")}\n${done.said}`);
    return done;
}

function write(name, content) {
    writeFileSync(join(OUT, `${name}.packed`), gzipSync(content, {level: 9}));
    return content;
}

// ---- what programs include ----

const stub = '#include "/headers/linux/linux.h"\n';
const linux = {"linux.h": readFileSync(join(HERE, "linux.h"), "utf8")};
for (const name of STUBS)
    place(linux, name, stub);
mkdirSync(join(OUT, "clang"), {recursive: true});
mkdirSync(BUILD, {recursive: true});
rmSync(join(BUILD, "include"), {recursive: true, force: true});
cpSync(join(ROOT, "cucc/include"), join(BUILD, "include"), {recursive: true});
execFileSync("sh", [join(ROOT, "cucc/include/forward.sh"), join(BUILD, "include")]);
const headers = {linux, include: tree(join(BUILD, "include")), common: tree(join(ROOT, "common"), /[.]h$/)};
for (const folder of readdirSync(ROOT).filter(name => /^(chapter|appendix)/.test(name)))
    headers[folder] = tree(join(ROOT, folder), /[.](h|cuh)$/);
write("headers.json", JSON.stringify(headers));

// ---- objects: compiled again when a source or a header has changed ----

// Compiles the files of a tree of sources. Returns the objects by their names.
async function objects(sources, files, options = []) {
    const all = {}, hash = createHash("sha256").update(JSON.stringify([sources, CLANG, CXX])).digest("hex").slice(0, 16);
    for (const file of files) {
        const name = `${file.replaceAll("/", "_")}.o`, kept = join(BUILD, `${hash}-${name}`);
        if (!existsSync(kept)) {
            const own = file.endsWith(".c") ? ["-x", "c", "-std=gnu11"] : CXX;
            console.error(file);
            writeFileSync(kept, (await must(["clang", ...CLANG, ...own, "-w", "-include", "/headers/linux/linux.h", ...options, "-emit-obj",
                "-main-file-name", file, "-o", "/out.o", file], sources)).written["out.o"]);
        }
        all[name] = readFileSync(kept);
    }
    return all;
}

const within = folder => readdirSync(join(ROOT, folder)).filter(name => /[.]c(pp)?$/.test(name)).map(name => `${folder}/${name}`);
const sources = (path, all = {headers: {linux}}) => (place(all, path, tree(join(ROOT, path))), all);
const translator = await objects(sources("cucc/translate"), ["cucc/translate", "cucc/translate/loops"].flatMap(within),
    ["-I", "cucc/translate"]);
const linked = await link(runLLVM, "out.wasm", Object.keys(translator), translator);
if (linked.status)
    throw new Error(linked.said);
const cu2cpp = write("cu2cpp.wasm", linked.written["out.wasm"]);
const runtime = within("cucc/runtime").filter(path => !path.endsWith("/gl.cpp")); // without OpenGL
const cuda = sources("cucc/runtime", {headers: {linux, include: headers.include}});
const library = {
    ...await objects(cuda, runtime, ["-I", "cucc/runtime"]),
    ...await objects(sources("common"), within("common/lib"), ["-I", "common"]),
    ...await objects({headers: {linux}, "linux.cpp": readFileSync(join(HERE, "linux.cpp"), "utf8")}, ["linux.cpp"]),
};
write("library.a", (await must(["ar", "rcs", "library.a", ...Object.keys(library)], library)).written["library.a"]);

// ---- the prelude ----

const files = {headers, "prelude.h": PRELUDE.map(name => `#include "${name}"\n`).join(""), "none.h": ""};
const preprocess = async (...more) => (await must(["clang++", ...CLANG, ...CXX, "-E", "-o", "-", ...more], files)).printed;
const predefined = new Set((await preprocess("-dM", "none.h")).split("\n")), module = await WebAssembly.compile(cu2cpp);
for (const [kind, more] of Object.entries({prelude: {defines: [], options: []}, check: CHECK})) {
    const defines = [...CUDA, ...more.defines], options = [...TRANSLATED, ...more.options];
    const text = write(`${kind}.ii`, await preprocess(...defines, "prelude.h"));
    const macros = (await preprocess(...defines, "-dM", "prelude.h")).split("\n").filter(line => !predefined.has(line));
    write(`${kind}.macros`, macros.join("\n"));
    const translated = translate(module, text);
    if (translated.text !== text) // then a page would need both texts
        throw new Error(`the headers of the prelude have something to translate: ${translated.said}`);
    write(`${kind}.pch`, (await must(["clang++", ...CLANG, ...options, "-w", "-emit-pch", "-o", "/out.pch", "prelude.h"],
        {"prelude.h": text})).written["out.pch"]);
}

for (const name of ["pipeline.js", "wasi.js", "worker.js"])
    cpSync(join(HERE, name), join(OUT, name));
writeFileSync(join(OUT, "package.json"), '{"type": "module"}\n'); // for run.mjs: node before 20.19 takes these files for CommonJS
write("binaryen.js", readFileSync(join(HERE, "node_modules/binaryen/index.js")));

// ---- clang, without the headers of other processors and languages ----

const GEN = join(HERE, "node_modules/@yowasp/clang/gen");
const OURS = new RegExp("^lib/.*[.][ao]$|^include/(wasm32|c[+][+]/v1/(?!__cxx03)|(__std|__float|std|float|iso646|limits|inttypes|tgmath)" +
    "\\w*[.]h$)");
const parts = [], tar = readFileSync(join(GEN, "llvm-resources.tar"));
for (let at = 0; tar[at];) {
    const field = (from, size) => tar.toString("latin1", at + from, at + from + size).replace(/\0.*/s, "");
    const end = at + 512 + Math.ceil(parseInt(field(124, 12), 8) / 512) * 512, path = field(0, 100);
    if (path.endsWith("/") || field(156, 1) === "5" || OURS.test(path))
        parts.push(tar.subarray(at, end));
    at = end;
}
write("clang/llvm-resources.tar", Buffer.concat([...parts, Buffer.alloc(1024)]));
for (const name of readdirSync(GEN).filter(name => name.endsWith(".wasm")))
    write(`clang/${name}`, readFileSync(join(GEN, name)));
const bundle = readFileSync(join(GEN, "bundle.js"), "utf8"), fetches = "var fetch_default = fetch2;";
if (!bundle.includes(fetches))
    throw new Error("@yowasp/clang fetches its files in another way");
writeFileSync(join(OUT, "clang/bundle.js"), bundle.replace(fetches, "var fetch_default = globalThis.unpacked;"));
