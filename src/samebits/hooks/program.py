"""The packages that are the program that runs: a console script's, or those of `python -m package`.

Lines of installed packages are no sites: they are a library's. Where an installed package is the program, its
lines are: the script that starts it says no more than `sys.exit(main())`.
"""

from __future__ import annotations


class Program:
    """The program of this process.

    Attributes:
        folders: of its packages, real paths that end in a separator; the path of a module that is one file.
    """

    def __init__(self) -> None:
        self.folders: tuple[str, ...] = ()


PROGRAM = Program()
"""Set before a script begins; a process has one."""
