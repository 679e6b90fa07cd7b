"""Placeholders of programs in texts."""

import pytest

from nmt.tokenizers.icu import has_choices, read_message
from nmt.tokenizers.placeholders import OF_FLAG, placeholders_of


@pytest.mark.parametrize(
    "line",
    [
        "%ld %lu %5.2f %-10s %1$s %*d %% %hhd %zu %'d %.*f %1$*2$d %#x %<PRIu64>",
        "%(name)s %(n)05.2f {name!r:>10} {0} {} {:>10,.2f} {a.b[0]} {x:%Y-%m-%d %H:%M} {n:>{w}}",
        "${name} $name $VAR$ %1 %L1 %n %12", "#{name} %{count} %<n>d %<x>.2f #{user.name}",
        "{ $count } {$name} { -brand } { NUMBER($x, a: 2) }", "{{name}} {{{name}}} {{#if}} {{> p}} {{ x|y }}",
        "<%= name %> <% if x %> <?php echo 1 ?> {% if x %} {%- end -%} {# note #}", "%@ %1$@ %lld %#@count@",
        "[X0X] :name :smile: %count% {count, number, integer} {d, date}",
    ],
)  # fmt: skip
def test_placeholders_of_all_syntaxes_are_found(line: str) -> None:
    assert "".join(placeholders_of(line)).replace(" ", "") == line.replace(" ", "")
    for placeholder in placeholders_of(line):
        assert placeholders_of(f"Der {placeholder}, und") == placeholders_of(f"{placeholder}") == [placeholder]


@pytest.mark.parametrize(
    "text",
    ["100%ige", "100%ig", "100 %ige Sicherheit", "50% discount", "100% sure", "50 % der", "at 10:30", "note:name", "$5",
     "$1,000", "US$five", "{a man is reading}", "a::b", "5%, 10%"],
)  # fmt: skip
def test_percentages_times_and_prices_are_none(text: str) -> None:
    assert placeholders_of(text) == []


@pytest.mark.parametrize(
    ("text", "flag", "placeholders"),
    [
        ("50% done, %d of {x}", "c-format", ["% d", "%d"]), ("100%ige", "c-format", ["%i"]),
        ("%(x)s %% %d {y}", "python-format", ["%(x)s", "%%", "%d"]), ("{x} %d", "python-brace-format", ["{x}"]),
        ("{a b} {{", "python-brace-format", ["{a b}", "{{"]), ("%1 %L2 %n %s", "qt-format", ["%1", "%L2", "%n"]),
        ("%1 of %12, 5% %s", "kde-format", ["%1", "%12"]),
        ("%{a} %<b>d %d #{c}", "ruby-format", ["%{a}", "%<b>d", "%d"]),
    ],
)  # fmt: skip
def test_a_flag_of_a_catalogue_names_the_only_syntax(text: str, flag: str, placeholders: list[str]) -> None:
    assert OF_FLAG[flag].findall(text) == placeholders


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("{n, plural, one {# dog runs} other {# dogs run}}", ["* dog runs", "* dogs run"]),
        ("A {n, plural, =0 {no dog} other {# dogs}} in {place}.", ["A no dog in *.", "A * dogs in *."]),
        ("{g, select, male {He has {n, plural, one {# dog} other {# dogs}}} other {They sleep}}!",
         ["He has * dog!", "He has * dogs!", "They sleep!"]),
        ("{n, plural, offset:1 one {it''s '{'a'}' dog} other {don't}}", ["it's *a* dog", "don't"]),
        ("{n, selectordinal, one {#st} other {#th}} dog", ["*st dog", "*th dog"]),
        ("我有{n, plural, other {#只狗}}。", ["我有*只狗。"]),
    ],
)  # fmt: skip
def test_the_branches_of_a_message_are_whole_sentences(text: str, sentences: list[str]) -> None:
    message = read_message(text)
    assert message is not None
    shown = [
        "".join("*" if character > "\U00100000" else character for character in part.text) for part in message.sentences
    ]
    assert shown == sentences
    again = message.render([part.text for part in message.sentences])
    parsed = read_message(again)
    assert parsed is not None and parsed.sentences == message.sentences
    for part in message.sentences:
        assert all(again.count(piece) for piece in part.pieces)


@pytest.mark.parametrize(
    "text",
    ["{n, plural, one {x} other {y}", "{n, plural, one {x}} other {y}}", "{n, plural,}", "{n, plural, one {x} {y}}",
     "Room #5 {n, plural, other {x}}", "{a, plural, other {# dogs, {b, plural, other {# cats}}}}",
     "{n, plural, other {x}}" * 9, "{a, select, " + "x{1} y{2} z{3}" * 30 + "}", "{n, select, a {" * 20 + "}}" * 20],
)  # fmt: skip
def test_broken_messages_and_those_of_several_numbers_are_no_sentences(text: str) -> None:
    assert has_choices(text) and read_message(text) is None


def test_an_apostrophe_before_an_argument_is_doubled() -> None:
    message = read_message("{n, plural, other {the name {x}}}")
    assert message is not None
    [sentence] = message.sentences
    assert message.render([sentence.text.replace("the name ", "l'")]) == "{n, plural, other {l''{x}}}"
    assert message.render(["a {b}"]) == "{n, plural, other {a '{'b'}'}}"
