// SPDX-License-Identifier: MIT
// Picture files: their names, and that a failed write leaves existing files unchanged. tests/test_common.py
// looks at their contents.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "../../common/file.h"
#include "../../common/lib/image.h"
#include "../../common/options.h"
#include "../../common/random.h"
#include "../../cucc/tests/unit.h"

static char folder[64];

// Makes a new folder and enters it.
static void enter(void) {
    strcpy(folder, "/tmp/image-test-XXXXXX");
    if (!mkdtemp(folder) || chdir(folder) != 0)
        abort();
    options.program = "prog";
}

static int visible(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

// Whether the folder holds exactly these files ("a b "). Removes the folder and its files.
static bool leave(const char *expected) {
    struct dirent **entries;
    char names[1024] = "";
    int n = scandir(folder, &entries, visible, alphasort);
    for (int i = 0; i < n; i++) {
        strcat(strcat(names, entries[i]->d_name), " ");
        remove(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    rmdir(folder);
    if (strcmp(names, expected) != 0)
        fprintf(stderr, "left behind: %s\n", names);
    return strcmp(names, expected) == 0;
}

static off_t length_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    fputs(text, file);
    fclose(file);
}

// Two rows of two pixels: red and green below, blue and white above.
static const unsigned char four[] = {255, 0, 0, 0, 0, 255, 0, 9, 0, 0, 255, 0, 255, 255, 255, 255};
enum { BYTES_OF_FOUR = 11 + 2 * 2 * 3 }; // as .ppm

TEST(names) {
    static const struct {
        const char *path;
        size_t frame;
        const char *name;
        bool sequence;
    } rows[] = {
        {"f-%d.png", 7, "f-7.png", true},
        {"f-%04d.png", 7, "f-0007.png", true},
        {"%09d.png", 12, "000000012.png", true},
        {"f-%02d.png", 12345, "f-12345.png", true},
        {"%%d.ppm", 3, "%3.ppm", true},
        {"%s%02d%d.ppm", 3, "%s03%d.ppm", true},
        {"f-%4d.png", 7, "f-%4d.png", false},
        {"f-%00d.png", 7, "f-%00d.png", false},
        {"f-%14d.png", 7, "f-%14d.png", false},
        {"50%.png", 7, "50%.png", false},
        {"f%n%s%x.png", 7, "f%n%s%x.png", false},
        {"f%", 7, "f%", false},
        {"f%0", 7, "f%0", false},
        {"f%01", 7, "f%01", false},
        {"", 7, "", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *name = image_frame_path(rows[i].path, rows[i].frame);
        EXPECT(strcmp(name, rows[i].name) == 0);
        EXPECT(image_is_sequence(rows[i].path) == rows[i].sequence);
        free(name);
    }
    EXPECT(image_problem("a.ppm") == NULL && image_problem("a.b/c.PpM") == NULL);
    EXPECT(image_problem("ppm") && image_problem("a.ppm/") && image_problem("") && image_problem("a.ppm.gz"));
    EXPECT(strstr(image_problem("a.tiff"), "the name must end in .png, .ppm, "));
    EXPECT(image_is_animation("a.mp4") && image_is_animation("a.GIF"));
    EXPECT(!image_is_animation("a.png") && !image_is_animation("a") && !image_is_animation(""));
    EXPECT(!image_is_animation("%d.gif") && image_is_animation("%x.gif"));
#if HAVE_WEBP
    EXPECT(image_is_animation("a.webp"));
#endif
}

// How attempt() makes a picture.
enum { CHECK = 1, EMPTY = 2, LARGE = 4, LIMITED = 8, UNPRIVILEGED = 16 };
static unsigned char *large;
enum { SIDE = 300 };

// All tests that write to /dev give up root's rights: a bug in image_write could otherwise replace a device
// by a picture, and the tests are the same for every user.
static void give_up_rights(void) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        abort();
}

static void attempt(int how, const char *path) {
    const struct rlimit limit = {50000, 50000};
    if (how & LIMITED)
        setrlimit(RLIMIT_FSIZE, &limit);
    if (how & UNPRIVILEGED)
        give_up_rights();
    if (how & CHECK)
        file_check(path);
    else if (how & LARGE)
        image_write(path, large, SIDE, SIDE);
    else
        image_write(path, four, how & EMPTY ? 0 : 2, 2);
}

static bool fails(int flags, const char *path, const char *reason) {
    char expected[8192];
    struct unit_result r = IN_CHILD(attempt(flags, path));
    snprintf(expected, sizeof(expected), "prog: cannot write %s: %s\n", path, reason);
    if (r.status != 1 || strcmp(r.err, expected) != 0)
        fprintf(stderr, "%s: status %d: %s", path, r.status, r.err);
    return r.status == 1 && strcmp(r.err, expected) == 0 && !*r.out;
}

static bool works(int flags, const char *path) {
    return IN_CHILD(attempt(flags, path)).status == 0;
}

TEST(bad_targets) {
    char longest[300];
    enter();
    memset(longest, 'x', sizeof(longest));
    strcpy(longest + 290, ".ppm");
    mkdir("folder.ppm", 0777);
    put("file", "");
    for (int both = 0; both <= CHECK; both++) {
        EXPECT(fails(both, "no/a.ppm", "No such file or directory"));
        EXPECT(fails(both, "file/a.ppm", "Not a directory"));
        EXPECT(fails(both, "folder.ppm", "Is a directory"));
        EXPECT(fails(both, longest, "File name too long"));
    }
    // No user can create a file in /proc; the reason depends on the system and on the user.
    EXPECT(fails(0, "/proc/a.ppm", strerror(ENOENT)) || fails(0, "/proc/a.ppm", strerror(EACCES)));
    EXPECT(fails(EMPTY, "a.ppm", "an empty picture"));
    EXPECT(fails(0, "a.tiff", image_problem("a.tiff")));
    EXPECT(works(CHECK, "fine.ppm"));
    EXPECT(leave("file folder.ppm "));
}

// A signal while file_check has a temporary file must not leave it behind.
TEST(check_is_not_interrupted) {
    enter();
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t child = fork();
        while (child == 0)
            file_check("a.ppm");
        usleep(2000);
        kill(child, SIGTERM);
        waitpid(child, &status, 0);
        EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
    EXPECT(leave(""));
}

TEST(forbidden_targets) {
    enter();
    put("locked.ppm", "keep");
    chmod("locked.ppm", 0444);
    chmod(".", 0777);
    EXPECT(fails(CHECK | UNPRIVILEGED, "locked.ppm", "Permission denied"));
    EXPECT(fails(UNPRIVILEGED, "locked.ppm", "Permission denied"));
    chmod(".", 0555);
    EXPECT(fails(CHECK | UNPRIVILEGED, "new.ppm", "Permission denied"));
    EXPECT(fails(UNPRIVILEGED, "new.ppm", "Permission denied"));
    chmod(".", 0777);
    EXPECT(length_of("locked.ppm") == 4);
    EXPECT(leave("locked.ppm "));
}

// Two stand-ins for a full disk: a device that is written directly, and a limit on file sizes.
TEST(full_disk) {
    static const char *const endings[] = {
        ".ppm",
#if HAVE_PNG
        ".png",
#endif
#if HAVE_WEBP
        ".webp",
#endif
    };
    char name[16];
    struct stat status;
    // The root folder of a chroot often has the mode 0700, so nobody but root reaches its /dev.
    bool reached = IN_CHILD(give_up_rights(), exit(access("/dev/full", W_OK) != 0)).status == 0;
    if (!reached)
        fprintf(stderr,
                "full_disk: without root's rights /dev/full cannot be reached: only limits are tried\n");
    enter();
    chmod(".", 0777);
    large = big_random_block(SIDE * SIDE * 4);
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        sprintf(name, "full%s", endings[i]);
        EXPECT(symlink("/dev/full", name) == 0);
        EXPECT(!reached || fails(UNPRIVILEGED, name, "No space left on device"));
        EXPECT(!reached || fails(LARGE | UNPRIVILEGED, name, "No space left on device"));
        EXPECT(lstat(name, &status) == 0 && S_ISLNK(status.st_mode));
        remove(name);
        EXPECT(fails(LARGE | LIMITED, name, "File too large"));
        EXPECT(lstat(name, &status) != 0);
        put(name, "keep");
        EXPECT(fails(LARGE | LIMITED, name, "File too large"));
        EXPECT(length_of(name) == 4);
        remove(name);
    }
    EXPECT(symlink("/dev/null", "null.ppm") == 0);
    EXPECT(!reached || works(UNPRIVILEGED, "null.ppm"));
    EXPECT(leave("null.ppm "));
    free(large);
}

// A pipe is written to when a process reads it, also after a check; without a reader the open would not
// return.
TEST(pipes) {
    char got[100];
    enter();
    EXPECT(mkfifo("pipe.ppm", 0600) == 0 && mknod("socket.ppm", S_IFSOCK | 0600, 0) == 0);
    for (int both = 0; both <= CHECK; both++) {
        EXPECT(fails(both, "pipe.ppm", "no process reads this pipe"));
        EXPECT(fails(both, "socket.ppm", "it is neither a file nor a character device nor a pipe"));
    }
    int fd = open("pipe.ppm", O_RDONLY | O_NONBLOCK);
    EXPECT(IN_CHILD({
               struct pollfd reader = {.fd = fd};
               file_check("pipe.ppm");
               poll(&reader, 1, 0);
               if (reader.revents & POLLHUP) // a reader has seen an end
                   _exit(7);
               image_write("pipe.ppm", four, 2, 2);
           }).status == 0);
    EXPECT(read(fd, got, sizeof(got)) == BYTES_OF_FOUR);
    close(fd);
    EXPECT(leave("pipe.ppm socket.ppm "));
}

static NewFile half;

static void begin_half(void) {
    const char *problem = file_begin(&half, "a.svg", ".tmp");
    if (problem)
        abort();
    fputs("half of it", half.stream);
    fflush(half.stream);
}
static void *wait_for_ever(void *unused) {
    for (;;)
        pause();
    return unused;
}
// The system gives a signal for the process to any thread. The handler runs in the thread that writes the
// file, which therefore does not begin another one meanwhile.
static pthread_t writer;

static bool only_in_the_writer(int number) {
    (void)number;
    if (!pthread_equal(pthread_self(), writer))
        _exit(7);
    return false;
}

TEST(an_unfinished_file_is_deleted) {
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    pthread_t thread;
    enter();
    put("a.svg", "keep");
    for (int i = 0; i < 3; i++) {
        signal(numbers[i], SIG_DFL); // started by nohup or a shell, the tests ignore some signals
        struct unit_result r = IN_CHILD({
            begin_half();
            raise(numbers[i]);
        });
        EXPECT(r.status == 128 + numbers[i]);
        r = IN_CHILD({
            writer = pthread_self();
            file_catch_signals(only_in_the_writer);
            begin_half();
            pthread_create(&thread, NULL, wait_for_ever, NULL);
            pthread_kill(thread, numbers[i]);
            wait_for_ever(NULL);
        });
        EXPECT(r.status == 128 + numbers[i]);
    }
    EXPECT(IN_CHILD(begin_half(), quit(9, "an error")).status == 9);
    EXPECT(IN_CHILD(begin_half(), quick_exit(9)).status == 9);
    EXPECT(length_of("a.svg") == 4);
    EXPECT(leave("a.svg "));
}
