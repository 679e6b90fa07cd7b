"""Several epochs as a person writes them: 12-16,20."""

from nmt.errors import NmtError


def parse_epochs(text: str, there: list[int], of: str) -> list[int]:
    """Return the epochs that a list of numbers and ranges names, in order, each once.

    Args:
        text: such as "12-16,20".
        there: the epochs there are.
        of: what they are epochs of, for messages.

    Raises:
        NmtError: if the text is no such list, or names an epoch that is not there.
    """
    wanted: set[int] = set()
    for part in text.split(","):
        first, dash, last = (one.strip() for one in part.partition("-"))
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last)):
            raise NmtError(f"Epochs are given as numbers and ranges, such as 12-16,20; received {text!r} for {of}.")
        if int(last) > max(there, default=0):  # before a range of any size is written out
            raise _missing(part.strip(), there, of)
        wanted |= set(range(int(first), int(last) + 1))
    missing = sorted(wanted.difference(there))
    if missing:
        raise _missing(in_ranges(missing), there, of)
    return sorted(wanted)


def last_epochs(count: int, there: list[int], of: str) -> list[int]:
    """Return the last so many epochs.

    Raises:
        NmtError: if one of them is not there.
    """
    end = max(there, default=0)
    wanted = range(end - count + 1, end + 1)
    if count > end or not set(there).issuperset(wanted):
        raise _missing(f"the last {count}", there, of)
    return list(wanted)


def _missing(what: str, there: list[int], of: str) -> NmtError:
    if not there:
        return NmtError(f"Weights are kept once an epoch has ended; {of} has none yet. Go on with nmt train first.")
    return NmtError(
        f"An average needs the weights of each epoch; {of} has not those of {what}. It has those of "
        f"{in_ranges(there)}: give some of them with --epochs."
    )


def in_ranges(numbers: list[int]) -> str:
    """Return whole numbers, in order and each once, as "12-16,20"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
