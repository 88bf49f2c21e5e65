// SPDX-License-Identifier: MIT
// Picture files.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#if HAVE_PNG
#include <png.h>
#endif
#if HAVE_WEBP
#include <webp/encode.h>
#include <webp/mux.h>
#endif
#include "../file.h"
#include "image.h"
#include "../options.h"

#define RATE 25 // frames per second; 1/25 s is a whole number of GIF's 1/100 s and WebP's 1/1000 s

// A row of the table of formats below. add and close return NULL, or the reason of the failure.
struct format {
    const char *ending;
    const char *(*add)(const unsigned char *pixels); // NULL: not in this build
    const char *(*close)(void);                      // NULL: a format for one picture
    const char *missing;                             // the message when it is not in this build
    const char *name, *filter;                       // for ffmpeg; NULL: written without ffmpeg
};

// The file that is open.
static struct {
    const char *path; // as the user gave it
    const struct format *format;
    size_t width, height, frames;
    FILE *pipe;    // to ffmpeg
    NewFile place; // the temporary file
    pid_t ffmpeg;  // the process of ffmpeg; 0: none
    int messages;  // a file in memory for ffmpeg's error messages
} out;

static bool lossy; // whether the frames of a .webp are compressed with loss

// Opens the file of a picture that needs no ffmpeg (PPM, PNG), and sets *rgb to a copy of the
// pixels as the encoders take them: RGB, the top row first. The caller frees it.
static const char *open_still(const unsigned char *pixels, unsigned char **rgb) {
    const char *problem = file_begin(&out.place, out.path, ".tmp");
    unsigned char *to = *rgb = problem ? NULL : malloc(out.width * out.height * 3);
    for (size_t y = out.height; to && y-- > 0;)
        for (size_t x = 0; x < out.width; x++, to += 3)
            memcpy(to, &pixels[(y * out.width + x) * 4], 3);
    return problem || to ? problem : strerror(ENOMEM);
}

static const char *add_ppm(const unsigned char *pixels) {
    unsigned char *rgb;
    const char *problem = open_still(pixels, &rgb);
    if (!problem && (fprintf(out.place.stream, "P6\n%zu %zu\n255\n", out.width, out.height) < 0 ||
                     fwrite(rgb, out.width * 3, out.height, out.place.stream) != out.height))
        problem = strerror(errno);
    free(rgb);
    return problem;
}

#if HAVE_PNG
static const char *add_png(const unsigned char *pixels) {
    static png_image image;
    unsigned char *rgb;
    const char *problem = open_still(pixels, &rgb);
    image = (png_image){.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB};
    image.width = (png_uint_32)out.width;
    image.height = (png_uint_32)out.height;
    if (!problem && !png_image_write_to_stdio(&image, out.place.stream, 0, rgb, 0, NULL))
        problem = ferror(out.place.stream) ? strerror(errno) : image.message;
    free(rgb);
    return problem;
}
#else
#define add_png NULL
#endif

#if HAVE_WEBP
#define WEBP_EXACT_BYTES 5000000 // a lossless animation would be larger: it is compressed with loss

static WebPMux *webp; // the frames so far

// Lossless at the fastest level, or lossy. The lossy pixels of ray_animated and ripple differ by less
// than half a level of 256 on average.
static bool encode_webp(WebPMemoryWriter *memory, const unsigned char *pixels) {
    WebPConfig config;
    WebPPicture picture;
    size_t row = out.width * 4;
    WebPMemoryWriterClear(memory);
    WebPMemoryWriterInit(memory);
    if (!WebPConfigInit(&config) || !WebPConfigLosslessPreset(&config, 0) || !WebPPictureInit(&picture))
        return false;
    if (lossy) {
        config.lossless = 0;
        config.quality = 90;
        config.method = 0; // the fastest
    }
    picture.use_argb = !lossy;
    picture.width = (int)out.width;
    picture.height = (int)out.height;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = memory;
    bool good = WebPPictureImportRGBX(&picture, &pixels[(out.height - 1) * row], -(int)row) &&
                WebPEncode(&config, &picture);
    WebPPictureFree(&picture);
    return good;
}

static const char *add_webp(const unsigned char *pixels) {
    WebPMemoryWriter memory;
    if (out.width > WEBP_MAX_DIMENSION || out.height > WEBP_MAX_DIMENSION)
        return "too large for WebP: at most 16383 pixels a side";
    bool first = !webp;
    WebPMemoryWriterInit(&memory);
    bool good = (webp || (webp = WebPMuxNew())) && encode_webp(&memory, pixels);
    // The first frame decides for all frames, so that the quality does not change within the animation.
    if (good && first && out.frames > 1 && memory.size > WEBP_EXACT_BYTES / out.frames) {
        lossy = true;
        good = encode_webp(&memory, pixels);
    }
    WebPMuxFrameInfo frame = {.bitstream = {memory.mem, memory.size},
                              .duration = 1000 / RATE,
                              .id = WEBP_CHUNK_ANMF,
                              .blend_method = WEBP_MUX_NO_BLEND};
    good = good && WebPMuxPushFrame(webp, &frame, 1) == WEBP_MUX_OK;
    WebPMemoryWriterClear(&memory);
    return good ? NULL : strerror(ENOMEM);
}

static const char *close_webp(void) {
    WebPMuxAnimParams for_ever = {.loop_count = 0};
    WebPData data = {NULL, 0};
    bool good = WebPMuxSetAnimationParams(webp, &for_ever) == WEBP_MUX_OK &&
                WebPMuxAssemble(webp, &data) == WEBP_MUX_OK;
    WebPMuxDelete(webp);
    webp = NULL;
    const char *problem = good ? file_begin(&out.place, out.path, ".tmp") : strerror(ENOMEM);
    if (!problem && fwrite(data.bytes, 1, data.size, out.place.stream) != data.size)
        problem = strerror(errno);
    WebPDataClear(&data);
    return problem;
}
#else
#define add_webp   NULL
#define close_webp NULL
#endif

// Starts ffmpeg with the pipe out.pipe as its standard input, and this descriptor, or the file for messages
// if it is negative, as its standard output. All signals are blocked in it, so that an interrupt from the
// keyboard reaches only this program, which then closes the pipe. Returns 0, or the error.
static int run_ffmpeg(char *const *arguments, int output) {
    int ends[2], error;
    sigset_t all, before;
    posix_spawn_file_actions_t files;
    signal(SIGCHLD, SIG_DFL);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    out.messages = memfd_create("ffmpeg", MFD_CLOEXEC);
    out.pipe = out.messages < 0 ? NULL : fdopen(ends[1], "wb");
    error = out.pipe ? 0 : errno;
    posix_spawn_file_actions_init(&files);
    if (!error && (error = posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO)) == 0 &&
        (error = posix_spawn_file_actions_adddup2(&files, output < 0 ? out.messages : output,
                                                  STDOUT_FILENO)) == 0 &&
        (error = posix_spawn_file_actions_adddup2(&files, out.messages, STDERR_FILENO)) == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = posix_spawnp(&out.ffmpeg, *arguments, &files, NULL, arguments, environ);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    posix_spawn_file_actions_destroy(&files);
    close(ends[0]);
    if (error) {
        close(out.messages);
        out.pipe ? fclose(out.pipe) : close(ends[1]);
    }
    return error;
}

static const char *close_ffmpeg(void) {
    static char text[512] = "ffmpeg: ";
    const size_t start = 8;
    int status = 0;
    bool cut_off = fclose(out.pipe) != 0;
    waitpid(out.ffmpeg, &status, 0);
    ssize_t length = pread(out.messages, text + start, sizeof(text) - start - 1, 0);
    close(out.messages);
    text[start + (length > 0 ? (size_t)length : 0)] = '\0';
    text[strcspn(text, "\n")] = '\0'; // the first message is the cause; later ones are consequences
    if (status == 0 && !cut_off)
        return NULL;
    if (WIFSIGNALED(status))
        sprintf(text + start, "ended by signal %d", WTERMSIG(status));
    else if (!text[start])
        sprintf(text + start, "ended with status %d", WEXITSTATUS(status));
    return text;
}

static bool have_ffmpeg(void) {
    static int works = -1;
    char *arguments[] = {"ffmpeg", "-version", NULL};
    if (works < 0) {
        int error = run_ffmpeg(arguments, -1);
        const bool absent = error == ENOENT || error == EACCES || error == ENOTDIR || error == ENOSYS;
        if (error && !absent) // for example no more processes
            quit(EXIT_FAILURE, "cannot start ffmpeg: %s", strerror(error));
        works = !error && !close_ffmpeg();
    }
    return works;
}

static const char *open_ffmpeg(void) {
    char size[48], bits[24];
    char *arguments[] = {"ffmpeg", "-v", "error", "-xerror", "-y", "-f", "rawvideo",
                         // rgb0: the fourth byte of a pixel is ignored
                         "-pixel_format", "rgb0", "-video_size", size, "-framerate", "25", "-i", "pipe:0",
                         "-vf", (char *)out.format->filter,
                         // bitexact: two runs write the same file, which ffmpeg opens as its standard output,
                         // because it cannot go back in a pipe
                         "-b:v", bits, "-fflags", "+bitexact", "-f", (char *)out.format->name,
                         "file:/proc/self/fd/1", NULL};
    sprintf(size, "%zux%zu", out.width, out.height);
    sprintf(bits, "%zu", 500000 + 6 * out.width * out.height);
    const char *problem = file_begin(&out.place, out.path, ".tmp");
    if (problem)
        return problem;
    int error = run_ffmpeg(arguments, fileno(out.place.stream));
    if (!error)
        return NULL;
    static char text[128];
    snprintf(text, sizeof(text), "cannot start ffmpeg: %s", strerror(error));
    return text;
}

static const char *add_ffmpeg(const unsigned char *pixels) {
    if (fwrite(pixels, out.width * 4, out.height, out.pipe) == out.height)
        return NULL;
    const char *problem = close_ffmpeg();
    return problem ? problem : "ffmpeg: ended too early";
}

// Most videos have one colour sample for 2 x 2 pixels, so odd sides are padded with black.
#define FFMPEG(ending, name, filter)                                                                         \
    { ending, add_ffmpeg, close_ffmpeg, NULL, name, "vflip," filter }
#define VIDEO(ending, name) FFMPEG(ending, name, "pad=ceil(iw/2)*2:ceil(ih/2)*2,format=yuv420p")
#define GIF_PALETTE         "palettegen=stats_mode=single:reserve_transparent=0[p]"

static const struct format formats[] = {
    {".png", add_png, NULL, "cannot write .png: built without libpng (Debian: libpng-dev)", NULL, NULL},
    {".ppm", add_ppm, NULL, NULL, NULL, NULL},
    {".webp", add_webp, close_webp, "cannot write .webp: built without libwebp (Debian: libwebp-dev)", NULL,
     NULL},
    FFMPEG(".gif", "gif", "split[a][b];[a]" GIF_PALETTE ";[b][p]paletteuse=new=1"),
    FFMPEG(".apng", "apng", "format=rgb24"),
    VIDEO(".mp4", "mp4"),
    VIDEO(".webm", "webm"),
    VIDEO(".mkv", "matroska"),
    VIDEO(".mov", "mov"),
    VIDEO(".avi", "avi"),
    VIDEO(".mpg", "mpeg"),
};
enum { FORMATS = sizeof(formats) / sizeof(*formats) };

static const struct format *format_of(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < FORMATS; i++) {
        size_t ending = strlen(formats[i].ending);
        if (length >= ending && strcasecmp(path + length - ending, formats[i].ending) == 0)
            return &formats[i];
    }
    return NULL;
}

const char *image_default_ending(bool animation) {
    if (animation && !image_problem(".webp"))
        return ".webp";
    if (animation && !image_problem(".gif"))
        return ".gif";
    return image_problem(".png") ? ".ppm" : ".png";
}

const char *image_problem(const char *path) {
    const struct format *format = format_of(path);
    if (!format)
        return "the name must end in .png, .ppm, .webp, or, with ffmpeg, in .gif, .apng, .mp4, .webm, .mkv, "
               ".mov, .avi, .mpg";
    if (format->filter && !have_ffmpeg())
        return "needs ffmpeg, which is not installed (Debian: ffmpeg)";
    return format->add ? NULL : format->missing;
}

char *image_frame_path(const char *path, size_t frame) {
    // The part of the path that stands for the number: from `number` to `end`, `width` digits at least
    const char *number = path + strlen(path), *end = number;
    int width = 1;
    for (const char *c = path; number == end && (c = strchr(c, '%')); c++) {
        bool wide = c[1] == '0' && c[2] >= '1' && c[2] <= '9';
        const char *d = c + (wide ? 3 : 1);
        if (*d == 'd') {
            number = c;
            end = d + 1;
            width = wide ? c[2] - '0' : 1;
        }
    }
    char *name;
    int length = number == end
                     ? asprintf(&name, "%s", path)
                     : asprintf(&name, "%.*s%0*zu%s", (int)(number - path), path, width, frame, end);
    if (length < 0)
        quit(EXIT_FAILURE, "out of memory");
    return name;
}

bool image_is_sequence(const char *path) {
    char *name = image_frame_path(path, 0);
    bool differs = strcmp(name, path) != 0;
    free(name);
    return differs;
}

bool image_is_animation(const char *path) {
    const struct format *format = format_of(path);
    return format && format->close && !image_is_sequence(path);
}

bool image_is_lossy(void) {
    return lossy;
}

static void must(const char *path, const char *problem) {
    if (problem) {
        file_discard(&out.place);
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
    }
}

void image_open(const char *path, size_t width, size_t height, size_t frames) {
    must(path, width == 0 || height == 0 ? "an empty picture" : image_problem(path));
    out.path = path;
    out.format = format_of(path);
    out.width = width;
    out.height = height;
    out.frames = frames;
    lossy = false;
    if (out.format->filter)
        must(path, open_ffmpeg());
}

void image_add(const unsigned char *pixels) {
    must(out.path, out.format->add(pixels));
}

void image_close(void) {
    must(out.path, out.format->close ? out.format->close() : NULL);
    must(out.path, file_end(&out.place));
}

void image_write(const char *path, const unsigned char *pixels, size_t width, size_t height) {
    image_open(path, width, height, 1);
    image_add(pixels);
    image_close();
}
