"""Scores of translations against references, by the field's standard implementation."""

from sacrebleu.metrics import BLEU


def bleu(translations: list[str], references: list[str]) -> tuple[float, str]:
    """Return corpus BLEU, 0 to 100, and its signature (Post 2018, "A Call for Clarity in Reporting BLEU Scores")."""
    metric = BLEU()
    return float(metric.corpus_score(translations, [references]).score), str(metric.get_signature())
