"""Importing the libraries that the modules of this package are for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from samebits.errors import SamebitsError


def library(module: str, package: str) -> Any:
    """Return a module of a library.

    Args:
        module: its name.
        package: what pip calls the library.

    Raises:
        SamebitsError: it is not installed; `integration-missing`.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # the library is there, and lacks something of its own
        message = f"samebits.integrations.{package} needs the package {package}: pip install {package}"
        raise SamebitsError(message, slug="integration-missing") from None
