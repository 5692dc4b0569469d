"""Runs made by an executor, as `launch_all` makes them here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samebits.executors.jobs import cancel_all, results_of
from samebits.executors.shipping import deliver, execute_all, pack, show_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from samebits.executors.jobs import Executor, Job
    from samebits.executors.shipping import Delivery
    from samebits.recording.launch import Launch


def launch_in_jobs(
    executor: Executor, requests: Sequence[Launch], apart_s: float = 0.0, *, one_machine: bool = False
) -> list[Delivery]:
    """Make runs in jobs and wait for all; their files are here afterwards.

    Args:
        executor: makes the jobs.
        requests: the runs.
        apart_s: seconds between the starts of two that start at the same time.
        one_machine: make them one after the other in one job, so that no difference is one of machines;
            else each in its own job, all at the same time.

    Raises:
        SamebitsError: a job gives no result (`executor-job`), or a run cannot be made.
        KeyboardInterrupt: this program was told to end; the jobs are cancelled.
    """
    packed = [
        pack(
            request,
            shares_files=executor.shares_files,
            wait_s=apart_s * (min(number, 1) if one_machine else number),
        )
        for number, request in enumerate(requests)
    ]
    jobs: list[Job] = []
    try:
        for shipments in (packed,) if one_machine else ([shipment] for shipment in packed):
            jobs.append(executor.submit(execute_all, shipments))  # noqa: PERF401 - those submitted are cancelled
    except BaseException:
        cancel_all(jobs)
        raise
    deliveries: list[Delivery] = [delivery for made in results_of(jobs) for delivery in made]
    for delivery, request in zip(deliveries, requests, strict=True):
        deliver(delivery, request)
        show_output(delivery, request.output)
    return deliveries


def submit_run(executor: Executor, request: Launch) -> Job:
    """Submit one run; its job gives a list of one `Delivery`."""
    return executor.submit(execute_all, [pack(request, shares_files=executor.shares_files)])
