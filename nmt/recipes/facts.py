"""Facts of a prepared dataset by which a recipe is chosen. They come from its manifest alone."""

from typing import NamedTuple, Self

from nmt.data.manifest import Manifest


class Facts(NamedTuple):
    """Facts of a dataset. Token counts leave out bos and eos."""

    dataset: str
    """Name of the dataset."""
    pairs: int
    """Number of training pairs N."""
    source_tokens: int
    """Number of source tokens of the training split."""
    target_tokens: int
    """Number of target tokens of the training split."""
    target_length: int
    """Median length of a target sentence in tokens, or the mean where the manifest has no percentiles."""
    validation_pairs: int
    """Number of validation pairs."""
    source_vocabulary: int
    """Number of source ids, the special ones included."""
    target_vocabulary: int
    """Number of target ids, the special ones included."""
    is_joint: bool
    """Whether both sides have one vocabulary."""
    unit: str
    """What a token stands for: "words", "characters" or "subwords"."""

    @classmethod
    def of(cls, dataset: str, manifest: Manifest) -> Self:
        """Return the facts of a manifest, for the dataset of a name."""
        train, vocabulary = manifest.splits["train"], manifest.vocabulary
        mean = round(train.tokens["target"] / max(1, train.pairs))
        return cls(
            dataset=dataset,
            pairs=train.pairs,
            source_tokens=train.tokens["source"],
            target_tokens=train.tokens["target"],
            target_length=train.percentiles["target"]["50"] if train.percentiles else mean,
            validation_pairs=manifest.splits["validation"].pairs,
            source_vocabulary=vocabulary["source"],
            target_vocabulary=vocabulary["target"],
            is_joint=manifest.settings.joint_vocabulary is True and vocabulary["source"] == vocabulary["target"],
            unit=manifest.unit,
        )

    @property
    def vocabulary(self) -> dict[str, int]:
        """Number of ids by side."""
        return {"source": self.source_vocabulary, "target": self.target_vocabulary}
