"""Changes of the user's source that remove a nondeterminism: values in, values out; no file is touched.

The standard library's `ast` reads the syntax, with the grammar of the interpreter that runs the script. A
patch is a list of splices of the file's own text, so all else stays to the byte: comments, formatting, line
ends and encoding.
"""
