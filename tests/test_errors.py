"""What reaches a terminal is text, whatever the file held that it quotes."""

from nmt.errors import DataError


def test_a_message_shows_what_a_terminal_would_obey() -> None:
    message = str(DataError("no member 'a\x1b[2J\r\0\x9b\u202e\ud800' of größer\nsecond line"))
    assert message == r"no member 'a\x1b[2J\r\x00\x9b\u202e\ud800' of größer" + "\nsecond line"
    message.encode()
