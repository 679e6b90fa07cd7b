"""Format numbers: the version of a file's layout, written into the file."""

from collections.abc import Collection

from nmt.errors import DataError


def check_format(number: object, readable: Collection[object], file: str) -> None:
    """Refuse a file whose format this version does not know.

    Args:
        number: Format number found in the file.
        readable: Format numbers that this version reads.
        file: Name of the file in the message.

    Raises:
        DataError: if ``number`` is not one of ``readable``.
    """
    if type(number) in map(type, readable) and number in readable:
        return
    shown = str(number) if len(str(number)) <= 60 else f"{str(number)[:60]}..."
    raise DataError(
        f"{file} has format {shown}. This version of nmt reads format {' or '.join(map(str, readable))}. Update nmt, "
        "or use the version that wrote the file."
    )
