"""Limits and kinds of processors, read from trees of files such as Linux shows."""

import pytest

from samebits.environment.resources import read_kinds, read_quota


def tree(folder, **files):
    """Write files; `__` in a name stands for a slash, `_dot_` for a dot."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_version_2_takes_the_lowest_limit_above(tmp_path):
    """A limit counts for all groups below it."""
    tree(tmp_path, proc__self__cgroup="0::/a/b\n")
    tree(tmp_path / "groups", a__b__cpu_dot_max="300000 100000\n", a__cpu_dot_max="150000 100000\n")

    assert read_quota(tmp_path / "proc", tmp_path / "groups") == 1.5


def test_version_2_inside_a_container(tmp_path):
    """The path of the host leads nowhere; the root is the container's own group."""
    tree(tmp_path, proc__self__cgroup="0::/host/only\n")
    tree(tmp_path / "groups", cpu_dot_max="50000 100000\n")

    assert read_quota(tmp_path / "proc", tmp_path / "groups") == 0.5


def test_version_1(tmp_path):
    """The older files, under the name of their controllers."""
    tree(tmp_path, proc__self__cgroup="5:memory:/a\n4:cpu,cpuacct:/a\n")
    tree(
        tmp_path / "groups" / "cpu,cpuacct" / "a",
        cpu_dot_cfs_quota_us="200000",
        cpu_dot_cfs_period_us="100000",
    )

    assert read_quota(tmp_path / "proc", tmp_path / "groups") == 2.0


@pytest.mark.parametrize("text", ["max 100000", "", "x y", "-1 100000", "1 0", "1 2 3"])
def test_no_limit(tmp_path, text):
    """No limit, or one that makes no sense."""
    tree(tmp_path, proc__self__cgroup="0::/\n")
    tree(tmp_path / "groups", cpu_dot_max=text)

    assert read_quota(tmp_path / "proc", tmp_path / "groups") is None


def test_nothing_can_be_read(tmp_path):
    """No /proc, no control groups, no devices: nothing is known, nothing fails."""
    assert read_quota(tmp_path / "proc", tmp_path / "groups") is None
    assert read_kinds(tmp_path) == ()


def test_kinds_of_intel(tmp_path):
    """A hybrid processor shows two devices."""
    tree(tmp_path, cpu_core__cpus="0-7", cpu_atom__cpus="8-15")

    assert read_kinds(tmp_path) == ("cpu_core", "cpu_atom")


def test_kinds_of_arm(tmp_path):
    """Cores of several capacities, the smallest first."""
    for index, capacity in enumerate(("446", "446", "1024")):
        tree(tmp_path / "system" / "cpu" / f"cpu{index}", cpu_capacity=f"{capacity}\n")

    assert read_kinds(tmp_path) == ("capacity 446", "capacity 1024")


def test_cores_that_are_alike(tmp_path):
    """One capacity is no kind."""
    for index in range(2):
        tree(tmp_path / "system" / "cpu" / f"cpu{index}", cpu_capacity="1024\n")

    assert read_kinds(tmp_path) == ()
