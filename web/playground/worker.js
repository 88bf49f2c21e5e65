// SPDX-License-Identifier: MIT
// The compiler's worker. To it: {run: {text, name, args, check, exercise}} compiles and runs a program, {stop: why} ends the program and
// keeps the compiler. From it: {progress}, {diagnostics}, {out}, {err}, {file} and {end}. A page makes it when somebody edits: it fetches
// the compiler then (`?bytes=` says how much that is), and compiles an empty program, since a browser makes machine code of the compiler
// when that is used first. The program runs in a worker of its own, which is this file again, under another name.
import {execute, Pipeline} from "./pipeline.js";

const post = message => postMessage(message, message.file ? [message.file.bytes.buffer] : []);

function compiler() {
    const what = "fetches the compiler", total = +new URL(import.meta.url).searchParams.get("bytes");
    let done = 0, asked = false, stop = () => {};

    // Fetches a file that build.mjs has compressed.
    async function unpacked(url) {
        const answer = await fetch(`${url}.packed`);
        if (!answer.ok)
            throw new Error(`${url}: ${answer.status}`);
        const count = new TransformStream({transform(part, rest) {
            if (done < total)
                post({progress: {what, done: done = Math.min(done + part.length, total), total}});
            rest.enqueue(part);
        }});
        const type = url.pathname.endsWith(".wasm") ? "application/wasm" : "text/javascript"; // others are taken as bytes
        const body = answer.body.pipeThrough(count).pipeThrough(new DecompressionStream("gzip"));
        return new Response(body, {headers: {"content-type": type}});
    }

    // Runs a program, until it ends or is stopped. Resolves to {status, time}.
    const elsewhere = (program, post) => new Promise(resolve => {
        const worker = new Worker(import.meta.url, {type: "module", name: "program"});
        const end = result => {
            worker.terminate();
            resolve(result);
        };
        const start = performance.now();
        stop = why => end({status: why, time: performance.now() - start});
        worker.onmessage = ({data}) => data.end ? end(data.end) : post(data);
        worker.onerror = event => stop(`the program was ended: ${event.message}`);
        worker.postMessage(program);
    });

    const importBinaryen = async url => import(URL.createObjectURL(await (await unpacked(url)).blob()));
    const ready = Pipeline.start(new URL("./", import.meta.url), unpacked, importBinaryen);
    ready.then(pipeline => asked || pipeline.compile({text: "int main() {}\n", name: "empty.cu"})).catch(() => {});
    return async data => {
        if (data.stop)
            return stop(data.stop);
        asked = true;
        try {
            await (await ready).run(data.run, post, elsewhere);
        } catch (error) {
            post({end: {status: `the compiler failed: ${error.message ?? error}`, times: {}}});
        }
    };
}

const answer = self.name === "program" ? program => post({end: execute(program, post)}) : compiler();
onmessage = ({data}) => answer(data);
