"""``nmt demo``: the commands in a row on a bundled corpus."""

import typer

SHOWN = 10
"""Number of translations that are printed."""


def demo() -> None:
    """Prepare, train, translate and score a bundled corpus in minutes.

    Writes data/demo, data/demo.en-de.tsv and checkpoints/demo.

    Examples:
        nmt demo
        nmt translate --run demo "im thirsty"
    """
    from nmt.cli.commands.prepare import run_prepare
    from nmt.cli.commands.train import run_training
    from nmt.data import demo as chain
    from nmt.storage.text import read_lines

    config = chain.demo_config()
    dataset = run_prepare([str(chain.write_corpus())], name=chain.NAME, config="tiny.yaml")
    run = run_training(chain.NAME, config, chain.NAME)

    from nmt.decoding.translator import Translator
    from nmt.evaluation.scoring import bleu
    from nmt.plotting import figures

    sources, references = (read_lines(dataset.text("test", side)) for side in ("source", "target"))
    typer.echo(f"\nTranslating the {len(sources)} test sentences, none of which is in training. The first of them:")
    translator = Translator.load(run)
    translations = [translation.text for translation in translator.translate(sources)]
    width = max(len(source) for source in sources[:SHOWN])
    for source, translation, reference in list(zip(sources, translations, references, strict=True))[:SHOWN]:
        verdict = "" if translation == reference else f"   (reference: {reference})"
        typer.echo(f"  {source:{width}}  ->  {translation}{verdict}")
    correct = sum(translation == reference for translation, reference in zip(translations, references, strict=True))
    score, signature = bleu(translations, references)
    typer.echo(
        f"\n{correct} of {len(sources)} translations equal the reference word for word; BLEU {score:.1f} ({signature})"
    )
    typer.echo(f"im thirsty  ->  {translator.translate(['im thirsty'])[0].text}")
    curves = run.plots_path / "losses.png"
    figures.save(figures.draw("losses", run), curves)
    typer.echo(f"Loss curves: {curves}")
