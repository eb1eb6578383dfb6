/* Runs the native kernel without Python, for the sanitizers to watch.
 *
 * Every buffer is exactly as large as its tensor, so that a read or write beyond it by one byte is
 * seen; with an offset, tensors are aligned to their elements and no more. Beside that:
 * - all thread counts give the same bits, and so do all instruction sets that fuse multiply-adds;
 * - an element's result does not depend on where its tensor ends (the tails of vectors and blocks);
 * - half precision is rounded as the compiler rounds it;
 * - tensors are told apart by their layout, and memory that is not there is never read;
 * - without memory for its list of blocks the kernel returns before anything changes.
 */

#include <float.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int allocations_left = -1; /* until one fails; -1: none does */

static int fails(void) { return allocations_left >= 0 && allocations_left-- == 0; }
static void *try_malloc(size_t size) { return fails() ? NULL : malloc(size); }
static void *try_calloc(size_t n, size_t size) { return fails() ? NULL : calloc(n, size); }

#define malloc(size) try_malloc(size)
#define calloc(n, size) try_calloc(n, size)
#define SMALL_WORK 0 /* threads for the smallest */
#include "native.c"
#undef malloc
#undef calloc

#include "tables.h"

#include "conversions.h"
#include "descriptions.h"
#include "passes.h"

int main(void)
{
    run_conversions();
    run_layouts();
    run_misfits();
    run_without_memory();
    run_passes();
    puts("all is well");
    return 0;
}
