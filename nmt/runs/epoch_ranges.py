"""Lists and ranges of epochs, such as 12-16,20: their parser and their text."""

from nmt.errors import NmtError


def parse_epochs(text: str, available: list[int], owner: str) -> list[int]:
    """Return the epochs that a text of numbers and ranges names, in order and without repetition.

    Args:
        text: Numbers and ranges, such as "12-16,20".
        available: Epochs with weights.
        owner: Owner of the epochs in messages, such as "run 'base'".

    Raises:
        NmtError: if the text is no such list, or names an epoch without weights.
    """
    epochs: set[int] = set()
    for part in text.split(","):
        first, dash, last = (bound.strip() for bound in part.partition("-"))
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last)):
            raise NmtError(f"{text!r} names no epochs of {owner}. Give numbers and ranges, such as 12-16,20.")
        if int(last) > max(available, default=0):  # before a huge range is written out
            raise _missing(_in_words(part.strip()), available, owner)
        epochs |= set(range(int(first), int(last) + 1))
    missing = sorted(epochs.difference(available))
    if missing:
        raise _missing(_in_words(in_ranges(missing)), available, owner)
    return sorted(epochs)


def last_epochs(count: int, available: list[int], owner: str) -> list[int]:
    """Return the last ``count`` epochs.

    Raises:
        NmtError: if one of them has no weights.
    """
    end = max(available, default=0)
    epochs = range(end - count + 1, end + 1)
    if count > end or not set(available).issuperset(epochs):
        raise _missing(f"the last {count} epochs", available, owner)
    return list(epochs)


def _in_words(epochs: str) -> str:
    return f"epoch{'' if epochs.isdecimal() else 's'} {epochs}"


def _missing(epochs: str, available: list[int], owner: str) -> NmtError:
    start = owner[:1].upper() + owner[1:]
    if not available:
        return NmtError(
            f"{start} has no weights yet. The weights of an epoch are saved at its end. Continue with nmt train first."
        )
    return NmtError(
        f"{start} does not have the weights of {epochs}. An average needs the weights of each of its epochs. Choose "
        f"from {in_ranges(available)} with --epochs."
    )


def in_ranges(numbers: list[int]) -> str:
    """Return ascending whole numbers without repetition as "12-16,20"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)
