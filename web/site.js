// SPDX-License-Identifier: MIT
// The panel of a program's page: loads the program as WebAssembly when asked to, and runs it in a worker. The options are those
// of its --help; a link `#--size=512 --real=0` fills them in. A module is a script that calls receive(), since a page that was opened
// from the disk may not read other files.
// Edit loads the editor (playground/editor.js), and from then on Run compiles and runs its text.
"use strict";

// Runs in the worker. A picture is sent when the program has written its file.
function work() {
    onmessage = ({data: {script, wasmBinary, name, args}}) => {
        const start = performance.now(), line = text => postMessage({text: `${text}\n`});
        const errors = []; // stderr is no terminal, so a program prints no progress
        const stderr = code => code === 10 ? line(new TextDecoder().decode(Uint8Array.from(errors.splice(0)))) : errors.push(code);
        const end = status => postMessage({status, seconds: (performance.now() - start) / 1000});
        const watch = () => {
            const rename = FS.rename;
            FS.rename = (from, to) => {
                rename(from, to);
                FS.chmod(to, 0o600);
                postMessage({picture: FS.readFile(to)});
                FS.unlink(to);
            };
        };
        // A browser's clock has steps of 0.1 ms. Programs take a measured time of 0 for a mistake.
        const now = performance.now.bind(performance);
        let last = 0;
        performance.now = () => last = Math.max(now(), last + 1e-4);
        onunhandledrejection = event => end(String(event.reason));
        self.Module = {arguments: args, thisProgram: name, wasmBinary, print: line, stderr, onExit: end, preRun: [watch]};
        (0, eval)(script); // global, as its variables must be
    };
}

const panel = document.getElementById("run"), {name, options, help} = panel.dataset;
const MEANING = {0: "result verified", 1: "wrong result or error", 2: "needs what is not here", 64: "an option is wrong"};
// Options with a slider: the least value, the largest and the step. That of `size` depends on its default.
const SLIDERS = {real: [-2, 2, 0.01], imag: [-2, 2, 0.01], scale: [0.1, 3, 0.1], blocks: [1, 256, 1], threads: [1, 1024, 1],
    spheres: [1, 200, 1], bounces: [0, 5, 1]};
let worker, program, editor, again;

function add(parent, kind, properties = {}, ...children) {
    const element = Object.assign(document.createElement(kind), properties);
    element.append(...children);
    parent.append(element);
    return element;
}

const unpack = text => new Response(new Blob([Uint8Array.from(atob(text), c => c.charCodeAt())]).stream()
    .pipeThrough(new DecompressionStream("gzip")));

const fetchScript = src => new Promise((onload, onerror) => add(document.head, "script", {src, onload, onerror}));

function load() {
    return new Promise((resolve, reject) => {
        window.receive = async (script, wasm) =>
            resolve({name, script: await unpack(script).text(), wasmBinary: await unpack(wasm).arrayBuffer()});
        fetchScript(`${name}.wasm.js`).catch(reject);
    });
}

async function edit() {
    change.disabled = true;
    try {
        await fetchScript(`${panel.dataset.editor}/editor.js`);
        editor = await playground.open({panel, form, stop, state, output, add, options: help ? argumentsOf(form).join(" ") : options});
        change.hidden = !(go.hidden = stop.hidden = false);
    } catch (error) {
        state.textContent = `cannot load the editor: ${error.message ?? "no file"}`;
        change.disabled = false;
    }
}

// Runs the program; resolves to its last message. `on` gets the others: text and pictures.
function start(args, on) {
    worker?.terminate();
    worker = new Worker(URL.createObjectURL(new Blob([`(${work})()`])));
    return new Promise(resolve => {
        worker.onmessage = ({data}) => "status" in data ? resolve(data) : on(data);
        worker.onerror = event => resolve({status: event.message, seconds: 0});
        stop.onclick = () => { worker.terminate(); resolve({status: "stopped"}); };
        worker.postMessage({...program, args});
    });
}

// The options of the address, or those of the page
function preset() {
    const text = location.hash.startsWith("#--") ? location.hash.slice(1) : options;
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

// A field for each option, with the values of the preset. The text of an option ends in its words or its default.
function makeForm() {
    form.querySelector("details")?.remove();
    const list = add(form, "details", {open: true}), chosen = ` ${preset()} `;
    add(list, "summary", {}, "options");
    for (const line of help.split("\n")) {
        const [, option, value, text] = line.match(/^ {6}--([\w-]+)(=\w+)?  (.*)/) ?? [];
        if (!option || /^(output|window|no-window|list-devices|device|help|usage|version)$/.test(option))
            continue;
        const field = add(list, "label", {}, `--${option} `), words = text.match(/: (\S*[|]\S*) \(default (\S*)\)/);
        const given = chosen.match(new RegExp(` --${option}(?:[ =](?!--)(\\S+))? `)), named = {name: option};
        if (!value)
            add(field, "input", {...named, type: "checkbox", checked: !!given});
        else if (words)
            add(field, "select", named, ...words[1].split("|").map(w => new Option(w, w, false, w === (given?.[1] ?? words[2]))));
        else {
            const placeholder = text.match(/\(default ([^;)]*)/)?.[1] ?? "", standard = +placeholder, step = Math.ceil(standard / 50);
            const own = add(field, "input", {...named, size: 8, value: given?.[1] ?? "", placeholder});
            const [min, max, by] = option === "size" && standard > 0 ? [step, step * 100, step] : SLIDERS[option] ?? [];
            if (max)
                slide(add(field, "input", {type: "range", min, max, step: by, value: own.value || standard, ariaLabel: option}), own);
        }
        add(field, "small", {}, ` ${text}`);
    }
}

// A slider runs the program while it moves. A run that has drawn is ended by the next value, any other one ends first.
function slide(range, own) {
    range.oninput = () => {
        own.value = range.value;
        again = go.disabled;
        if (!again)
            run();
    };
    own.addEventListener("input", () => range.value = own.value);
}

function argumentsOf(form) {
    if (editor)
        return editor.words();
    const args = [...form.querySelectorAll("[name]")].filter(field => (field.type === "checkbox" ? field.checked : field.value))
        .map(field => field.type === "checkbox" ? `--${field.name}` : `--${field.name}=${field.value}`);
    return [...args, ...options.match(/--output=\S+/) ?? []];
}

function draw(ppm) {
    const [head, width, height] = new TextDecoder("latin1").decode(ppm.subarray(0, 40)).match(/^P6\n(\d+) (\d+)\n255\n/);
    const pixels = new ImageData(+width, +height);
    pixels.data.fill(255);
    for (let from = head.length, to = 0; from < ppm.length; from += 3, to += 4)
        pixels.data.set(ppm.subarray(from, from + 3), to);
    Object.assign(canvas, {width, height, hidden: false});
    image?.remove();
    canvas.getContext("2d").putImageData(pixels, 0, 0);
}

async function run() {
    const frames = [], lines = [];
    let timer;
    again = false;
    go.disabled = !(stop.disabled = false);
    state.textContent = "loads";
    try {
        if (!editor)
            program ??= await load();
        const args = argumentsOf(form), link = args.filter(word => !word.startsWith("--output=")).join(" ");
        if (!editor && (link !== standard || location.hash.startsWith("#--")))
            history.replaceState(null, "", `#${encodeURI(link || "--")}`);
        state.textContent = editor ? "" : "runs";
        output.textContent = "";
        output.hidden = false;
        timer = setInterval(() => { // 25 frames per second
            if (frames.length) {
                draw(frames.shift());
                if (again)
                    stop.onclick();
            }
        }, 40);
        const {status, seconds, says = ""} = await (editor?.start ?? start)(args, ({text, picture}) => {
            if (picture) frames.push(picture);
            else output.append(text.replace(/^wrote .*\.ppm.*\n/gm, ""));
        });
        while (frames.length && status !== "stopped")
            await new Promise(resolve => setTimeout(resolve, 40));
        const own = editor && status === 0 && !("exercise" in panel.dataset);
        const means = own ? "ended" : MEANING[status]; // what a reader wrote may verify nothing
        state.textContent = (typeof status === "number" ? `status ${status}${means ? `: ${means}` : ""}` : status) +
            (seconds ? `, ${seconds.toFixed(2)} s` : "") + says;
        if (editor) // on a phone they are below the text
            [editor.list, canvas, output].find(one => !one.hidden).scrollIntoView({block: "nearest"});
    } catch (error) {
        state.textContent = `cannot load the program: ${error.message ?? name}`;
    }
    clearInterval(timer);
    go.disabled = !(stop.disabled = true);
    if (again)
        run();
}

const mb = bytes => `${Math.ceil(bytes / 1e6)} MB`, {bytes, more} = panel.dataset;
panel.insertAdjacentHTML("beforeend", `<canvas hidden role="img" aria-label="picture"></canvas>
    <form><p><button>Run</button><button type="button" disabled>Stop</button><button type="button">Edit</button>
    <span role="status"></span></p><p hidden>To edit, the compiler is fetched once: ${mb(bytes)}, and ${mb(more)} more
    when races are looked for or the threads of a kernel wait.</p></form>
    <pre hidden tabindex="0" aria-label="output"></pre>`);
const [canvas, form, output] = [...panel.children].slice(-3), image = panel.querySelector("img");
const [go, stop, change, state] = form.firstChild.children;
form.onsubmit = event => {
    event.preventDefault();
    if (go.disabled)
        return;
    (canvas.hidden ? image : canvas)?.scrollIntoView({block: "nearest"});
    run();
};
change.hidden = form.children[1].hidden = !panel.dataset.editor;
go.hidden = stop.hidden = !("module" in panel.dataset);
let standard = "";
if (help) {
    makeForm();
    standard = argumentsOf(form).filter(word => !word.startsWith("--output=")).join(" ");
    addEventListener("hashchange", () => { // a link of the page, such as that of its question
        if (editor || !location.hash.startsWith("#--"))
            return;
        makeForm();
        panel.scrollIntoView();
        if (!go.disabled)
            run();
    });
}
change.onclick = async () => {
    await edit();
    editor?.warm();
    editor?.focus();
};
if (panel.dataset.editor && ("open" in panel.dataset || location.hash.startsWith("#code=")))
    edit(); // shows a text, and runs and fetches nothing else
