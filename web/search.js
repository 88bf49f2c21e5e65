// SPDX-License-Identifier: MIT
// The search box of each page. Below this text make site calls search() with rows of name, title, address, more text, and sections of
// courses, which come after those of the book. A word is found in a row if it occurs there, or, where no row has it, if a word of the row
// begins with it after one mistake. The rows with most words are shown. The arrows lead through the results, Enter to the first one.
"use strict";

function search(rows) {
    const folder = document.currentScript.src.replace(/[^/]*$/, ""), form = document.createElement("form");
    form.setAttribute("role", "search");
    form.innerHTML = `<input type="search" placeholder="program, term, section" autocomplete="off" aria-label="search">
        <span role="status"></span><ul></ul>`;
    document.querySelector("header").append(form);
    const [input, count, list] = form.children;
    const IGNORED = new Set("a an and are can do does for how i in is it of on or the to two what with".split(" "));

    // Whether a is the beginning of b with a letter too many, a letter too few, another letter, or two exchanged
    function near(a, b) {
        let i = 0;
        while (i < a.length && a[i] === b[i])
            i++;
        const rest = (n, m) => b.slice(i + m).startsWith(a.slice(i + n));
        return rest(1, 0) || rest(0, 1) || rest(1, 1) || a[i] === b[i + 1] && a[i + 1] === b[i] && rest(2, 2);
    }

    // 0 to 5: where a row has a word; the name begins after its chapter
    function place([name, title, , more = "", courses = ""], word) {
        const own = name.toLowerCase().replace(/.*\/|^_+/g, "");
        if (own.includes(word))
            return own === word ? 0 : own.startsWith(word) ? 1 : 2;
        const begins = text => ` ${text}`.toLowerCase().includes(` ${word}`);
        return `${name} ${title}`.toLowerCase().includes(word) ? 3 : begins(more) ? 4 : begins(courses) ? 4.5 : 5;
    }

    function find() {
        const typed = input.value.toLowerCase().split(/\s+/).filter(Boolean).map(word => word.replace(/(?<=...)s$/, ""));
        const asked = typed.filter(word => !IGNORED.has(word));
        let best = 1;
        const words = asked.length ? asked : typed, known = words.map(word => rows.some(row => place(row, word) < 5));
        const scored = rows.map(row => {
            const places = words.map((word, i) => known[i] || word.length < 5 ? place(row, word)
                : near(word, row[0].toLowerCase().replace(/.*\//, "")) ? 1
                : `${row[0]} ${row[1]}`.toLowerCase().split(/[^a-z0-9]+/).some(one => near(word, one)) ? 3 : 5);
            const has = places.filter(at => at < 5).length;
            best = Math.max(best, has);
            const section = words.length > 1 && row[4]?.toLowerCase().includes(words.join(" ")); // such as Kernel 3
            return {row, has, sum: places.reduce((sum, at) => sum + at, section ? -3 : 0)};
        });
        const found = scored.filter(({has}) => has === best).sort((a, b) => a.sum - b.sum).map(({row}) => row);
        count.textContent = words.length ? `${found.length} found` : "";
        list.replaceChildren(...found.slice(0, 12).map(([name, title, address]) => {
            const item = document.createElement("li"), link = document.createElement("a");
            item.append(Object.assign(link, {href: folder + address, textContent: name}), title && ` ${title}`);
            return item;
        }));
    }

    input.oninput = find;
    form.onsubmit = event => { event.preventDefault(); list.querySelector("a")?.click(); };
    form.onkeydown = event => {
        const stops = [input, ...list.querySelectorAll("a")], step = {ArrowDown: 1, ArrowUp: stops.length - 1}[event.key];
        if (step) {
            event.preventDefault();
            stops[(stops.indexOf(document.activeElement) + step) % stops.length].focus();
        }
    };
}
