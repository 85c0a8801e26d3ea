/* Gaussian algebra for rows that miss different columns; families/scattered.py is the
 * reference and has the formulas. A vector holds the same entry of WIDTH rows, so that
 * nothing is ever shuffled between its lanes; each row's small system is one lane of the
 * triangles below. Vectors are passed by pointer only: by value, the calling convention
 * would depend on the instruction set.
 */
#define V NAME(vector)
typedef double V __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));

/* Collect the lower triangles of WIDTH systems from a matrix (d + 1, d + 1) whose last row
 * and column are zero. Systems that are smaller than `k` end in rows of the identity. */
TARGET static inline void NAME(gather)(
    int64_t d, int64_t k, const double *matrix, const int64_t *members, V *system)
{
    for (int64_t a = 0; a < k; a++) {
        double *row = (double *)(system + TRIANGLE(a));
        for (int w = 0; w < WIDTH; w++) {
            const double *from = matrix + members[a * WIDTH + w] * (d + 1);
            for (int64_t b = 0; b <= a; b++)
                row[b * WIDTH + w] = from[members[b * WIDTH + w]];
            if (members[a * WIDTH + w] == d)
                row[a * WIDTH + w] = 1.0;
        }
    }
}

/* Replace systems by their Cholesky factors, with inverses on the diagonal, and add half
 * of their log determinants to `half`. */
TARGET static inline void NAME(factorise)(int64_t k, V *system, V *half)
{
    V product = {0};
    product += 1.0;
    for (int64_t a = 0; a < k; a++) {
        V *row = system + TRIANGLE(a);
        V rest = row[a], least = ROUNDING * rest;
        int64_t b = 0;
        /* Four columns at a time, so that their sums do not wait for each other. */
        for (; b + 4 <= a; b += 4) {
            const V *f0 = system + TRIANGLE(b), *f1 = system + TRIANGLE(b + 1);
            const V *f2 = system + TRIANGLE(b + 2), *f3 = system + TRIANGLE(b + 3);
            V s0 = row[b], s1 = row[b + 1], s2 = row[b + 2], s3 = row[b + 3];
            for (int64_t c = 0; c < b; c++) {
                V own = row[c];
                s0 -= own * f0[c];
                s1 -= own * f1[c];
                s2 -= own * f2[c];
                s3 -= own * f3[c];
            }
            s0 *= f0[b];
            s1 = (s1 - s0 * f1[b]) * f1[b + 1];
            s2 = (s2 - s0 * f2[b] - s1 * f2[b + 1]) * f2[b + 2];
            s3 = (s3 - s0 * f3[b] - s1 * f3[b + 1] - s2 * f3[b + 2]) * f3[b + 3];
            row[b] = s0;
            row[b + 1] = s1;
            row[b + 2] = s2;
            row[b + 3] = s3;
            rest -= s0 * s0 + s1 * s1 + s2 * s2 + s3 * s3;
        }
        for (; b < a; b++) {
            const V *other = system + TRIANGLE(b);
            V sum = row[b];
            for (int64_t c = 0; c < b; c++)
                sum -= row[c] * other[c];
            sum *= other[b];
            row[b] = sum;
            rest -= sum * sum;
        }
        for (int w = 0; w < WIDTH; w++)
            rest[w] = rest[w] < least[w] ? least[w] : rest[w];
        product *= rest;
        for (int w = 0; w < WIDTH; w++)
            rest[w] = sqrt(rest[w]);
        row[a] = 1.0 / rest;
        /* One logarithm for four pivots; more of them might overflow. */
        if (a % 4 == 3 || a == k - 1)
            for (int w = 0; w < WIDTH; w++) {
                (*half)[w] += 0.5 * log(product[w]);
                product[w] = 1.0;
            }
    }
}

/* Solve systems with given factors for a side (k,), in place; return in `quadratic` the
 * inner product of side and solution. */
TARGET static inline void NAME(solve)(
    int64_t k, const V *factors, V *side, V *quadratic)
{
    V sum = {0};
    for (int64_t a = 0; a < k; a++) {
        const V *row = factors + TRIANGLE(a);
        V rest = side[a];
        for (int64_t b = 0; b < a; b++)
            rest -= row[b] * side[b];
        rest *= row[a];
        side[a] = rest;
        sum += rest * rest;
    }
    *quadratic = sum;
    for (int64_t a = k - 1; a >= 0; a--) {
        const V *row = factors + TRIANGLE(a);
        V solved = side[a] * row[a];
        side[a] = solved;
        for (int64_t b = 0; b < a; b++)
            side[b] -= row[b] * solved;
    }
}

/* Multiply a matrix (d + 1, d + 1), but for its last row and column, by vectors (d,). */
TARGET static inline void NAME(multiply)(
    int64_t d, const double *matrix, const V *restrict x, V *restrict result)
{
    int64_t i = 0;
    for (; i + 4 <= d; i += 4) {
        const double *q0 = matrix + i * (d + 1), *q1 = q0 + d + 1;
        const double *q2 = q1 + d + 1, *q3 = q2 + d + 1;
        V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (int64_t c = 0; c < d; c++) {
            V own = x[c];
            s0 += q0[c] * own;
            s1 += q1[c] * own;
            s2 += q2[c] * own;
            s3 += q3[c] * own;
        }
        result[i] = s0;
        result[i + 1] = s1;
        result[i + 2] = s2;
        result[i + 3] = s3;
    }
    for (; i < d; i++) {
        V sum = {0};
        for (int64_t c = 0; c < d; c++)
            sum += matrix[i * (d + 1) + c] * x[c];
        result[i] = sum;
    }
}

/* Return in `filled` what the rows of a block are expected to be, minus the mean, and in
 * `quadratic` the quadratic forms of what is observed. `error` is zero where missing. */
TARGET static inline void NAME(regress)(
    const Rows *rows, int64_t k, const int64_t *members, const double *matrix,
    const V *factors, const V *error, V *side, V *inner, V *filled, V *quadratic)
{
    int64_t d = rows->n_columns;
    if (rows->by_missing)
        NAME(multiply)(d, matrix, error, side);
    const double *from = (const double *)(rows->by_missing ? side : error);
    for (int64_t a = 0; a < k; a++)
        for (int w = 0; w < WIDTH; w++) {
            int64_t column = members[a * WIDTH + w];
            inner[a][w] = column < d ? from[column * WIDTH + w] : 0.0;
        }
    NAME(solve)(k, factors, inner, quadratic);
    if (rows->by_missing) {
        V whole = {0};
        for (int64_t i = 0; i < d; i++) {
            whole += side[i] * error[i];
            filled[i] = error[i];
        }
        *quadratic = whole - *quadratic;
    } else {
        memset(side, 0, d * sizeof(V));
    }
    double *to = (double *)(rows->by_missing ? filled : side);
    double sign = rows->by_missing ? -1.0 : 1.0;
    for (int64_t a = 0; a < k; a++)
        for (int w = 0; w < WIDTH; w++)
            if (members[a * WIDTH + w] < d)
                to[members[a * WIDTH + w] * WIDTH + w] = sign * inner[a][w];
    if (!rows->by_missing)
        NAME(multiply)(d, matrix, side, filled);
}

/* Evaluate rows: log densities (J, n), expected rows (J, blocks, d, WIDTH), factors
 * (G, first_factor[blocks]) and half log determinants of what is observed (G, n).
 * Matrices (G, d + 1, d + 1) are precisions or covariances; G is J or 1. `scratch` has
 * room for 4 d + 1 vectors. */
EXPORT TARGET void NAME(scattered_evaluate)(
    const Rows *rows, int64_t n_components, int64_t n_covariances, const double *means,
    const double *matrices, const double *half_log_determinants, double *log_densities,
    double *filled, double *factors, double *halves, double *scratch)
{
    int64_t n = rows->n_rows, d = rows->n_columns, n_blocks = (n + WIDTH - 1) / WIDTH;
    int64_t n_factors = rows->first_factor[n_blocks];
    V *mask = (V *)scratch, *error = mask + d, *side = error + d, *inner = side + d;
    for (int64_t block = 0; block < n_blocks; block++) {
        int64_t k = rows->sizes[block], first = block * WIDTH;
        int64_t used = n - first < WIDTH ? n - first : WIDTH;
        const int64_t *members = rows->members + rows->first_member[block];
        const V *x = (const V *)rows->values + block * d;
        const uint8_t *observed = rows->observed + first * d;
        for (int64_t i = 0; i < d; i++)
            for (int w = 0; w < WIDTH; w++)
                mask[i][w] = observed[i * WIDTH + w];
        V half = {0};
        for (int64_t j = 0; j < n_components; j++) {
            int64_t g = n_covariances == 1 ? 0 : j;
            const double *matrix = matrices + g * (d + 1) * (d + 1);
            const double *mean = means + j * d;
            V *own = (V *)(factors + g * n_factors + rows->first_factor[block]);
            if (j < n_covariances) {
                NAME(gather)(d, k, matrix, members, own);
                for (int w = 0; w < WIDTH; w++)
                    half[w] = rows->by_missing ? half_log_determinants[g] : 0.0;
                NAME(factorise)(k, own, &half);
                for (int w = 0; w < used; w++)
                    halves[g * n + first + w] = half[w];
            }
            for (int64_t i = 0; i < d; i++)
                error[i] = (x[i] - mean[i]) * mask[i];
            V *expected = (V *)filled + (j * n_blocks + block) * d;
            V quadratic;
            NAME(regress)(rows, k, members, matrix, own, error, side, inner, expected,
                          &quadratic);
            for (int64_t i = 0; i < d; i++)
                expected[i] += mean[i];
            for (int w = 0; w < used; w++)
                log_densities[j * n + first + w] =
                    -half[w] - HALF_LOG_2PI * rows->n_observed[first + w] -
                    0.5 * quadratic[w];
        }
    }
}

TARGET static inline double NAME(sum)(const V *x)
{
    double sum = 0.0;
    for (int w = 0; w < WIDTH; w++)
        sum += (*x)[w];
    return sum;
}

/* Invert lower triangular factors, whose diagonal is inverted already. */
TARGET static inline void NAME(invert)(int64_t k, const V *factors, V *inverses)
{
    for (int64_t a = 0; a < k; a++) {
        const V *row = factors + TRIANGLE(a);
        V *result = inverses + TRIANGLE(a);
        int64_t b = 0;
        for (; b + 4 <= a; b += 4) {
            V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
            const V *t = inverses + TRIANGLE(b) + b;
            s0 += row[b] * t[0];
            t += b + 1;
            s0 += row[b + 1] * t[0];
            s1 += row[b + 1] * t[1];
            t += b + 2;
            s0 += row[b + 2] * t[0];
            s1 += row[b + 2] * t[1];
            s2 += row[b + 2] * t[2];
            for (int64_t c = b + 3; c < a; c++) {
                V own = row[c];
                t = inverses + TRIANGLE(c) + b;
                s0 += own * t[0];
                s1 += own * t[1];
                s2 += own * t[2];
                s3 += own * t[3];
            }
            result[b] = -s0 * row[a];
            result[b + 1] = -s1 * row[a];
            result[b + 2] = -s2 * row[a];
            result[b + 3] = -s3 * row[a];
        }
        for (; b < a; b++) {
            V sum = {0};
            for (int64_t c = b; c < a; c++)
                sum += row[c] * inverses[TRIANGLE(c) + b];
            result[b] = -sum * row[a];
        }
        result[a] = row[a];
    }
}

/* Add the inverses of the systems, with weights, to the cells of a lower triangle
 * (d + 1, d + 1) that they belong to. */
TARGET static inline void NAME(spread)(
    int64_t d, int64_t k, const int64_t *members, const V *inverses, const V *weights,
    double *total)
{
    for (int64_t a = 0; a < k; a++)
        for (int64_t b = 0; b <= a; b += 4) {
            int64_t some = a + 1 - b < 4 ? a + 1 - b : 4;
            V sums[4] = {{0}, {0}, {0}, {0}};
            if (some == 4)
                for (int64_t c = a; c < k; c++) {
                    const V *row = inverses + TRIANGLE(c);
                    for (int u = 0; u < 4; u++)
                        sums[u] += row[a] * row[b + u];
                }
            else
                for (int64_t c = a; c < k; c++) {
                    const V *row = inverses + TRIANGLE(c);
                    for (int u = 0; u < some; u++)
                        sums[u] += row[a] * row[b + u];
                }
            for (int u = 0; u < some; u++) {
                V weighted = sums[u] * *weights;
                for (int w = 0; w < WIDTH; w++)
                    total[members[a * WIDTH + w] * (d + 1) +
                          members[(b + u) * WIDTH + w]] += weighted[w];
            }
        }
}

/* Add what N components say of a block: expected rows with weights to `firsts` (N, d), and
 * their products to the lower triangle `products`. Several components at a time save reading
 * and writing the products. Return whether any weight is not zero. */
#define ADD_ROWS(N)                                                                      \
    TARGET static inline int NAME(add_rows_##N)(                                         \
        int64_t d, int64_t n, int64_t used, int64_t stride, const double *weights,       \
        const V *x, V *restrict firsts, V *restrict products, V *shared)                 \
    {                                                                                    \
        V own[N];                                                                        \
        int is_any = 0;                                                                  \
        for (int u = 0; u < N; u++) {                                                    \
            V weight = {0};                                                              \
            if (used == WIDTH)                                                           \
                weight = *(const V *)(weights + u * n);                                  \
            else                                                                         \
                for (int64_t w = 0; w < used; w++)                                       \
                    weight[w] = weights[u * n + w];                                      \
            for (int w = 0; w < WIDTH; w++)                                              \
                is_any |= weight[w] != 0.0;                                              \
            own[u] = weight;                                                             \
        }                                                                                \
        if (!is_any)                                                                     \
            return 0;                                                                    \
        for (int u = 0; u < N; u++)                                                      \
            *shared += own[u];                                                           \
        for (int64_t i = 0; i < d; i++) {                                                \
            V scaled[N], *row = products + TRIANGLE(i);                                  \
            for (int u = 0; u < N; u++) {                                                \
                scaled[u] = own[u] * x[u * stride + i];                                  \
                firsts[u * d + i] += scaled[u];                                          \
            }                                                                            \
            for (int64_t c = 0; c <= i; c++) {                                           \
                V sum = row[c];                                                          \
                for (int u = 0; u < N; u++)                                              \
                    sum += scaled[u] * x[u * stride + c];                                \
                row[c] = sum;                                                            \
            }                                                                            \
        }                                                                                \
        return 1;                                                                        \
    }
ADD_ROWS(1)
ADD_ROWS(4)
#undef ADD_ROWS

/* Add weighted sums: of expected rows to `first` (J, d), of their products to the lower
 * triangles of `second` (G, d, d), and of the inverses of the systems to those of
 * `inverse_sums` (G, d + 1, d + 1). Weights (J, n) may be negative. `scratch` has room for
 * TRIANGLE(k) + TRIANGLE(d) + J d vectors, for the largest k. */
EXPORT TARGET void NAME(scattered_accumulate)(
    const Rows *rows, int64_t n_components, int64_t n_covariances, const double *weights,
    const double *filled, const double *factors, double *first, double *second,
    double *inverse_sums, double *scratch)
{
    int64_t n = rows->n_rows, d = rows->n_columns, n_blocks = (n + WIDTH - 1) / WIDTH;
    int64_t n_factors = rows->first_factor[n_blocks], stride = n_blocks * d;
    V *products = (V *)scratch, *inverses = products + TRIANGLE(d);
    /* Lanes are summed at the end, not for every block. */
    V *firsts = inverses + TRIANGLE(rows->sizes[n_blocks - 1]);
    memset(firsts, 0, n_components * d * sizeof(V));
    for (int64_t g = 0; g < n_covariances; g++) {
        int64_t start = n_covariances == 1 ? 0 : g;
        int64_t stop = n_covariances == 1 ? n_components : g + 1;
        memset(products, 0, TRIANGLE(d) * sizeof(V));
        for (int64_t block = 0; block < n_blocks; block++) {
            int64_t at = block * WIDTH, used = n - at < WIDTH ? n - at : WIDTH;
            int64_t k = rows->sizes[block], j = start;
            V shared = {0};
            int is_any = 0;
            const V *x = (const V *)filled + block * d;
            for (; j + 4 <= stop; j += 4)
                is_any |= NAME(add_rows_4)(d, n, used, stride, weights + j * n + at,
                                           x + j * stride, firsts + j * d, products,
                                           &shared);
            for (; j < stop; j++)
                is_any |= NAME(add_rows_1)(d, n, used, stride, weights + j * n + at,
                                           x + j * stride, firsts + j * d, products,
                                           &shared);
            if (!is_any)
                continue;
            const V *own = (const V *)(factors + g * n_factors + rows->first_factor[block]);
            NAME(invert)(k, own, inverses);
            NAME(spread)(d, k, rows->members + rows->first_member[block], inverses,
                         &shared, inverse_sums + g * (d + 1) * (d + 1));
        }
        for (int64_t i = 0; i < d; i++)
            for (int64_t c = 0; c <= i; c++)
                second[(g * d + i) * d + c] += NAME(sum)(products + TRIANGLE(i) + c);
    }
    for (int64_t i = 0; i < n_components * d; i++)
        first[i] += NAME(sum)(firsts + i);
}
#undef V
