"""The table of configs/README.md is the table of recipes."""

from conftest import ROOT

from nmt.config.data import SAMPLED_PAIRS, TEXT_PAIRS, DataConfig
from nmt.recipes import sizes
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


def test_the_numbers_of_small_corpora_are_documented() -> None:
    assert f"fewer than {SAMPLED_PAIRS:,} training pairs" in README
    assert f"{sizes.JOINED_PAIRS:.0%} of the pairs are joined" in README
    assert f"Below {sizes.PAIRS_OF_LONG_RUNS:,} pairs" in README
    assert f"at most {sizes.MOST_TOKENS // 1_000_000} million target tokens" in README
    field = DataConfig.model_json_schema()["properties"]["subword_sampling"]
    assert f"{TEXT_PAIRS:,}" in field["description"]
