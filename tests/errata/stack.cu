// SPDX-License-Identifier: MIT
// Class notes: a sort by one bit with two arrays of n ints on the stack.
#include <stdio.h>
#include <stdlib.h>

static int smallest(const int *in, int n) {
    int zeros[n], ones[n], z = 0, o = 0;
    for (int i = 0; i < n; i++)
        in[i] & 1 ? ones[o++] = in[i] : zeros[z++] = in[i];
    return z ? zeros[0] : ones[0];
}

int main(int, char **argv) {
    int n = atoi(argv[1]), *in = (int *)malloc(n * sizeof(int));
    for (int i = 0; i < n; i++)
        in[i] = i;
    printf("%d\n", smallest(in, n));
    free(in);
}
