"""``nmt plot`` commands for figures of the lesson: position encodings, masks, embeddings, maps of words."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.options import EpochOption, RunOption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt.runs.directory import Run

Length = Annotated[int, typer.Option(min=1, max=100_000, metavar="L", help="Number of positions.")]
Width = Annotated[int, typer.Option(min=2, max=65_536, metavar="D", help="Even number of dimensions of an encoding.")]
Base = Annotated[
    float,
    typer.Option(metavar="BASE", help="Base of the wavelengths, which rise from 2 pi to nearly base x 2 pi positions."),
]
Positions = Annotated[
    list[int] | None,
    typer.Option(min=0, metavar="K", help="Position to draw. Repeatable. Default: four positions."),
]


def position_matrix(figure: "Figure", length: Length = 100, width: Width = 512, base: Base = 10_000) -> None:
    """Draw the sinusoidal position encoding as an image.

    Each row is the encoding of a position (Vaswani et al. 2017, section 3.5). No run is needed.

    Examples:
        nmt plot position-matrix
        nmt plot position-matrix --length 50 --width 128 --base 100
    """
    from nmt.plotting.sinusoids import Encoding, draw_matrix

    draw_matrix(figure, Encoding(length, width, base))


def sinusoids(figure: "Figure", position: Positions = None, width: Width = 512, base: Base = 10_000) -> None:
    """Draw the sines of single positions as curves over the dimensions.

    The curve of position k is sin(k / base^(2i/d)) over i, the number of the pair of dimensions. The default positions
    are 0, 4, 8 and 12. No run is needed.

    Examples:
        nmt plot sinusoids
        nmt plot sinusoids --position 1 --position 50 --width 128
    """
    from nmt.plotting.sinusoids import draw_sinusoids

    draw_sinusoids(figure, width, base, position or [0, 4, 8, 12])


def position_columns(
    figure: "Figure",
    column: Annotated[
        list[int] | None,
        typer.Option(min=0, metavar="I", help="Dimension, from 0. Repeatable. Default: four of different wavelengths."),
    ] = None,
    position: Positions = None,
    length: Length = 100,
    width: Width = 512,
    base: Base = 10_000,
) -> None:
    """Draw columns of the position encoding over the positions.

    Each column is a sinusoid with its own wavelength. The values at a marked position are part of its encoding. Needs
    no run.

    Examples:
        nmt plot position-columns
        nmt plot position-columns --column 0 --column 64 --position 10 --position 20
    """
    from nmt.plotting.sinusoids import Encoding, column_choice, draw_columns, spread

    encoding = Encoding(length, width, base)
    draw_columns(figure, encoding, column or column_choice(width, 4), position or spread(length, 6)[1:-1])


def binary_code(figure: "Figure", length: Length = 16, width: Width = 8, base: Base = 16) -> None:
    """Draw the binary code of positions beside their sinusoids.

    Each bit flips half as often as the bit before it. With base 16 and width 8, the wavelength doubles from each pair
    of sinusoids to the next. No run is needed.

    Examples:
        nmt plot binary-code
        nmt plot binary-code --length 64 --width 32 --base 10000
    """
    from nmt.plotting.sinusoids import Encoding, draw_binary_code

    draw_binary_code(figure, Encoding(length, width, base))


def position_similarity(
    figure: "Figure",
    position: Positions = None,
    length: Length = 100,
    width: Width = 512,
    base: Base = 10_000,
) -> None:
    """Draw the similarity of the encodings of every two positions.

    The cosine depends only on the distance of the positions, and falls with it. No run is needed.

    Examples:
        nmt plot position-similarity
        nmt plot position-similarity --length 50 --width 128 --position 25
    """
    from nmt.plotting.sinusoids import Encoding, draw_similarity, spread

    draw_similarity(figure, Encoding(length, width, base), position or spread(length, 4))


def position_table(
    figure: "Figure",
    sentence: Annotated[
        str, typer.Argument(metavar="[SENTENCE]", help="Words with white space between them.")
    ] = "I am a robot",
    width: Width = 4,
    base: Base = 100,
) -> None:
    """Write out the position encoding of a sentence as a table.

    Each cell holds a formula and its value. No run is needed.

    Examples:
        nmt plot position-table
        nmt plot position-table --width 6 --base 10000 "you too robot"
    """
    from nmt.plotting.sentences import draw_table

    draw_table(figure, sentence.split(), width, base)


def masks(
    figure: "Figure",
    sentence: Annotated[str, typer.Argument(help="Words with white space between them.")],
    pad: Annotated[int, typer.Option(min=0, max=39, metavar="N", help="Tokens of padding after the sentence.")] = 2,
) -> None:
    """Draw the padding mask, the look-ahead mask and both combined.

    A row is a token that attends, a column a token that is attended to. Masked cells are dark. No run is needed.

    Examples:
        nmt plot masks "I am a robot"
        nmt plot masks --pad 4 "you too robot"
    """
    from nmt.plotting.sentences import draw_masks

    draw_masks(figure, sentence.split(), pad)


def embeddings(
    figure: "Figure",
    phrases: Annotated[
        list[str], typer.Argument(metavar="PHRASE", help="Phrases: words with white space between them.")
    ],
    length: Annotated[
        int | None,
        typer.Option(min=1, max=256, metavar="L", help="Pad each phrase to L rows. Default: the longest phrase."),
    ] = None,
    width: Width = 50,
    base: Base = 10_000,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Run in checkpoints/ whose learned embeddings are drawn below."),
    ] = None,
    epoch: EpochOption = None,
) -> "Run | None":
    """Draw word plus position embeddings of phrases side by side.

    Fixed embeddings need no run: the vector of a token is the sum of the sinusoidal encodings of its id and position.
    With --run, a second row shows the learned embeddings of the run's encoder.

    Examples:
        nmt plot embeddings "I am a robot" "you too robot"
        nmt plot embeddings --width 6 --length 5 "I am a robot" "you too robot"
        nmt plot embeddings --run base "im thirsty" "i am hungry"
    """
    from nmt.plotting.sentences import draw_embeddings, fixed_embeddings

    rows = [("fixed", fixed_embeddings(phrases, length, width, base))]
    details = f"fixed: width {width:,} · base {base:,.12g}"
    if run is None:
        draw_embeddings(figure, rows, details)
        return None
    from nmt.plotting.trained import learned_embeddings, read_vocabulary, read_weights
    from nmt.runs.directory import find_run

    weights = read_weights(find_run(run), epoch)
    rows.append(("learned", learned_embeddings(phrases, weights, read_vocabulary(weights, "source"))))
    draw_embeddings(figure, rows, f"{details} · learned: {weights.title}")
    return weights.run


def words(
    figure: "Figure",
    word: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...", help="Words to draw with their neighbours. Default: the most frequent tokens."
        ),
    ] = None,
    run: RunOption = None,
    epoch: EpochOption = None,
    side: Annotated[
        Literal["source", "target"], typer.Option(metavar="SIDE", help="Vocabulary: source or target.")
    ] = "source",
    count: Annotated[
        int, typer.Option(min=3, max=500, metavar="K", help="Without WORD: number of tokens on the map.")
    ] = 150,
    neighbors: Annotated[int, typer.Option(min=1, max=20, metavar="N", help="Number of neighbours of each WORD.")] = 6,
) -> "Run":
    """Draw a two-dimensional map of word embeddings.

    Without words, the map shows the most frequent tokens. With words, it shows and lists the nearest neighbours of each
    word by cosine. The axes are the principal components. A hyphen marks a subword within a word.

    Examples:
        nmt plot words
        nmt plot words --side target --count 300
        nmt plot words --neighbors 10 hungry thirsty
    """
    from nmt.plotting.trained import read_vocabulary, read_weights
    from nmt.plotting.word_map import draw_frequent, draw_given, find_words
    from nmt.runs.directory import find_run

    weights = read_weights(find_run(run), epoch)
    known, details = read_vocabulary(weights, side), f"{weights.title} · {side} side"
    if word:
        draw_given(figure, known, find_words(known, word, side), neighbors, details)
    else:
        draw_frequent(figure, known, count, details)
    return weights.run
