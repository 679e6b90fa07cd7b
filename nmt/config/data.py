"""TODO."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from nmt.config.record import DocumentedRecord
from nmt.errors import NmtError
from nmt.storage.names import check_name


class DataConfig(DocumentedRecord):
    """What ``prepare`` does with a file of sentence pairs."""

    renamed: ClassVar = {"normalisation": "normalization"}

    dataset: str | None = None
    """Name of the prepared dataset: ``prepare`` writes it, ``train`` reads it. null: ``prepare`` takes the name of
    the file, ``train`` the dataset prepared last."""
    n_sentences: int | None = Field(None, ge=3, le=2**40)
    """Take the first so many pairs of the file; null takes all. Files given for validation and test count apart."""
    split: Literal["by_source", "random"] = "by_source"
    """``by_source`` keeps all pairs with one source sentence on one side of the split, so that no test sentence was
    seen in training, and leaves pairs out of training whose source stands in a validation or test file given apart;
    ``random`` deals out pairs whatever their source."""
    train_share: float = Field(0.8, gt=0, lt=1)
    """Share of the pairs for training; the three shares add up to 1."""
    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the pairs for the validation pass after each epoch."""
    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of the pairs kept for the final test."""
    seed: int = Field(73, ge=0, lt=2**32)
    """Seed of the shuffle before the split. The default keeps "im thirsty", the example sentence of the README, in the
    training split of the lesson's corpus, and the sentences that say the same of others out of it."""
    source_column: Annotated[int, Field(ge=1, le=2**20)] | str | None = None
    """Where the source sentences stand: the number of a TSV's column, from 1, or its name in the first line; the field
    of JSON Lines; the language of a TMX. null: column 1, the field "source", the first language of the TMX."""
    target_column: Annotated[int, Field(ge=1, le=2**20)] | str | None = None
    """The same for the target sentences. null: column 2, the field "target", the second language."""
    header: bool = False
    """The first line of a TSV names its columns and is no pair. Naming a column says so too."""
    tokenizer: Literal["auto", "word", "char", "subword"] = "auto"
    """``word``: one id for each word, words separated by white space. ``char``: one for each character. ``subword``:
    one for each piece of a vocabulary trained on the corpus (sentencepiece). ``auto``: words for text that is already
    lower-case ASCII words without punctuation, subwords for any other."""
    normalization: Literal["auto", "none", "nfkc", "ascii-words"] = "auto"
    """What is done to text before tokenizing, in training and in translation alike. ``none``: white space is
    collapsed. ``nfkc``: also Unicode NFKC. ``ascii-words``: lower case, accents stripped, ASCII letters only, words
    with digits dropped, as in corpora cleaned for lessons. ``auto``: that for text cleaned so already, else nfkc."""
    vocabulary_size: int | None = Field(None, ge=8, le=1_000_000)
    """Number of ids, the four special ones included. Words and characters: at most so many, the most frequent; null:
    no limit. Subwords: null chooses by the size of the corpus, 8,000 for 20,000 to 200,000 training pairs."""
    min_count: int = Field(1, ge=1, le=2**40)
    """A word or character seen less often than this in the training split becomes unk."""
    joint_vocabulary: bool | Literal["auto"] = "auto"
    """One vocabulary over both sides, which ``model.tie_embeddings: all`` needs, instead of one a side. ``auto``: one
    for subwords alone."""
    subword_model: Literal["unigram", "bpe"] = "unigram"
    """How subwords are found: ``unigram`` language model (Kudo 2018) or byte-pair encoding (Sennrich et al. 2016)."""
    byte_fallback: bool = True
    """A character that training did not see becomes the bytes of its UTF-8, so that no subword is ever unk."""
    subword_sampling: bool = False
    """Keep the raw training text in the dataset, so that training can cut it into other subwords every epoch."""
    max_tokens: int | None = Field(500, ge=1, le=2**40)
    """Pairs with more tokens on a side are left out of training and validation, never out of the test; null keeps
    them."""
    max_length_ratio: float | None = Field(9.0, gt=1)
    """Pairs with a side so many times as long as the other, in tokens with eos, are left out likewise; null keeps
    them."""
    drop_empty: bool = False
    """Drop (and count) pairs with a side that is empty after normalization, instead of refusing the file."""
    drop_unreadable: bool = False
    """Drop (and count) lines that are not UTF-8 or hold no pair, instead of refusing the file."""
    drop_control: bool = True
    """Drop pairs with control characters, such as NUL: signs of a broken encoding."""
    drop_identical: bool = False
    """Drop pairs whose sides are the same."""
    drop_duplicates: bool = False
    """Drop pairs that stood before."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        total = self.train_share + self.validation_share + self.test_share
        if abs(total - 1) > 1e-6:
            raise ValueError(
                f"train_share, validation_share and test_share add up to 1; received "
                f"{self.train_share} + {self.validation_share} + {self.test_share} = {total:g}. Change "
                "another of them too"
            )
        if self.dataset is not None:
            try:
                check_name(self.dataset, "dataset")
            except NmtError as error:  # so that the message says where it was set
                raise ValueError(str(error).removesuffix(".")) from None
        return self
