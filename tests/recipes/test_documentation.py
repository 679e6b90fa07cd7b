"""The table of configs/README.md is the table of recipes."""

from conftest import ROOT

from nmt.recipes.sizes import SIZES, Size
from nmt.tokenizers.subword import VOCABULARY_SIZES

README = (ROOT / "configs" / "README.md").read_text()


def row(size: Size) -> str:
    dropout = ", ".join(f"{rate:g} to {most}" for most, rate in size.dropout)
    return (
        f"| {size.pairs:,} | {size.layers}+{size.layers} x {size.width} | {size.batch_tokens:,} | {size.epochs} | "
        f"{dropout} |"
    )


def test_the_table_of_sizes_is_documented() -> None:
    assert "\n".join(map(row, SIZES)) in README


def test_the_table_of_vocabulary_sizes_is_documented() -> None:
    pairs = " | ".join(f"{least:,}" for least, _ in reversed(VOCABULARY_SIZES))
    sizes = " | ".join(f"{size:,}" for _, size in reversed(VOCABULARY_SIZES))
    assert f"| training pairs from | {pairs} |\n" in README
    assert f"| subwords | {sizes} |\n" in README
