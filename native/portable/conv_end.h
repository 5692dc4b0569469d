#undef T
#undef CONV
#undef V
#undef VECTOR
#undef LANES
#undef WIDTH
#undef PIXELS
#undef COLUMNS
