"""What the machine can hold."""


def free_kilobytes():
    """Memory that is available now."""
    with open("/proc/meminfo", encoding="utf-8") as lines:  # <- planted
        for line in lines:
            if line.startswith("MemAvailable"):
                return int(line.split()[1])  # <- planted
    return 1_000_000
