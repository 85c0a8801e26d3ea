/* Passes over time of hidden Markov models; models/forward_backward.py is the reference
 * and has the formulas. Arrays of states have the shape (P, K, F). A step of time is a run
 * of columns in each group. WIDTH columns at a time fill the vectors; where fewer
 * sequences go on, the states of one column do.
 */
#define V NAME(columns)
typedef double V __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));

/* Return the sums over i of x[i, before] * matrix[i, j], for WIDTH columns. */
TARGET static inline void NAME(move_columns)(
    int64_t n_states, int64_t n_frames, const double *restrict matrix,
    const double *restrict x, V *restrict result)
{
    int64_t j = 0;
    /* Four sums at a time do not wait for each other, and share what they read. */
    for (; j + 4 <= n_states; j += 4) {
        V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        for (int64_t i = 0; i < n_states; i++) {
            V own = *(const V *)(x + i * n_frames);
            const double *row = matrix + i * n_states + j;
            s0 += row[0] * own;
            s1 += row[1] * own;
            s2 += row[2] * own;
            s3 += row[3] * own;
        }
        result[j] = s0;
        result[j + 1] = s1;
        result[j + 2] = s2;
        result[j + 3] = s3;
    }
    for (; j < n_states; j++) {
        V sum = {0};
        for (int64_t i = 0; i < n_states; i++)
            sum += matrix[i * n_states + j] * *(const V *)(x + i * n_frames);
        result[j] = sum;
    }
}

/* The same for one column. */
TARGET static inline void NAME(move_column)(
    int64_t n_states, int64_t n_frames, const double *restrict matrix,
    const double *restrict x, double *restrict result)
{
    for (int64_t j = 0; j < n_states; j++)
        result[j] = x[0] * matrix[j];
    for (int64_t i = 1; i < n_states; i++) {
        double own = x[i * n_frames];
        const double *row = matrix + i * n_states;
        for (int64_t j = 0; j < n_states; j++)
            result[j] += own * row[j];
    }
}

/* Go on from the columns before to WIDTH columns here, of one plane. */
TARGET static inline void NAME(forward_columns)(
    int64_t n_states, int64_t n_frames, const double *transition, const double *emission,
    const double *before, double *here, double *scale, double *scratch)
{
    V *moved = (V *)scratch, total = {0};
    NAME(move_columns)(n_states, n_frames, transition, before, moved);
    for (int64_t j = 0; j < n_states; j++) {
        moved[j] *= *(const V *)(emission + j * n_frames);
        total += moved[j];
    }
    *(V *)scale = total;
    for (int64_t j = 0; j < n_states; j++)
        *(V *)(here + j * n_frames) = moved[j] / total;
}

TARGET static inline void NAME(forward_column)(
    int64_t n_states, int64_t n_frames, const double *transition, const double *emission,
    const double *before, double *here, double *scale, double *moved)
{
    double total = 0.0;
    NAME(move_column)(n_states, n_frames, transition, before, moved);
    for (int64_t j = 0; j < n_states; j++) {
        moved[j] *= emission[j * n_frames];
        total += moved[j];
    }
    *scale = total;
    for (int64_t j = 0; j < n_states; j++)
        here[j * n_frames] = moved[j] / total;
}

/* Fill alpha (P, K, F) and scale (P, F), of which the first frames of all sequences are
 * given. Transitions are (G, P, K, K), from a row to a column. `scratch` has room for
 * K vectors. */
EXPORT TARGET void NAME(chains_forward)(
    const Frames *frames, const double *transition, const double *emission, double *alpha,
    double *scale, double *scratch)
{
    int64_t k = frames->n_states, f = frames->n_frames, n_groups = frames->n_groups;
    for (int64_t plane = 0; plane < frames->n_planes; plane++)
        for (int64_t step = n_groups; step < frames->n_times * n_groups; step++) {
            int64_t size = frames->sizes[step], lane = 0;
            int64_t matrix = step % n_groups * frames->n_planes + plane;
            const double *own = transition + matrix * k * k;
            const double *before = alpha + plane * k * f + frames->offsets[step - n_groups];
            double *here = alpha + plane * k * f + frames->offsets[step];
            double *total = scale + plane * f + frames->offsets[step];
            const double *density = emission + plane * k * f + frames->offsets[step];
            for (; lane + WIDTH <= size; lane += WIDTH)
                NAME(forward_columns)(k, f, own, density + lane, before + lane,
                                      here + lane, total + lane, scratch);
            for (; lane < size; lane++)
                NAME(forward_column)(k, f, own, density + lane, before + lane,
                                     here + lane, total + lane, scratch);
        }
}

/* Go back from WIDTH columns here to the columns before. */
TARGET static inline void NAME(backward_columns)(
    int64_t n_states, int64_t n_frames, const double *transposed, const double *here,
    const double *alpha, double *before, double *total, double *scratch)
{
    V *beta = (V *)scratch, sum = {0};
    NAME(move_columns)(n_states, n_frames, transposed, here, beta);
    for (int64_t i = 0; i < n_states; i++) {
        sum += *(const V *)(alpha + i * n_frames) * beta[i];
        *(V *)(before + i * n_frames) *= beta[i];
    }
    *(V *)total = sum;
}

TARGET static inline void NAME(backward_column)(
    int64_t n_states, int64_t n_frames, const double *transposed, const double *here,
    const double *alpha, double *before, double *total, double *beta)
{
    double sum = 0.0;
    NAME(move_column)(n_states, n_frames, transposed, here, beta);
    for (int64_t i = 0; i < n_states; i++) {
        sum += alpha[i * n_frames] * beta[i];
        before[i * n_frames] *= beta[i];
    }
    *total = sum;
}

/* Multiply `arriving` (P, K, F) by beta, what is to come of each state, and sum alpha times
 * beta over the states, (P, F). Both are done already for the last frames of all
 * sequences. Transitions are those of the forward pass, transposed. */
EXPORT TARGET void NAME(chains_backward)(
    const Frames *frames, const double *transposed, const double *alpha, double *arriving,
    double *totals, double *scratch)
{
    int64_t k = frames->n_states, f = frames->n_frames, n_groups = frames->n_groups;
    for (int64_t plane = 0; plane < frames->n_planes; plane++)
        for (int64_t step = frames->n_times * n_groups - 1; step >= n_groups; step--) {
            int64_t size = frames->sizes[step], lane = 0;
            int64_t matrix = step % n_groups * frames->n_planes + plane;
            int64_t at = plane * k * f + frames->offsets[step - n_groups];
            const double *own = transposed + matrix * k * k;
            const double *here = arriving + plane * k * f + frames->offsets[step];
            double *total = totals + plane * f + frames->offsets[step - n_groups];
            for (; lane + WIDTH <= size; lane += WIDTH)
                NAME(backward_columns)(k, f, own, here + lane, alpha + at + lane,
                                       arriving + at + lane, total + lane, scratch);
            for (; lane < size; lane++)
                NAME(backward_column)(k, f, own, here + lane, alpha + at + lane,
                                      arriving + at + lane, total + lane, scratch);
        }
}

/* Turn the states before WIDTH columns, which hold alpha, into weighted posteriors, and add
 * their products with what arrives here to `sums`, (K, K). */
TARGET static inline void NAME(posterior_columns)(
    int64_t n_states, int64_t n_frames, const double *transposed, const double *here,
    const double *weights, double *before, V *restrict sums, double *scratch)
{
    V *beta = (V *)scratch, own = *(const V *)weights;
    NAME(move_columns)(n_states, n_frames, transposed, here, beta);
    for (int64_t i = 0; i < n_states; i++) {
        V leaving = own * *(const V *)(before + i * n_frames);
        for (int64_t j = 0; j < n_states; j++)
            sums[i * n_states + j] += leaving * *(const V *)(here + j * n_frames);
        *(V *)(before + i * n_frames) = leaving * beta[i];
    }
}

TARGET static inline void NAME(posterior_column)(
    int64_t n_states, int64_t n_frames, const double *transposed, const double *here,
    double weight, double *before, double *restrict sums, double *scratch)
{
    double *beta = scratch, *arriving = scratch + n_states;
    NAME(move_column)(n_states, n_frames, transposed, here, beta);
    for (int64_t j = 0; j < n_states; j++)
        arriving[j] = here[j * n_frames];
    for (int64_t i = 0; i < n_states; i++) {
        double leaving = weight * before[i * n_frames];
        for (int64_t j = 0; j < n_states; j++)
            sums[i * n_states + j] += leaving * arriving[j];
        before[i * n_frames] = leaving * beta[i];
    }
}

/* Turn alpha (P, K, F) into posteriors of the states, weighted by lane (P, n), and sum the
 * products of alpha before and what arrives, `counts` (G, P, K, K), which begin as zeros.
 * The last frames of all sequences are done already. `scratch` has room for K (K + 2)
 * vectors. */
EXPORT TARGET void NAME(chains_posteriors)(
    const Frames *frames, const double *transposed, const double *arriving,
    const double *weights, double *states, double *counts, double *scratch)
{
    int64_t k = frames->n_states, f = frames->n_frames, n_groups = frames->n_groups, n = 0;
    double *working = scratch + k * k * WIDTH;
    for (int64_t group = 0; group < n_groups; group++)
        n += frames->sizes[group];
    for (int64_t plane = 0; plane < frames->n_planes; plane++)
        for (int64_t group = 0; group < n_groups; group++) {
            int64_t matrix = (group * frames->n_planes + plane) * k * k;
            const double *own = transposed + matrix;
            const double *weight = weights + plane * n + frames->offsets[group];
            V *sums = (V *)scratch;
            for (int64_t i = 0; i < k * k; i++)
                sums[i] = (V){0};
            for (int64_t time = 1; time < frames->n_times; time++) {
                int64_t step = time * n_groups + group, lane = 0;
                int64_t size = frames->sizes[step];
                const double *here = arriving + plane * k * f + frames->offsets[step];
                double *before = states + plane * k * f + frames->offsets[step - n_groups];
                for (; lane + WIDTH <= size; lane += WIDTH)
                    NAME(posterior_columns)(k, f, own, here + lane, weight + lane,
                                            before + lane, sums, working);
                for (; lane < size; lane++)
                    NAME(posterior_column)(k, f, own, here + lane, weight[lane],
                                           before + lane, counts + matrix, working);
            }
            for (int64_t i = 0; i < k * k; i++)
                for (int64_t lane = 0; lane < WIDTH; lane++)
                    counts[matrix + i] += sums[i][lane];
        }
}

/* Viterbi: add to scores (P, K, F), which hold log emissions but for the first frames of
 * all sequences, those of the best state before; `origin` (P, K, F) says which one that is,
 * the first of several. `scratch` has room for 2 K numbers. */
EXPORT TARGET void NAME(chains_best)(
    const Frames *frames, const double *log_transition, double *score, int16_t *origin,
    double *scratch)
{
    int64_t k = frames->n_states, f = frames->n_frames, n_groups = frames->n_groups;
    double *best = scratch, *from = scratch + k;
    for (int64_t plane = 0; plane < frames->n_planes; plane++)
        for (int64_t step = n_groups; step < frames->n_times * n_groups; step++) {
            int64_t matrix = step % n_groups * frames->n_planes + plane;
            const double *own = log_transition + matrix * k * k;
            const double *before = score + plane * k * f + frames->offsets[step - n_groups];
            int64_t at = plane * k * f + frames->offsets[step];
            for (int64_t lane = 0; lane < frames->sizes[step]; lane++) {
                for (int64_t j = 0; j < k; j++) {
                    best[j] = before[lane] + own[j];
                    from[j] = 0.0;
                }
                for (int64_t i = 1; i < k; i++) {
                    double here = before[i * f + lane];
                    for (int64_t j = 0; j < k; j++) {
                        double reached = here + own[i * k + j];
                        from[j] = reached > best[j] ? (double)i : from[j];
                        best[j] = reached > best[j] ? reached : best[j];
                    }
                }
                for (int64_t j = 0; j < k; j++) {
                    score[at + j * f + lane] += best[j];
                    origin[at + j * f + lane] = (int16_t)from[j];
                }
            }
        }
}

/* Follow the best states back from the last frames of all sequences, which are given in
 * `states` (P, F). */
EXPORT TARGET void NAME(chains_back)(
    const Frames *frames, const int16_t *origin, int64_t *states)
{
    int64_t k = frames->n_states, f = frames->n_frames, n_groups = frames->n_groups;
    for (int64_t plane = 0; plane < frames->n_planes; plane++)
        for (int64_t step = frames->n_times * n_groups - 1; step >= n_groups; step--) {
            const int64_t *here = states + plane * f + frames->offsets[step];
            int64_t *before = states + plane * f + frames->offsets[step - n_groups];
            const int16_t *from = origin + plane * k * f + frames->offsets[step];
            for (int64_t lane = 0; lane < frames->sizes[step]; lane++)
                before[lane] = from[here[lane] * f + lane];
        }
}
#undef V
