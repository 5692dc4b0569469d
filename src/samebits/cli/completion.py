"""`samebits completion`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from samebits.cli.command import help_texts, summary
from samebits.cli.registry import COMMANDS, command_named
from samebits.cli.script_parser import CommandParser, ScriptParser
from samebits.cli.terminal import write
from samebits.errors import EXIT_IDENTICAL, SamebitsError
from samebits.interventions.table import INTERVENTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Mark = Mapping[str, str | dict[str, str]]

_SHELLS = ("bash", "zsh", "fish")
_FILES = ("PATH", "FILE")
_FOLDERS = ("DIR", "FOLDER")
_RECORDS = ("A", "B", "RECORD", "RECORD|ENTRY")


class CompletionCommand:
    """Print a script that completes commands and options in a shell.

    The shell reads it when it starts; samebits itself does not run when you press Tab. After an update of
    samebits, write the script again.

    Examples:
      samebits completion bash > ~/.local/share/bash-completion/completions/samebits
      samebits completion zsh > ~/.zfunc/_samebits      # in a folder of $fpath
      samebits completion fish > ~/.config/fish/completions/samebits.fish
    """

    name = "completion"
    has_json_errors = False

    def parser(self) -> CommandParser:
        """Return the parser of the words that follow `completion`."""
        parser = CommandParser(**help_texts(self))
        parser.add_argument("shell", choices=_SHELLS, help="the shell that is to read the script")
        return parser

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read the words that follow `completion`."""
        return self.parser().parse_args(list(arguments))

    def run(self, options: argparse.Namespace) -> int:
        """Print the script.

        Raises:
            SamebitsError: the package that writes it is not installed; `completion-package`.
        """
        try:
            import shtab
        except ImportError:
            message = (
                "the package shtab is not installed; expected it, to write the script: "
                "`pip install 'samebits[completion]'`"
            )
            raise SamebitsError(message, slug="completion-package") from None
        write(shtab.complete(_whole_parser(shtab.FILE, shtab.DIRECTORY), shell=options.shell), sys.stdout)
        return EXIT_IDENTICAL


def _whole_parser(files: Mark, folders: Mark) -> argparse.ArgumentParser:
    """Return one parser of all commands, as shtab wants it.

    Args:
        files: shtab's mark of a value that is a file.
        folders: that of a folder.
    """
    root = argparse.ArgumentParser(prog="samebits", add_help=False)
    root.add_argument("-h", "--help", action="help", help="show this help and exit")
    root.add_argument("--version", action="version", version="", help="show the version and exit")
    add_subparsers: Any = root.add_subparsers  # typed for classes only
    commands = add_subparsers(parser_class=_parser_of)
    helps = {
        action.option_strings[0]: action.help
        for action in command_named("run").parser().actions()
        if action.option_strings
    }
    for name in COMMANDS:
        parser = commands.add_parser(name, command=name, help=summary(command_named(name)))
        if isinstance(parser, ScriptParser):
            parser.add_argument("script", nargs="*", metavar="FILE", help="the script and its arguments")
        for action in parser.actions():
            if "--pin" in action.option_strings:
                action.choices = [each.name for each in INTERVENTIONS]
            if action.help == argparse.SUPPRESS:  # `samebits run --help` explains it
                action.help = helps.get(action.option_strings[0], "")
            _mark(action, files, folders)
    return root


def _parser_of(*, command: str, **_: Any) -> CommandParser:
    """Make the parser of a command in place of the empty one that argparse asks for."""
    return command_named(command).parser()


def _mark(action: Any, files: Mark, folders: Mark) -> None:
    """Mark an option or a position whose value is a file or a folder, which its name in the help tells."""
    if action.metavar in (*_FILES, *_RECORDS):
        action.complete = files
    elif action.metavar in _FOLDERS:
        action.complete = folders
