// SPDX-License-Identifier: MIT
// Runs a program of WASI (preview 1) with files in memory: what its C library calls for arguments, output, files, clock and exit status.
const BADF = 8, EXIST = 20, INVAL = 28, NOENT = 44, NOSYS = 52;
const DIRECTORY = 3, REGULAR = 4, TERMINAL = 2, REWINDING = 2; // the last is of Asyncify

const MOST_STORED = 1 << 30;

export class Exit extends Error {
    constructor(status) {
        super(`exit ${status}`);
        this.status = status;
    }
}

// A file that grows
class File {
    constructor(bytes = new Uint8Array(0)) {
        Object.assign(this, {bytes, size: bytes.length});
    }
    write(at, part) {
        const end = at + part.length;
        if (end > this.bytes.length) {
            const larger = new Uint8Array(Math.max(end, 2 * this.bytes.length));
            larger.set(this.bytes.subarray(0, this.size));
            this.bytes = larger;
        }
        this.bytes.set(part, at);
        this.size = Math.max(this.size, end);
    }
    read() {
        return this.bytes.subarray(0, this.size);
    }
}

// Runs a module. `files` is a Map of paths (without the first /) to bytes; the program's files are in it afterwards. `write(number, bytes)`
// gets what the program prints. `renamed(name, bytes)` gets a file that is complete: programs write a temporary one and rename it.
// Returns the exit status; traps are exceptions. An `exercise` is judged as common/exercise/verdict.c does: all threads of a block must
// reach a barrier, and main must return, which calls no proc_exit() if it returns 0.
export function run(module, {args, files = new Map, write, renamed, exercise}) {
    const store = new Map([...files].map(([path, bytes]) => [path, new File(bytes)])), open = new Map;
    let memory, table, calls, next = 0, unused = 4, last = 0, stored = 0;
    const view = () => new DataView(memory.buffer), bytes = (at, size) => new Uint8Array(memory.buffer, at, size);
    const text = (at, size) => new TextDecoder().decode(bytes(at, size));
    const path = (at, size) => text(at, size).split("/").filter(part => part && part !== ".").join("/");
    const encoded = all => all.map(word => new TextEncoder().encode(`${word}\0`));
    const words = encoded([args.name, ...args]), variables = encoded(exercise ? ["CUDA_CPU_STRICT=1"] : []);
    const sizes = (all, count, size) => (set32(count, all.length), set32(size, all.reduce((sum, word) => sum + word.length, 0)), 0);
    function strings(all, list, at) {
        all.forEach((word, i) => {
            set32(list + 4 * i, at);
            bytes(at, word.length).set(word);
            at += word.length;
        });
        return 0;
    }
    const isFolder = name => !name || [...store.keys()].some(key => key.startsWith(`${name}/`));
    // A browser's clock has steps of 0.1 ms. Programs take a measured time of 0 for a mistake.
    const now = () => last = Math.max(performance.now(), last + 1e-4);
    const set64 = (at, value) => view().setBigUint64(at, BigInt(value), true), set32 = (at, value) => view().setUint32(at, value, true);
    function each(list, count, use) {
        let sum = 0;
        for (let i = 0; i < count; i++) {
            const size = view().getUint32(list + 8 * i + 4, true), done = use(bytes(view().getUint32(list + 8 * i, true), size));
            sum += done;
            if (done < size)
                break;
        }
        return sum;
    }
    function stat(at, kind, size) {
        bytes(at, 64).fill(0);
        view().setUint8(at + 16, kind);
        set64(at + 24, 1);
        set64(at + 32, size);
    }
    function read(fd, list, count, result, from) {
        const file = open.get(fd);
        if (!file && fd)
            return BADF;
        set32(result, each(list, count, to => {
            const start = from ?? file?.at, part = file?.file.read().subarray(start, start + to.length) ?? [];
            to.set(part);
            if (file && from === undefined)
                file.at += part.length;
            return part.length;
        }));
        return 0;
    }
    function put(fd, list, count, result, at) {
        const file = open.get(fd), printed = new File;
        if (!file && fd !== 1 && fd !== 2)
            return BADF;
        set32(result, each(list, count, part => {
            if (!file)
                printed.write(printed.size, part);
            else if ((stored += part.length) > MOST_STORED)
                throw new Exit("more than 1 GB of files");
            else if (at === undefined) {
                file.file.write(file.at = file.append ? file.file.size : file.at, part);
                file.at += part.length;
            } else
                file.file.write(at, part);
            return part.length;
        }));
        if (printed.size)
            write(fd, printed.read()); // a line as a whole
        return 0;
    }
    const wasi = {
        args_sizes_get: (count, size) => sizes(words, count, size),
        args_get: (list, at) => strings(words, list, at),
        environ_sizes_get: (count, size) => sizes(variables, count, size),
        environ_get: (list, at) => strings(variables, list, at),
        clock_time_get(id, precision, at) {
            set64(at, BigInt(Math.round(((id ? 0 : performance.timeOrigin) + now()) * 1e4)) * 100n);
            return 0;
        },
        random_get(at, size) {
            for (let i = 0; i < size; i += 65536)
                crypto.getRandomValues(bytes(at + i, Math.min(65536, size - i)));
            return 0;
        },
        sched_yield: () => 0,
        poll_oneoff(list, events, count, result) { // waits by looking at the clock
            const until = view().getBigUint64(list + 24, true), absolute = view().getUint16(list + 40, true) & 1;
            const end = Number(until) / 1e6 + (absolute ? 0 : performance.now());
            while (view().getUint8(list + 8) === 0 && performance.now() < end);
            bytes(events, 32).fill(0);
            bytes(events, 8).set(bytes(list, 8));
            set32(result, 1);
            return 0;
        },
        proc_exit(status) {
            throw new Exit(exercise && !status ? "ended before its check" : status);
        },
        fd_close: fd => (open.delete(fd), 0), // also of the -1 that dup() of linux.cpp returns
        fd_fdstat_get(fd, at) {
            if (fd > 3 && !open.has(fd))
                return BADF;
            bytes(at, 24).fill(0);
            view().setUint8(at, fd === 3 ? DIRECTORY : REGULAR); // stdout is no terminal: no progress is printed
            set64(at + 8, ~0n & 0x1fffffffn);
            set64(at + 16, 0x1fffffffn);
            return 0;
        },
        fd_fdstat_set_flags: () => 0,
        fd_filestat_get(fd, at) {
            const file = open.get(fd);
            stat(at, fd === 3 || file?.folder ? DIRECTORY : file ? REGULAR : TERMINAL, file?.file?.size ?? 0);
            return fd > 3 && !file ? BADF : 0;
        },
        fd_filestat_set_size(fd, size) {
            const {file} = open.get(fd) ?? {}, to = Number(size);
            if (!file)
                return BADF;
            if (to > file.size)
                file.write(to - 1, new Uint8Array(1));
            file.bytes.fill(0, to, file.size);
            file.size = to;
            return 0;
        },
        fd_prestat_get: (fd, at) => fd === 3 ? (set32(at, 0), set32(at + 4, 1), 0) : BADF,
        fd_prestat_dir_name: (fd, at) => (bytes(at, 1)[0] = 47, 0),
        fd_seek(fd, offset, whence, result) {
            const file = open.get(fd);
            if (!file)
                return fd < 3 ? 70 : BADF; // ESPIPE
            const at = Number(offset) + [0, file.at, file.file.size][whence];
            if (at < 0)
                return INVAL;
            set64(result, file.at = at);
            return 0;
        },
        fd_sync: () => 0,
        fd_read: (fd, list, count, result) => read(fd, list, count, result),
        fd_pread: (fd, list, count, at, result) => read(fd, list, count, result, Number(at)),
        fd_write: (fd, list, count, result) => put(fd, list, count, result),
        fd_pwrite: (fd, list, count, at, result) => put(fd, list, count, result, Number(at)),
        fd_readdir: (fd, at, size, cookie, result) => (set32(result, 0), 0),
        path_open(fd, look, at, size, create, rights, more, flags, result) {
            const name = path(at, size);
            if (!store.has(name)) {
                if (isFolder(name)) {
                    open.set(unused, {folder: true, at: 0, file: new File});
                    set32(result, unused++);
                    return 0;
                }
                if (!(create & 1))
                    return NOENT;
                store.set(name, new File);
            } else if (create & 4)
                return EXIST;
            const file = store.get(name);
            if (create & 8)
                file.size = 0;
            open.set(unused, {file, at: 0, append: flags & 1});
            set32(result, unused++);
            return 0;
        },
        path_filestat_get(fd, look, at, size, result) {
            const name = path(at, size), file = store.get(name);
            if (!file && !isFolder(name))
                return NOENT;
            stat(result, file ? REGULAR : DIRECTORY, file?.size ?? 0);
            return 0;
        },
        path_create_directory: () => 0,
        path_remove_directory: () => 0,
        path_readlink: () => INVAL,
        path_unlink_file: (fd, at, size) => store.delete(path(at, size)) ? 0 : NOENT,
        path_rename(fd, at, size, to, toAt, toSize) {
            const from = path(at, size), name = path(toAt, toSize);
            if (!store.has(from))
                return NOENT;
            renamed(name, store.get(from).read().slice());
            store.delete(from);
            return 0;
        },
    };
    const playground = {
        name(at, most) {
            const name = new TextEncoder().encode(args.name).subarray(0, most);
            bytes(at, name.length).set(name);
            return name.length;
        },
        // Leaves a fiber: its calls return, and Asyncify saves them. proceed() continues with the next one, and its calls with this one.
        swap(from, to) {
            if (!calls.asyncify_get_state)
                throw new Exit("a thread waits in a kernel that has no stacks for threads");
            if (calls.asyncify_get_state() === REWINDING)
                return calls.asyncify_stop_rewind();
            set32(from + 12, calls.__stack_pointer.value);
            calls.asyncify_start_unwind(from + 16);
            next = to;
        },
        call(kernel) {
            const called = kernel > 0 && kernel < table.length && table.get(kernel);
            called?.apply(null, Array(256).fill("0"));
        },
    };
    // An address beyond 2 GB comes as a negative number.
    const unsigned = one => typeof one === "number" ? one >>> 0 : one;
    const imported = all => new Proxy(all, {get: (all, name) => (...args) => (all[name] ?? (() => NOSYS))(...args.map(unsigned))});
    const instance = new WebAssembly.Instance(module, {wasi_snapshot_preview1: imported(wasi), playground: imported(playground)});
    calls = instance.exports;
    memory = calls.memory;
    table = calls.__indirect_function_table;
    function proceed(fiber) {
        calls.asyncify_stop_unwind();
        const [entry, root, argument, stack] = new Uint32Array(memory.buffer, fiber, 4);
        calls.__stack_pointer.value = stack;
        if (entry)
            set32(fiber, 0);
        else
            calls.asyncify_start_rewind(fiber + 16);
        next = 0;
        root ? table.get(root)(argument) : calls._start();
    }
    let status = 0;
    try {
        calls._start();
        while (next)
            proceed(next);
    } catch (error) {
        if (!(error instanceof Exit))
            throw error;
        status = error.status;
    }
    store.forEach((file, name) => files.set(name, file.read()));
    return status;
}
