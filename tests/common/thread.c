// SPDX-License-Identifier: MIT
// Host threads: waiting, cancelling, and a thread that cannot be started.
#define _GNU_SOURCE
#include "../../common/thread.h"
#include "../../cucc/tests/unit.h"

static CUT_THREADPROC square(void *data) {
    int *value = data;
    *value *= *value;
    CUT_THREADEND;
}

static CUT_THREADPROC slow(void *data) {
    usleep(50000);
    *(volatile bool *)data = true;
    CUT_THREADEND;
}

// The slow thread is the first, the middle, the last one.
TEST(each_is_waited_for) {
    enum { N = 3 };
    for (int late = 0; late < N; late++) {
        CUTThread threads[N];
        int values[N] = {3, 3, 3};
        volatile bool done = false;
        for (int i = 0; i < N; i++)
            threads[i] = i == late ? start_thread(slow, (void *)&done) : start_thread(square, &values[i]);
        wait_for_threads(threads, N);
        EXPECT(done && values[(late + 1) % N] == 9);
    }
}

static CUT_THREADPROC forever(void *data) {
    (void)data;
    for (;;)
        pause();
    CUT_THREADEND;
}

TEST(destroy) {
    destroy_thread(start_thread(forever, NULL));
}

static void too_many(void) {
    pthread_attr_t attributes;
    // A stack larger than the address space: the system cannot start the thread.
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)1 << 60) != 0 ||
        pthread_setattr_default_np(&attributes) != 0)
        exit(77);
    destroy_thread(start_thread(forever, NULL));
}

TEST(refused) {
    struct unit_result r = IN_CHILD(too_many());
    EXPECT(r.status == 1);
    EXPECT(strstr(r.err, ": cannot start a thread: "));
}
