/* Counts the instructions of both passes of the native kernel, one by one.
 *
 * A child runs the kernel and stops before, between and after the passes; its parent takes it from
 * stop to stop in single steps. For each kind of state and each instruction set that this CPU has, a
 * line: state, instruction set, and instructions an element of the first and of the second pass.
 */

#define _GNU_SOURCE
#define quad_t system_quad_t /* of sys/types.h */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#undef quad_t

#include "native.c"

enum { ELEMENTS = BLOCK, STEPS_BEFORE = 3 };

static const char *const STATES[] = {[F32] = "float32", [BF16] = "bfloat16", [I8] = "int8"};
static const char *const SETS[] = {"baseline", "avx2", "avx512"};

static void *zeros(void) { return memset(aligned_alloc(64, 4 * ELEMENTS), 0, 4 * ELEMENTS); }

/* Gradients that change from step to step, so that v and m_hat are far from parallel. */
static void new_gradients(float *g, int step)
{
    for (int i = 0; i < ELEMENTS; i++)
        g[i] = (float)((i * 7919 + step * 13) % 1000 - 500) * 1e-4f;
}

static void run(int state)
{
    float step = 0, scales[3][ELEMENTS / STATE_BLOCK], *g = zeros();
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < ELEMENTS / STATE_BLOCK; i++) scales[k][i] = 1e-3f;
    row_t row = {.theta = zeros(),
                 .g = (char *)g,
                 .m = zeros(),
                 .v = zeros(),
                 .s = zeros(),
                 .step = &step,
                 .m_scales = scales[0],
                 .v_scales = scales[1],
                 .s_scales = scales[2],
                 .n = ELEMENTS,
                 .state_type = state};
    const group_t o = {.lr = 1e-3,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-12,
                       .gamma = 0.5,
                       .hidden_scale = 1,
                       .factor = 1,
                       .seed = 1};
    double dots[4] = {0}, mix_ = 0, gain = 0.1;
    for (int k = 0; k < STEPS_BEFORE; k++) {
        new_gradients(g, k);
        hvadam_first(1, &row, &o, dots, 1);
        hvadam_second(1, &row, &o, &mix_, &gain, 1);
        mix_ = 0.7;
    }
    raise(SIGSTOP);
    hvadam_first(1, &row, &o, dots, 1);
    raise(SIGSTOP);
    hvadam_second(1, &row, &o, &mix_, &gain, 1);
    raise(SIGSTOP);
}

static int has_stopped(int status) { return WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP; }

static void count(int state, int set)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(1);
        hvadam_select(set);
        run(state);
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (!has_stopped(status)) {
        fputs("this process may not trace another\n", stderr);
        exit(2);
    }
    printf("%s %s", STATES[state], SETS[set]);
    for (int pass = 0; pass < 2; pass++) {
        long steps = 0;
        do {
            ptrace(PTRACE_SINGLESTEP, child, 0, 0);
            waitpid(child, &status, 0);
            steps++;
        } while (!has_stopped(status) && !WIFEXITED(status));
        printf(" %.2f", (double)steps / ELEMENTS);
    }
    putchar('\n');
    fflush(stdout);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

int main(void)
{
    const int states[] = {F32, BF16, I8};
    for (int set = AVX2; set <= hvadam_select(AVX512); set++)
        for (int k = 0; k < 3; k++) count(states[k], set);
    return 0;
}
