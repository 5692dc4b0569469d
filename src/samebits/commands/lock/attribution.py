"""Says whose it is that a run does not give the bits of its lock, and which runs show that."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from samebits._text.masking import Masker
from samebits.commands.lock.change import claims_of, find_change, masked_change
from samebits.commands.lock.entry import first_mismatch, here_as_locked, with_names_below
from samebits.commands.lock.old_code import Repository
from samebits.commands.lock.old_commits import locked_tree, old_commits
from samebits.commands.lock.operations import compared, traced
from samebits.commands.lock.outcome import Blame, Obstacle, OldCode, Proof
from samebits.commands.lock.recipe import explained, run, run_failure
from samebits.commands.lock.rest import with_change, with_rest
from samebits.commands.lock.settings import settings_of_lock, those_needed
from samebits.commands.lock.trees import Trees
from samebits.comparison.environments import compare_environments
from samebits.environment.influence import Strength
from samebits.environment.repository import is_distrusted
from samebits.verification.user_files import refuse_other_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from samebits.commands.lock.case import Case
    from samebits.commands.lock.old_code import Commit
    from samebits.commands.lock.outcome import EntryResult, RestoredSetting
    from samebits.commands.lock.recipe import LockRun, Recipe

REPEATS = 2
"""Of a run that shows something; where chance gives one of two results, one run agrees half of the time."""
REPEATS_WITHOUT_REASON = 4
"""Of the run, where no difference was found that could be the reason for its bits."""


def attribute(case: Case) -> EntryResult:
    """Find out whose a mismatch is.

    Raises:
        SamebitsError: a run cannot be started, or its record cannot be read; a further run failed
            (`lock-run-failed`); the code was changed between the runs (`code-changed`).
        KeyboardInterrupt: by Ctrl-C.
    """
    if not _is_repeated(case, _made(case), case.short, REPEATS):
        return _nondeterminism(case)
    case = replace(case, result=with_environments(case.result))
    if case.result.inputs:
        return _changed_inputs(case)
    return _rest(case, case.short)


def _made(case: Case) -> LockRun:
    """Return the run that does not match the lock."""
    made = case.result.run
    assert made is not None  # noqa: S101 - for the type checker
    return made


def _is_repeated(case: Case, made: LockRun, recipe: Recipe, times: int) -> bool:
    """Make a run again, and tell whether it gives the same bits each time, as far as they are compared.

    Args:
        case: what is known.
        made: the run.
        recipe: of a further one.
        times: how many.
    """
    for _ in range(times):
        case.announce("a further run, to see whether the bits are chance")
        again = run(recipe, "again")
        if again.failed:
            raise run_failure(again)
        if first_mismatch(made.rows, again.rows, up_to=case.last_step) is not None:
            refuse_other_code(made.info, again.info)
            return False
    return True


def _hold(case: Case, claims: Sequence[Callable[[], bool]]) -> bool:
    """Make the runs that show something again, and tell whether each gives what it gave."""
    case.announce("the runs that show this once more, to see whether the bits are chance")
    return all(claim() for _ in range(REPEATS) for claim in claims)


def _nondeterminism(case: Case, recipe: Recipe | None = None) -> EntryResult:
    """Explain a run that differs from time to time, as `samebits verify` does.

    Args:
        case: what is known.
        recipe: of the run; None for the code as it is.
    """
    case.announce("the bits are chance; runs to find out why")
    result = explained(case.short if recipe is None else recipe)
    return replace(case.result, blame=Blame.NONDETERMINISM, proof=Proof.TRIED, operations=result)


def with_environments(result: EntryResult) -> EntryResult:
    """Add the differences between the environment of the lock and that of the run, which there is."""
    made = result.run
    assert made is not None  # noqa: S101 - for the type checker
    assert made.info is not None  # noqa: S101
    environments = compare_environments(result.entry.info, here_as_locked(made.info))
    differences = environments.differences
    inputs = tuple(each for each in differences if each.strength is Strength.INPUT)
    platform = tuple(each for each in differences if each.strength is not Strength.INPUT)
    return replace(result, inputs=inputs, platform=platform, unknown=environments.unknown)


# ---- code and data differ


def _changed_inputs(case: Case) -> EntryResult:
    """Run the old code here, to tell a change of the user's from the platform."""
    repository = Repository.of(case.lock.folder)
    commits, obstacle = _old_commits(case, repository)
    if repository is None or not commits:
        return without_old_code(_with_obstacle(case, obstacle))
    with tempfile.TemporaryDirectory(prefix="samebits-") as scratch:
        trees = Trees(case, repository, Path(os.path.realpath(scratch)))
        commit, old = _best_of(case, trees, commits)
        if old.failed:
            return without_old_code(_with_obstacle(case, Obstacle.OLD_CODE_FAILED))
        if not case.gives_lock(old):
            return _old_code_differs(case, old, trees.recipe(commit.sha, {}), str(repository.root))
        case.announce("the commit and the lines that changed the bits")
        change = find_change(repository, commit, trees.gives_lock)
        if not _hold(case, claims_of(repository, change, trees.gives_lock)):
            return _nondeterminism(case)
        change = masked_change(change, Masker(variables=os.environ), repository)
        operations = compared(case, trees.recipe(change.good.sha, {}), case.short)
    result = replace(case.result, change=change, operations=operations)
    return replace(result, blame=Blame.CHANGE, proof=Proof.TRIED)


def _old_commits(case: Case, repository: Repository | None) -> tuple[tuple[Commit, ...], Obstacle]:
    if repository is None and shutil.which("git") is None:
        return (), Obstacle.GIT_MISSING
    if repository is None:
        return (), Obstacle.DISTRUSTED if is_distrusted(case.lock.folder) else Obstacle.NO_GIT
    locked = locked_tree(case.entry, case.environment_here, case.lock.path, repository)
    return old_commits(repository, locked), Obstacle.SHALLOW if repository.is_shallow else Obstacle.NO_COMMIT


def _best_of(case: Case, trees: Trees, commits: tuple[Commit, ...]) -> tuple[Commit, LockRun]:
    """Return the first commit that gives the bits of the lock, or the first that runs, with its run."""
    made: list[tuple[Commit, LockRun]] = []
    for commit in commits:
        case.announce(
            f"the code of commit {commit.sha[:10]}, to see whether it still gives the bits of the lock"
        )
        old = trees.run(commit.sha, {}, inventory=True)
        if case.gives_lock(old):
            return commit, old
        made.append((commit, old))
    return next((pair for pair in made if not pair[1].failed), made[0])


def _old_code_differs(case: Case, old: LockRun, recipe: Recipe, root: str) -> EntryResult:
    """Return the result where the old code does not give the bits of the lock.

    Args:
        case: what is known.
        old: a run of it.
        recipe: of a further one.
        root: of the repository.
    """
    assert old.info is not None  # noqa: S101 - for the type checker
    if not _is_repeated(case, old, recipe, REPEATS):
        case = replace(case, result=replace(case.result, old_code=OldCode.CHANCE))
        return _nondeterminism(case, recipe)
    here = with_names_below(here_as_locked(old.info), root, os.path.realpath(case.lock.folder))
    left = compare_environments(case.entry.info, here).differences
    inputs = tuple(each for each in left if each.strength is Strength.INPUT)
    if inputs:  # data that git does not keep; the code counts too, unless the old one gives the same
        if not case.gives_same(old):
            return without_old_code(case.result)
        old_code = None if case.result.platform else OldCode.SAME
        return without_old_code(replace(case.result, inputs=inputs, old_code=old_code))
    old_code = OldCode.SAME if case.gives_same(old) else OldCode.OTHERS
    return _rest(replace(case, result=replace(case.result, old_code=old_code)), recipe)


def _with_obstacle(case: Case, obstacle: Obstacle) -> EntryResult:
    return replace(case.result, obstacles=(obstacle,))


def without_old_code(result: EntryResult) -> EntryResult:
    """Return the result where inputs differ and the old code cannot be run: by what else is different."""
    if result.platform:
        return replace(result, blame=Blame.UNDECIDED)
    only_data = all(each.fact.path[0] == "data" for each in result.inputs)
    return replace(result, blame=Blame.DATA if only_data else Blame.CHANGE)


# ---- the platform differs, or what no lock holds


def _rest(case: Case, recipe: Recipe) -> EntryResult:
    """Find the setting that changes the bits, if it can be set here, and the operation that changed.

    Args:
        case: what is known.
        recipe: of the code that the lock was made with.
    """

    def made(settings: tuple[RestoredSetting, ...]) -> LockRun:
        return run(_with_settings(recipe, settings), "settings")

    tried: tuple[RestoredSetting, ...] = ()
    settings = settings_of_lock(case.entry.environment, case.result.platform)
    if settings:
        case.announce("with the settings of the lock")
        first = made(settings)
        if case.gives_lock(first):
            settings = those_needed(settings, lambda some: case.gives_lock(made(some)))
            if not _hold(case, (lambda: case.gives_lock(made(settings)),)):
                return _nondeterminism(case)
            operations = compared(case, _with_settings(recipe, settings), recipe)
            blame = with_change(Blame.PLATFORM, case.result.old_code)
            result = replace(case.result, settings=settings, operations=operations)
            return replace(result, blame=blame, proof=Proof.TRIED)
        tried = () if first.failed else settings
    # With them, the operation named is one that they do not change.
    operations = traced(case, _with_settings(recipe, tried))
    result = with_rest(replace(case.result, tried=tried, operations=operations))
    if has_no_reason(result) and not _is_repeated(case, _made(case), case.short, REPEATS_WITHOUT_REASON):
        return _nondeterminism(case)
    return result


def has_no_reason(result: EntryResult) -> bool:
    """Tell whether nothing that a lock holds explains the bits, so that chance is likely."""
    return result.blame in (Blame.UNRECORDED, Blame.CHANGE_AND_UNRECORDED)


def _with_settings(recipe: Recipe, settings: tuple[RestoredSetting, ...]) -> Recipe:
    given = {each.name: each.value for each in settings if each.value is not None}
    without = frozenset(each.name for each in settings if each.value is None)
    return replace(recipe, environment={**recipe.environment, **given}, without=without)
