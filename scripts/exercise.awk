# SPDX-License-Identifier: MIT
# Takes the functions that a learner is to write out of a program, or puts them back (scripts/exercise.sh, scripts/grade.sh).
#   awk -v mode=write -v up=../../ -v program=chapterNN/name -f exercise.awk chapterNN/name.cu    the exercise
#   awk -v mode=stars …            the number of stars, or nothing if the program is no exercise
#   awk -v mode=options …          the options for a quick run, of make check
#   awk -v mode=why …              why the program is no exercise, in one line; nothing if it is one
#   awk -v mode=grade -v submission=FILE …    the program with the functions of the submission in place of its own
#
# The functions are those that the comment "// Task:" at the end of the program names, such as "kernel(): Each thread ...". If it
# names none, they are all kernels above the ruler line. The body of a function is taken out. Of main only the calls of CUDA and the launches are taken
# out: statements that begin with HANDLE_ or contain <<<.

function fail(text) { failed = 1; print text; exit 1 }

# Finds the functions in lines[1..n]. Sets found = their number, and for each name_of, first (line of the declaration), open and
# close (lines of the braces), declared (the text before the brace).
function find_functions(lines, n,    i, j, c, d, length_of, depth, declaration, begin, state, line, is_function) {
    found = 0
    depth = 0
    declaration = ""
    begin = 0
    state = "code"
    for (i = 1; i <= n; i++) {
        line = lines[i]
        if (state == "code" && line ~ /^[ \t]*#/) {
            while (lines[i] ~ /\\$/ && i < n) i++
            continue
        }
        if (state == "line") state = "code"
        length_of = length(line)
        for (j = 1; j <= length_of; j++) {
            c = substr(line, j, 1)
            d = substr(line, j, 2)
            if (state == "comment") { if (d == "*/") { state = "code"; j++ } continue }
            if (state == "string" || state == "character") {
                if (c == "\\") j++
                else if (c == (state == "string" ? "\"" : "\047")) state = "code"
                continue
            }
            if (d == "//") break
            if (d == "/*") { state = "comment"; j++; continue }
            if (c == "\"") { state = "string"; continue }
            if (c == "\047" && substr(line, j - 1, 1) !~ /[0-9]/) { state = "character"; continue }
            if (depth == 0) {
                if (c == ";") { declaration = ""; begin = 0; continue }
                if (c == "{") {
                    is_function = 0
                    line_of_open = i
                    text = declaration
                    gsub(/__launch_bounds__[ ]*\([^)]*\)/, "", text)
                    if (text !~ /=/ && match(text, /[A-Za-z_][A-Za-z_0-9]*[ ]*\(/)) {
                        is_function = 1
                        found++
                        name_of[found] = substr(text, RSTART, RLENGTH - 1)
                        sub(/ +$/, "", name_of[found])
                        first[found] = begin
                        open[found] = i
                        declared[found] = declaration
                        on_device[found] = declaration ~ /__(global|device)__/
                        is_kernel[found] = declaration ~ /__global__/
                        returns[found] = declaration !~ /(^|[^A-Za-z_0-9*])void [A-Za-z_]/
                    }
                    depth = 1
                    continue
                }
                if (c ~ /[^ \t]/ && !begin) begin = i
                declaration = declaration c
                continue
            }
            if (c == "{") depth++
            if (c == "}" && --depth == 0) {
                if (is_function) close_of[found] = i
                # The rest of this line belongs to nothing: "} name;" of a struct
                declaration = ""
                begin = 0
            }
        }
        if (depth == 0 && declaration != "") declaration = declaration " "
    }
    if (depth || state == "comment") unbalanced = 1
    if (found && !(found in close_of)) { delete name_of[found]; found-- }
}

# Splits the text of Task: into segment[function], and the general text segment[""]. The line breaks stay, so that no formula is broken.
function split_task(    rows, words, count, n, i, j, key, row) {
    count = split(task, rows, "\n")
    key = ""
    for (i = 1; i <= count; i++) {
        n = split(rows[i], words, " ")
        row = ""
        for (j = 1; j <= n; j++) {
            if (words[j] ~ /^[A-Za-z_][A-Za-z_0-9]*\(\):$/) {
                add_row(key, row)
                row = ""
                key = words[j]
                sub(/\(\):/, "", key)
                named[key] = ++names
            }
            else row = row (row == "" ? "" : " ") words[j]
        }
        add_row(key, row)
    }
}

function add_row(key, row) {
    if (row != "") segment[key] = segment[key] (segment[key] == "" ? "" : "\n") row
}

function wanted(f) { return first[f] < ruler && (names ? name_of[f] in named : is_kernel[f]) && close_of[f] > open[f] }

# Prints a comment of one or more lines.
function comment(text, indent) {
    gsub(/\n/, "\n" indent "// ", text)
    print indent "// " text
}

function indent_of(line) { match(line, /^ */); return RLENGTH }

# Prints main without its calls of CUDA. Successive calls leave one statement that does nothing.
function print_main(f,    i, at, last) {
    last = -1
    for (i = open[f] + 1; i < close_of[f]; i++) {
        if (line_of[i] ~ /^ *HANDLE_/ || line_of[i] ~ /^ *[A-Za-z_0-9<>, ]+<<</) {
            at = indent_of(line_of[i])
            if (at != last) printf "%*s(void)0; // to write\n", at, ""
            last = at
            while (line_of[i] !~ /; *(\/\/.*)?$/ && i < close_of[f]) i++
            continue
        }
        if (line_of[i] ~ /[^ ]/ && line_of[i] !~ /^ *\/\//) last = -1
        print line_of[i]
    }
    print line_of[close_of[f]]
}

function removed_lines(    f, i, sum) {
    for (f = 1; f <= found; f++)
        if (wanted(f))
            for (i = open[f] + 1; i < close_of[f]; i++)
                if (line_of[i] ~ /[^ ]/ && line_of[i] !~ /^ *\/\// && (name_of[f] != "main" || line_of[i] ~ /HANDLE_|<<</)) {
                    sum++
                    if (on_device[f] && line_of[i] ~ /__shared__|__sync|atomic|__threadfence|lock\(|_sync\(/) together = 1
                }
    return sum
}

function include_path(line) {
    if (line !~ /^#include "/) return line
    if (line ~ /^#include "\.\.\//) sub(/"\.\.\//, "\"" up, line)
    else sub(/"/, "\"" up folder "/", line)
    return line
}

# Returns the options of the first run of make check, with a leading space; nothing if a race is expected in that run
function check_options(    i, text) {
    for (i = 1; i < header_end; i++)
        if (line_of[i] ~ /^ \* Check: /) {
            text = line_of[i]
            sub(/^ \* Check: */, " ", text)
            sub(/ \|.*/, "", text)
            return text ~ /\(race\)$/ ? "" : text
        }
}

function write(    i, f, text, said, options, run) {
    for (i = 1; i <= lines; i++) {
        # The comment Task: ends the file, after an empty line.
        if (i == task_begin - 1) return
        if (i == header_end) {
            print " * Exercise: write what the comments \"Task:\" ask for. docs/index.md explains the terms."
            print " *              make my/" program
            print " *              " run
            print " *              make check PROGRAM=my/" program
            print " *          The run says right or wrong. The check needs no GPU; it also finds data races, barriers"
            print " *          that not all threads of a block reach, and accesses beyond an array."
        }
        if (i < header_end && line_of[i] ~ /^ \* Run: /) {
            # Other options may be for variants of the program, in which the kernels of the exercise do not run.
            options = match(line_of[i], / --output [^ ]*$/) ? substr(line_of[i], RSTART) : check_options()
            sub(/bin\/.*/, "bin/my/" program options, line_of[i])
            run = line_of[i]
            sub(/^ \* Run: */, "", run)
        }
        for (f = 1; f <= found; f++)
            if (open[f] == i && wanted(f)) break
        if (f > found) { print include_path(line_of[i]); continue }
        print line_of[i]
        text = segment[name_of[f]]
        if (!said && segment[""] != "") text = segment[""] (text == "" ? "" : "\n" text)
        if (text == "") text = "see " said "()."
        if (!said) said = name_of[f]
        comment("Task: " text, "    ")
        if (name_of[f] == "main") print_main(f)
        else {
            if (returns[f]) print "    return {};"
            print "}"
        }
        i = close_of[f]
    }
}

# The text of function f of the submission, from its declaration to its last line
function text_of(f,    i, all) {
    for (i = first_[f]; i <= close_[f]; i++) all = all sub_line[i] "\n"
    return all
}

function squeeze(text) { gsub(/[ \t]+/, "", text); return text }

function grade(    i, f, s, n, known, place, first_wanted, extra) {
    while ((getline line < submission) > 0) { sub(/\r$/, "", line); sub_line[++n] = line }
    # Keep what find_functions() knows of the program.
    for (f = 1; f <= found; f++) {
        known[name_of[f]] = 1
        if (wanted(f)) { place[name_of[f]] = f; needed++; if (!first_wanted) first_wanted = f }
        p_first[f] = first[f]; p_open[f] = open[f]; p_close[f] = close_of[f]; p_declared[f] = declared[f]; p_name[f] = name_of[f]
    }
    programs_functions = found
    unbalanced = 0
    find_functions(sub_line, n)
    if (unbalanced) fail("its braces or comments are not balanced")
    for (s = 1; s <= found; s++) {
        if (name_of[s] in place) {
            f = place[name_of[s]]
            if (squeeze(declared[s]) != squeeze(p_declared[f])) fail("the declaration of " name_of[s] "() has been changed")
            if (f in by) fail(name_of[s] "() is defined twice")
            by[f] = s
        } else if (!(name_of[s] in known) && declared[s] ~ /__device__/ && declared[s] !~ /__attribute__|[^_]constructor/) {
            helpers[++helper] = s
        } else continue
        for (i = first[s]; i <= close_of[s]; i++)
            if (sub_line[i] ~ /^[ \t]*(#|%:|\?\?=)/ && sub_line[i] !~ /^[ \t]*#[ \t]*pragma unroll/)
                fail("line " i ": no preprocessor directive in what is graded")
            else if (sub_line[i] ~ /asm|__attribute__|_exit|inject_error|extern/ && sub_line[i] !~ /extern __shared__/)
                fail("line " i ": asm, __attribute__, _exit, extern and inject_error are not accepted")
    }
    for (s = 1; s <= found; s++) { first_[s] = first[s]; close_[s] = close_of[s] }
    for (f = 1; f <= programs_functions; f++)
        if (p_name[f] in place && place[p_name[f]] == f && !(f in by)) fail("it has no function " p_name[f] "()")
    for (i = 1; i <= lines; i++) {
        for (f = 1; f <= programs_functions; f++)
            if (p_first[f] == i && f in by) break
        if (f > programs_functions) { print include_path(line_of[i]); continue }
        if (f == first_wanted)
            for (extra = 1; extra <= helper; extra++) printf "%s\n", text_of(helpers[extra])
        printf "%s", text_of(by[f])
        i = p_close[f]
    }
}

{ line_of[++lines] = $0 }
!header_end && /^ \*\/$/ { header_end = FNR }
/^\/\/ Task: / { task_begin = FNR }
task_begin {
    text = $0
    sub(/^\/\/ (Task: )?/, "", text)
    task = task (task == "" ? "" : "\n") text
    if (!/^\/\/ /) misplaced = 1
}
/^\/\/ -+ proof$/ { ruler = FNR }
/^#include "\.\.\/common\/bench\.h"/ { ladder = 1 }
END {
    if (failed) exit 1
    if (!ruler) ruler = lines + 1
    folder = program
    sub(/\/.*/, "", folder)
    if (misplaced) fail(program ".cu: the comment Task: must be the last lines of the file")
    none = task ~ /^none: /
    if (mode == "why") {
        gsub(/\n/, " ", task)
        if (none) print substr(task, 7)
        else if (task == "" && ladder) print "a ladder compares several kernels for one task; the exercise is the program of the book"
        else if (task == "") print "it has no comment \"Task:\""
        exit
    }
    if (mode == "options") {
        print check_options()
        exit
    }
    if (task == "" || none) exit
    split_task()
    find_functions(line_of, lines)
    for (f = 1; f <= found; f++) if (wanted(f)) seen[name_of[f]] = 1
    for (key in named) if (!(key in seen)) fail(program ".cu: Task: names " key "(), which the lesson does not define")
    for (key in seen) any = 1
    if (!any) fail(program ".cu: Task: there is no kernel above the ruler, so it must name a function")
    if (mode == "stars") {
        removed = removed_lines()
        print 1 + (removed > 6) + (removed > 20) + together
    }
    else if (mode == "functions") {
        for (f = 1; f <= found; f++) if (wanted(f)) print name_of[f], on_device[f] ? "device" : "host", returns[f]
    }
    else if (mode == "grade") grade()
    else write()
}
