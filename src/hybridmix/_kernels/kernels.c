/* Compiled kernels of hybridmix, called from Python through ctypes.
 *
 * Everything here has a reference in NumPy, which is used where there is no compiler and
 * which the tests compare with. The functions hold no state and allocate nothing: callers
 * give all memory, and run them in as many threads as they like.
 *
 * The same code is compiled once per instruction set, with vectors of the width of its
 * registers; Python calls the widest one that `hybridmix_level` says the processor has.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Raised when a signature changes; _INTERFACE in __init__.py is the same number. */
#define INTERFACE 3

/* What is left of a variance is at least this share of it: ROUNDING of families/moments. */
#define ROUNDING 1e-14
#define HALF_LOG_2PI 0.9189385332046727418

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Number of entries of a lower triangle, and where its row begins. */
#define TRIANGLE(k) ((k) * ((k) + 1) / 2)

/* Rows that miss different columns, in blocks of WIDTH rows: see CompiledRows. */
typedef struct {
    int64_t n_rows, n_columns;
    int64_t by_missing;            /* whether the systems are over the missing columns */
    const double *values;          /* (blocks, d, WIDTH), zero where missing */
    const uint8_t *observed;       /* (blocks, d, WIDTH) */
    const int64_t *n_observed;     /* (n,) */
    const int64_t *sizes;          /* (blocks,), size k of the systems of a block */
    const int64_t *members;        /* per block (k, WIDTH): columns, and d to fill up */
    const int64_t *first_member;   /* (blocks,), where those of a block begin */
    const int64_t *first_factor;   /* (blocks + 1,), where its factors begin */
} Rows;

/* Frames of sequences side by side: see Packing. */
typedef struct {
    int64_t n_planes, n_states, n_frames, n_times, n_groups;
    const int64_t *sizes;          /* (T, G), lanes of each group at each time */
    const int64_t *offsets;        /* (T, G), their first columns */
} Frames;

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name, VARIANT)

#define VARIANT plain
#define WIDTH 2
#define TARGET
#include "scattered.h"
#include "chains.h"
#undef VARIANT
#undef WIDTH
#undef TARGET

#if defined(__x86_64__)
#define VARIANT avx2
#define WIDTH 4
#define TARGET __attribute__((target("avx2,fma")))
#include "scattered.h"
#include "chains.h"
#undef VARIANT
#undef WIDTH
#undef TARGET

#define VARIANT avx512
#define WIDTH 8
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#include "scattered.h"
#include "chains.h"
#undef VARIANT
#undef WIDTH
#undef TARGET
#endif

EXPORT int64_t hybridmix_interface(void) { return INTERFACE; }

/* Return 2 for processors with AVX-512, 1 for AVX2, 0 for all others. */
EXPORT int64_t hybridmix_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return 2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return 1;
#endif
    return 0;
}
