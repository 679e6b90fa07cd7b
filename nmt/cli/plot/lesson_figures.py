"""``nmt plot`` for the figures of the lesson that need no run: position encodings and masks."""

from typing import Annotated

import typer

from nmt.cli.plot.saving import FileOption, ShowOption, finish, path_of

LESSON_SENTENCE = "I am a robot"
LengthOption = Annotated[int, typer.Option("--length", min=1, max=100_000, metavar="L", help="Number of positions.")]
WidthOption = Annotated[
    int, typer.Option("--width", min=2, max=65_536, metavar="D", help="Dimensions of an encoding, an even number.")
]
BaseOption = Annotated[
    float,
    typer.Option(
        "--base", metavar="BASE", help="Base of the wavelengths, which rise from 2 pi to nearly base x 2 pi positions."
    ),
]
PositionsOption = Annotated[
    list[int] | None,
    typer.Option(
        "--position", min=0, metavar="K", help="Marked position. Repeatable. Default: four between first and last."
    ),
]


def position_matrix(
    length: LengthOption = 100,
    width: WidthOption = 512,
    base: BaseOption = 10_000,
    output: FileOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw the sinusoidal position encoding as an image.

    Each row is the encoding of a position (Vaswani et al. 2017, section 3.5). Needs no run. Prints the path of the
    figure.

    Examples:
        nmt plot position-matrix
        nmt plot position-matrix --length 50 --width 128 --base 100
    """
    path = path_of("position-matrix", output)
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.encoding import Encoding
    from nmt.plotting.lesson.matrices import draw_matrix

    figure = empty_figure()
    draw_matrix(figure, Encoding(length, width, base))
    finish(figure, path, show=show)


def sinusoids(
    position: Annotated[
        list[int] | None,
        typer.Option("--position", min=0, metavar="K", help="Position. Repeatable. Default: 0, 4, 8 and 12."),
    ] = None,
    width: WidthOption = 512,
    base: BaseOption = 10_000,
    output: FileOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw the sinusoid of each of some positions.

    The curve of position k is sin(k / base^(2i/d)) over i, the number of the pair of dimensions. Needs no run. Prints
    the path of the figure.

    Examples:
        nmt plot sinusoids
        nmt plot sinusoids --position 1 --position 50 --width 128
    """
    path = path_of("sinusoids", output)
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.sinusoids import draw_sinusoids

    figure = empty_figure()
    draw_sinusoids(figure, width, base, position or [0, 4, 8, 12])
    finish(figure, path, show=show)


def position_columns(
    column: Annotated[
        list[int] | None,
        typer.Option("--column", min=0, metavar="I", help="Dimension, from 0. Repeatable. Default: four wavelengths."),
    ] = None,
    position: PositionsOption = None,
    length: LengthOption = 100,
    width: WidthOption = 512,
    base: BaseOption = 10_000,
    output: FileOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw columns of the position encoding over the positions.

    Each column is a sinusoid of its own wavelength. The values at a marked position are part of its encoding. Needs no
    run. Prints the path of the figure.

    Examples:
        nmt plot position-columns
        nmt plot position-columns --column 0 --column 64 --position 10 --position 20
    """
    path = path_of("position-columns", output)
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.encoding import Encoding
    from nmt.plotting.lesson.matrices import check_positions, spread
    from nmt.plotting.lesson.sinusoids import column_choice, draw_columns

    encoding = Encoding(length, width, base)
    positions = position or spread(length, 6)[1:-1]
    check_positions(positions, encoding)
    figure = empty_figure()
    draw_columns(figure, encoding, column or column_choice(width, 4), positions)
    finish(figure, path, show=show)


def binary_code(
    length: LengthOption = 16,
    width: WidthOption = 8,
    base: BaseOption = 16,
    output: FileOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw the binary code of positions beside their sinusoids.

    Each bit flips half as often as the bit before it. With base 16 and width 8, the wavelength of each sinusoid is
    twice that of the pair before it. Needs no run. Prints the path of the figure.

    Examples:
        nmt plot binary-code
        nmt plot binary-code --length 64 --width 32 --base 10000
    """
    path = path_of("binary-code", output)
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.binary_code import draw_binary_code
    from nmt.plotting.lesson.encoding import Encoding

    figure = empty_figure()
    draw_binary_code(figure, Encoding(length, width, base))
    finish(figure, path, show=show)


def position_similarity(
    position: PositionsOption = None,
    length: LengthOption = 100,
    width: WidthOption = 512,
    base: BaseOption = 10_000,
    output: FileOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw the similarity of the encodings of any two positions.

    The cosine depends on the distance of the positions alone, and falls with it. Needs no run. Prints the path of the
    figure.

    Examples:
        nmt plot position-similarity
        nmt plot position-similarity --length 50 --width 128 --position 25
    """
    path = path_of("position-similarity", output)
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.encoding import Encoding
    from nmt.plotting.lesson.matrices import draw_similarity, spread

    figure = empty_figure()
    draw_similarity(figure, Encoding(length, width, base), position or spread(length, 4))
    finish(figure, path, show=show)


def position_table(
    sentence: Annotated[
        str | None,
        typer.Argument(metavar="[SENTENCE]", help="Words with white space between them. Default: I am a robot."),
    ] = None,
    width: WidthOption = 4,
    base: BaseOption = 100,
    output: FileOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Write out the position encoding of a sentence as a table.

    Each cell holds formula and value. Needs no run. Prints the path of the figure.

    Examples:
        nmt plot position-table
        nmt plot position-table --width 6 --base 10000 "you too robot"
    """
    path = path_of("position-table", output)
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.table import draw_table

    figure = empty_figure()
    draw_table(figure, (LESSON_SENTENCE if sentence is None else sentence).split(), width, base)
    finish(figure, path, show=show)


def masks(
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="Words with white space between them.")],
    pad: Annotated[
        int, typer.Option("--pad", min=0, max=39, metavar="N", help="Tokens of padding after the sentence.")
    ] = 2,
    output: FileOption = None,
    *,
    show: ShowOption = False,
) -> None:
    """Draw padding mask, look-ahead mask and both together.

    A row is a token that attends, a column a token that is attended to; masked cells are dark. Needs no run. Prints
    the path of the figure.

    Examples:
        nmt plot masks "I am a robot"
        nmt plot masks --pad 4 "you too robot"
    """
    path = path_of("masks", output)
    from nmt.plotting.figures import empty_figure
    from nmt.plotting.lesson.masks import draw_masks

    figure = empty_figure()
    draw_masks(figure, sentence.split(), pad)
    finish(figure, path, show=show)
