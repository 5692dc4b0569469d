/* A transpose, some squares at a time. */

/* to[column * to_row + row] = from[row * from_row + column]. Blocks may overlap: what is written twice is the same. */
static void CONV(transpose)(const T *from, int64_t from_row, int64_t rows, int64_t columns, T *to, int64_t to_row) {
    int64_t done = 0;
    if (rows >= V(SQUARE))
        for (; done + V(SQUARE) <= columns; done += V(SQUARE))
            for (int64_t i = 0; i < rows; i += V(SQUARE)) {
                const int64_t row = i + V(SQUARE) <= rows ? i : rows - V(SQUARE);
                V(square) lines[V(SQUARE)];
                V(transpose)(from + row * from_row + done, from_row, lines);
                for (int64_t j = 0; j < V(SQUARE); j++)
                    V(square_store)(to + (done + j) * to_row + row, lines[j]);
            }
    for (int64_t j = done; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            to[j * to_row + i] = from[i * from_row + j];
}
