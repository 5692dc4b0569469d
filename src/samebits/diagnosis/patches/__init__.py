"""Changes of the user's source that take a nondeterminism away: values in, values out; no file is touched.

The syntax is read with the standard library's `ast`, and a patch is a list of splices of the file's own text,
so everything else stays to the byte: comments, formatting, line ends and encoding. It is also the grammar of
the very interpreter that runs the script.
"""
