"""Loss by corpus: in the metrics file, in messages and as curves; absent if there is a single corpus."""

import json

import pytest
from tiny_runs import prepare_pairs, tiny, train

from nmt.plotting.curves import draw_corpora
from nmt.plotting.style import empty_figure
from nmt.runs.metrics import in_words
from nmt.text.translator import Translator
from nmt.tokenizers.base import EOS

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.slow
def test_an_epoch_records_loss_and_share_of_each_corpus() -> None:
    dataset = prepare_pairs(corpora={"bt": {"files": ["bt.tsv"], "tag": True}})
    run = train("run", tiny(epochs=2, corpora={"original": 2}, validate_every=3), dataset).run
    epoch, pairs, start = run.epochs()[-1], dataset.split("train"), 0
    assert epoch.loss_by_corpus is not None
    engine = Translator.open(run, "last").engine
    for name, count in dataset.manifest.pairs_by_corpus.items():
        sources = [pairs.source[index].tolist() for index in range(start, start + count)]
        targets = [[*pairs.target[index].tolist(), EOS] for index in range(start, start + count)]
        expected = -sum(scores.sum() for scores in engine.token_scores(sources, targets)) / sum(map(len, targets))
        assert epoch.loss_by_corpus[name] == pytest.approx(expected, rel=1e-4)
        start += count
    original, bt = dataset.manifest.pairs_by_corpus.values()
    assert epoch.pairs_by_corpus == {"original": 2 * original, "bt": bt}
    assert f"bt {epoch.loss_by_corpus['bt']:.3f} ({bt / (2 * original + bt):.0%} of pairs)" in in_words(epoch)
    figure = empty_figure()
    draw_corpora(figure, run)
    drawn = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].get_lines()}
    measured = [record.loss_by_corpus or {} for record in run.validations()]
    assert len(measured) > 2
    assert drawn == {name: [losses[name] for losses in measured] for name in ("original", "bt")}


@pytest.mark.slow
def test_a_single_corpus_has_no_loss_by_corpus() -> None:
    run = train("run", tiny(epochs=1), prepare_pairs()).run
    assert not {"loss_by_corpus", "pairs_by_corpus"} & json.loads(run.metrics_path.read_text().splitlines()[-1]).keys()
