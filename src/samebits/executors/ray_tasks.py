"""Tasks of Ray: each call is one task; the working folder is sent to the cluster."""

from __future__ import annotations

import math
import os
import sys
import threading
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, TextIO, cast

from samebits.errors import SamebitsError
from samebits.executors.jobs import lost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NUMBERS = ("num_cpus", "num_gpus")
_ADDRESS = "address"
_NOT_SENT = [".samebits", ".git", ".venv", "__pycache__"]
_STORE_BYTES = 100_000_000  # of a cluster that is started here; results are records


class RayExecutor:
    """Makes each call in a task of a Ray cluster.

    Args:
        options: `address` of the cluster (by default the one that `RAY_ADDRESS` names or that runs here;
            `local` starts one), `num_cpus` and `num_gpus` of each run, or the name of a custom resource and
            how much of it.

    Raises:
        SamebitsError: ray is not installed, or there is no cluster (`executor-unavailable`); a value is no
            number (`usage`).
    """

    shares_files = False
    has_folder = False

    def __init__(self, options: Mapping[str, str]) -> None:
        resources = {name: _number(name, text) for name, text in options.items() if name != _ADDRESS}
        try:
            import ray
        except ImportError:
            message = "--executor ray needs ray; install it with: pip install 'samebits[ray]'"
            raise SamebitsError(message, slug="executor-unavailable") from None
        self._ray: Any = ray
        own = {name: value for name, value in resources.items() if name in _NUMBERS}
        custom = {name: value for name, value in resources.items() if name not in _NUMBERS}
        # A thread of Ray prints messages of the cluster to stdout, where JSON may be.
        self._output = redirect_stdout(cast("TextIO", _MainOutput(sys.stdout)))
        self._options = {"num_cpus": 1, **own, "resources": custom or None, "max_retries": 0}
        address = options.get(_ADDRESS, "auto")
        size = {"object_store_memory": _STORE_BYTES} if address == "local" else {}
        # A warning about idle accelerators is not for the user of samebits.
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            self._ray.init(
                address=address,
                runtime_env={"working_dir": os.getcwd(), "excludes": _NOT_SENT},
                include_dashboard=None if address != "local" else False,
                log_to_driver=False,
                logging_level="ERROR",
                **size,
            )
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = " ".join(str(error).split())
            message = (
                f"no Ray cluster at {address}: {reason}; expected one that runs (`ray start --head`), or "
                "--executor-option address=local, which starts one here"
            )
            raise SamebitsError(message, slug="executor-unavailable") from None
        if address == "local":
            self._refuse_too_much(resources)
        self._output.__enter__()

    def _refuse_too_much(self, resources: Mapping[str, float]) -> None:
        """Refuse runs that need more than this machine has: a cluster started here gets no more nodes.

        Raises:
            SamebitsError: they do; `executor-unavailable`.
        """
        present = self._ray.cluster_resources()
        for name, needed in resources.items():
            there = present.get({"num_cpus": "CPU", "num_gpus": "GPU"}.get(name, name), 0.0)
            if needed > there:
                self._ray.shutdown()
                message = (
                    f"--executor-option {name}={needed:g}: the cluster that address=local starts here has "
                    f"{name}: {there:g}; expected no more than that, or the address of a cluster that has it"
                )
                raise SamebitsError(message, slug="executor-unavailable")

    def submit(self, function: Callable[..., Any], *arguments: Any) -> RayJob:
        """See `Executor`."""
        task = self._ray.remote(**self._options)(function)
        return RayJob(self._ray, task.remote(*arguments))

    def close(self) -> None:
        """See `Executor`."""
        self._ray.shutdown()
        self._output.__exit__(None, None, None)


class _MainOutput:
    """A stream for the main thread; what other threads print goes to standard error.

    Args:
        stream: that of the main thread.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        is_main = threading.current_thread() is threading.main_thread()
        return (self._stream if is_main else sys.stderr).write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class RayJob:
    """A task.

    Args:
        ray: the package.
        reference: of the task's result.
    """

    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray = ray
        self._reference = reference

    @property
    def name(self) -> str:
        """See `Job`."""
        return f"task {self._reference.task_id().hex()[:16]} of Ray"

    def is_done(self) -> bool:
        """See `Job`."""
        ready, _ = self._ray.wait([self._reference], timeout=0)
        return bool(ready)

    def result(self) -> Any:
        """See `Job`."""
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(self._reference)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, SamebitsError):
                raise error.cause from None
            reason = str(error).strip().splitlines()[-1]
            advice = "Every node needs the same samebits and torch."
            raise lost(self.name, reason, advice) from None
        except exceptions.RayError as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            advice = f"Run the command again; the logs of the node say more ({type(error).__name__})."
            raise lost(self.name, reason, advice) from None

    def cancel(self) -> None:
        """See `Job`."""
        self._ray.cancel(self._reference, force=True)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        message = f"--executor-option {name}={text}: expected a number from 0, or address=ADDRESS"
        raise SamebitsError(message, slug="usage")
    return number
