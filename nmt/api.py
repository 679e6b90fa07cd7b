"""Python interface: prepare, train, evaluate, translate. ``import nmt`` gives these names too.

Paths are relative to the working directory: datasets are in ``data/``, runs in ``checkpoints/``, as for the command
line. Every function raises ``nmt.NmtError``, or a subclass of it. The message is the same as on the command line, but
names arguments instead of options. Functions leave the process as it was: environment, signals, random generators,
warnings, logging, threads. Only TensorFlow keeps its own threads, and its option "remapping" stays off. Trainers and
translators are context managers, which release their resources at the end of the ``with`` block.

Example::

    import nmt

    nmt.prepare("pairs.tsv")
    nmt.train("base.yaml", dataset="pairs")
    nmt.evaluate(["base"]).record.scores         # BLEU, chrF and TER of its test split
    with nmt.load("base") as translator:
        translator.translate(["im thirsty"])     # ['ich bin durstig']
        nmt.translate_document("page.html", translator=translator)  # writes page.de.html
"""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from nmt.config.data import ORIGINAL, CorpusConfig, DataConfig, with_filters
from nmt.config.loading import find_config, load_config, read_overrides
from nmt.config.schema import DecodingConfig
from nmt.data.cleaning import Progress, Sources, columns_of
from nmt.data.dataset import DATASETS, Dataset
from nmt.data.languages import language_pair, resolve_languages
from nmt.data.manifest import SplitName, read_manifest
from nmt.data.prepare import TOKENIZER_KEYS, TokenizerSource
from nmt.data.prepare import prepare as prepare_dataset
from nmt.data.sources.corpus_files import find_corpus
from nmt.data.sources.formats import named_columns
from nmt.data.sources.text_file import TextFile
from nmt.decoding.exported import ExportedModel, choose_export
from nmt.decoding.pair_scores import pair_scorer
from nmt.documents import formats
from nmt.errors import ConflictError, NmtError, NotFoundError
from nmt.interface import public
from nmt.message import Argument
from nmt.recipes.resolve import Request, resolve
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import find_members
from nmt.storage.names import find_file
from nmt.storage.outputs import OutputFile
from nmt.text.glossary import Glossary
from nmt.text.translator import Terms, TextOptions, Translator

if TYPE_CHECKING:  # this module loads TensorFlow
    from nmt.training.listeners import Listener

Files = str | Path | Sequence[str | Path]
"""One or more files of sentence pairs, or two files with one side each."""
HeldOutFiles = Files | Mapping[str, Files]
"""Validation or test files; or such files of each corpus, by its name."""
Overrides = Mapping[str, JsonValue] | Sequence[str]
"""Keys of the configuration with their values, such as {"data.seed": 7} or ["data.seed=7"]."""

DEFAULT_CONFIG = "base.yaml"


@public
def prepare(
    files: Files = (),
    *,
    name: str | None = None,
    validation: HeldOutFiles = (),
    test: HeldOutFiles = (),
    corpora: Mapping[str, Files] = {},
    tags: Sequence[str] = (),
    config: str | Path = DEFAULT_CONFIG,
    set: Overrides = (),
    languages: str | tuple[str, str] | None = None,
    filters: str | Sequence[str] = (),
    tokenizer_of: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Clean, split and tokenize sentence pairs, and return the dataset ``data/<name>``.

    The same files with the same settings are not prepared twice: the existing dataset is returned, with ``is_new``
    false.

    Args:
        files: one file of pairs, several files of pairs that are one corpus, or two files with one side each. A name
            may be a folder or a pattern such as "part-*.tsv". A bare name is also looked for in ``data/``. Not needed
            with ``corpora`` that have languages of their own.
        name: name of the dataset. Default: ``data.dataset`` of the configuration, else the name of the file.
        validation: pairs of the validation split, instead of a share of ``files``; or such pairs of each of
            ``corpora``, by name. "original" is the name of ``files``.
        test: pairs of the test split, likewise.
        corpora: files of further corpora by name, in addition to ``data.corpora``. An empty list stands for
            ``data/NAME.jsonl.gz`` or ``data/NAME.tsv.gz``. A corpus with the languages of ``files`` is for training
            only. A corpus whose name is another language pair, such as "es-gn", makes the model translate between
            these languages too.
        tags: names of further corpora whose sources get a tag.
        config: configuration file. A bare name is also looked for in ``configs/`` and among nmt's own configurations.
        set: keys of the configuration to override.
        languages: codes of source and target, such as "en-de", "en,pt-BR" or ("en", "de"). They are short for the keys
            data.source_language and data.target_language. Default: the languages of the configuration, else of the
            file names or the translation memory.
        filters: names of filters to use in addition to ``data.filters``, with their default thresholds, such as
            "numbers,copies" or ["numbers", "copies"]; "all" for all.
        tokenizer_of: name of a run whose tokenizers the dataset uses. Default: new tokenizers are fitted.
        overwrite: replace a different dataset of the same name.
        progress: function that is called with a step, the number of pairs done, and the number of all pairs or None.

    Raises:
        NotFoundError: if a file, the configuration or the run does not exist.
        ConfigError: if the configuration or an override breaks the schema.
        ConflictError: if a different dataset has this name, or an override contradicts ``tokenizer_of`` or
            ``languages``.
        DataError: if a file cannot be used. Nothing is written.

    >>> dataset = nmt.prepare("pairs.tsv", set={"data.train_share": 0.85, "data.test_share": 0.05}, overwrite=True)
    >>> dataset.name, dataset.manifest.splits["test"].pairs
    ('pairs', 15)
    """
    overrides = _overrides(set)
    settings = load_config(find_config(str(config)), overrides).data
    settings = with_filters(settings, filters.split(",") if isinstance(filters, str) else filters)
    tokenizers = None
    if languages is not None:
        pair = language_pair(languages if isinstance(languages, str) else ",".join(languages))
        codes = dict(zip(("source_language", "target_language"), pair, strict=True))
        _check_agreement(settings, overrides, codes, "languages")
        settings = settings.model_copy(update=codes)
    if tokenizer_of is not None:
        run = find_run(tokenizer_of)
        tokenizers = TokenizerSource(tokenizer_of, run.folder, read_manifest(run.dataset_path).settings)
        fitted = {key: getattr(tokenizers.settings, key) for key in TOKENIZER_KEYS}
        _check_agreement(settings, overrides, fitted, "tokenizer_of")
    held_out = {"validation": _by_corpus(validation), "test": _by_corpus(test)}
    own = {argument: by_name.pop(ORIGINAL, []) for argument, by_name in held_out.items()}
    settings = settings.with_corpora({name: _file_names(files) for name, files in corpora.items()}, tags, held_out)
    names = _file_names(files)
    if not names and (any(own.values()) or not settings.corpora):
        raise NmtError(
            "No files were given. A corpus is one or more files of pairs, or two files with one side each. Give one "
            "file. Corpora of several language pairs need a name each: ",
            Argument("corpora", "es-gn=FILE"),
            ".",
        )
    main_corpus, known = [], settings
    if names:
        main_corpus = find_corpus(names, [DATASETS], "files", settings)
        # The two sides of the corpus are an example for the order of the sides in further folders and archives.
        fallback = tokenizers.settings if tokenizers else None
        known = resolve_languages(main_corpus, settings, fallback, named_columns(main_corpus, settings))
    validation_files, test_files = (
        find_corpus(own[argument], [DATASETS], argument, known) for argument in ("validation", "test")
    )
    further = {name: _find_corpus(name, corpus, known) for name, corpus in settings.corpora.items()}
    further_held_out: dict[str, dict[SplitName, list[TextFile]]] = {
        name: {
            "validation": find_corpus(corpus.validation, [DATASETS], "validation", columns_of(name, known)),
            "test": find_corpus(corpus.test, [DATASETS], "test", columns_of(name, known)),
        }
        for name, corpus in settings.corpora.items()
    }
    sources = Sources(main_corpus, validation_files, test_files, further, further_held_out)
    return prepare_dataset(
        sources,
        settings,
        name or settings.dataset or sources.first[0].stem,
        overwrite=overwrite,
        report=progress,
        tokenizer_source=tokenizers,
        make_scorer=pair_scorer,
    )


@public
def train(
    config: str | Path | None = None,
    *,
    run: str | None = None,
    dataset: str | None = None,
    set: Overrides = (),
    minutes: float | None = None,
    allow_changes: bool = False,
    listeners: "Sequence[Listener]" = (),
) -> Run:
    """Train a new run, or resume a run, to its last epoch. Return the run.

    Args:
        config: configuration file. A bare name is also looked for in ``configs/`` and among nmt's own configurations.
            Default: the configuration of ``run`` if the run exists, else a recipe chosen by the dataset. A recipe is
            stored in the run.
        run: name of the run. Default: the name of the configuration file, or of the dataset if there is none.
        dataset: name of the dataset. Default: the dataset of the resumed run or of the configuration, else the dataset
            prepared last.
        set: keys of the configuration to override.
        minutes: training time that a new run may take. Its size is chosen by the measured speed of this machine.
        allow_changes: resume although the configuration or the dataset has changed.
        listeners: observers of training, such as ``nmt.training.console.Console``.

    Raises:
        NmtError: if the run cannot be trained, if training diverges, or if the disk refuses.

    >>> run = nmt.train("small.yaml", run="short", dataset="pairs", set={"training.epochs": 1})
    >>> run.name, len(run.epochs())
    ('short', 1)

    ``nmt.train(dataset="pairs", minutes=30)`` trains for half an hour with a recipe.
    """

    def warn(note: object) -> None:
        warnings.warn(str(note), stacklevel=4)

    request = Request(config, run, dataset, _overrides(set), minutes, allow_changes)
    resolved = resolve(request, lambda _: None, warn)
    from nmt.training.listeners import Listener  # this loads TensorFlow, which ``resolve`` has loaded already

    if not isinstance(listeners, Sequence) or not all(isinstance(listener, Listener) for listener in listeners):
        raise NmtError(
            "listeners has an object that is not an nmt.training.listeners.Listener. Derive its class from Listener."
        )

    for note in resolved.notes:
        warn(note)
    with resolved.trainer(warn) as trainer:
        return trainer.train(listeners)


@public
def load(
    run: str | Run | Sequence[str] | None = None,
    epoch: str | int | None = None,
    *,
    decoding: DecodingConfig | Mapping[str, JsonValue] | None = None,
    export: str | None = None,
) -> Translator:
    """Return the translator of a run.

    Args:
        run: name of a run in ``checkpoints/``. Default: the run trained last. A list of names, each RUN or RUN:EPOCH,
            is an ensemble, which averages the probabilities of the runs.
        epoch: an epoch number, "best", "last" or "average". Default: the average if there is one, else best.
        decoding: values that replace the run's for keys of section ``decoding``, such as ``{"beam_size": 5}``.
        export: export to CTranslate2 or Bergamot to use instead of TensorFlow: its name in the run, or its folder, such
            as "./model".

    Raises:
        NmtError: if the export does not fit the other arguments.
        NotFoundError: if the run, its weights, its export or the program for it is missing.
        ConfigError: if a value of ``decoding`` breaks the schema.
        DataError: if a file of the run is damaged.

    >>> translator = nmt.load("base", "last", decoding={"beam_size": 5})
    >>> translator.epoch
    60
    """
    weights = None if epoch is None else str(epoch)
    trained: Run | ExportedModel
    others: list[tuple[Run, str | None]] = []
    if run is not None and not isinstance(run, str | Run):
        members = [member for name in run for member in find_members(name, weights)]
        (run, weights), *others = members or [(find_run(None), weights)]
        if others and export is not None:
            raise NmtError(
                Argument("export", export), f" translates alone; received {len(others) + 1} runs too. Leave it out."
            )
    if export is not None:
        _, trained = choose_export(run.name if isinstance(run, Run) else run, weights, export)
    else:
        trained = run if isinstance(run, Run) else find_run(run)
    return Translator.open(trained, weights, decoding, others)


@public
def translate_document(
    path: str | Path,
    output: str | Path | None = None,
    *,
    translator: Translator | str | Run | None = None,
    glossary: Glossary | Terms | None = None,
    skip_too_long: bool = False,
    needs_review: bool = False,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Path:
    """Translate a document, such as a page of HTML, and return the file with its translation. Its format stays.

    Args:
        path: the document. Its suffix says its format.
        output: file to write, which must not exist. Default: a name with the code of the target language, such as
            "page.de.html", beside the document.
        translator: translator, or the run to load for this document. Default: the run trained last.
        glossary: terms that the translation keeps, as ``Translator.glossary`` takes or returns them.
        skip_too_long: whether a sentence that is longer than the model reads stays as it is, instead of raising.
        needs_review: whether translations are marked for a review, if the format has such a mark (gettext).
        progress: function that is called with the number of translated lines and the number of all lines.

    A warning tells what the document has besides, and is not translated.

    Raises:
        NmtError: if the format is unknown, or ``output`` has another one.
        NotFoundError: if the document, the run or a package that the format needs is missing.
        ConflictError: if ``output`` exists.
        DataError: if the document or the glossary is damaged.
        TooLongError: if a sentence exceeds the learned positions.

    >>> from pathlib import Path
    >>> Path("page.html").write_text("<p title='im thirsty'>im thirsty</p>")
    36
    >>> with nmt.load("base") as translator:
    ...     written = nmt.translate_document("page.html", "page.de.html", translator=translator)
    >>> written.name, written.read_text()
    ('page.de.html', "<p title='ich bin durstig'>ich bin durstig</p>")
    """
    path = Path(path)
    suffix = formats.suffix_of(path.name)
    if not suffix:
        raise NmtError(
            Argument("path"), f" is {path}, which is no document. Give a file of {', '.join(formats.FORMATS)}."
        )
    if not isinstance(translator, Translator):
        with load(translator) as loaded:
            return translate_document(
                path, output, translator=loaded, glossary=glossary, skip_too_long=skip_too_long,
                needs_review=needs_review, progress=progress,
            )  # fmt: skip
    written_suffix = formats.output_suffix(suffix)
    target = Path(output) if output else path.with_name(f"{path.stem}.{translator.languages[1]}{written_suffix}")
    if target.suffix.lower() not in (suffix, written_suffix):
        raise NmtError(
            Argument("output"),
            f" is {target}, but the document {path} keeps its format. Give a name with {written_suffix}.",
        )
    file = OutputFile(target, inputs=[path])
    document = formats.read_document(str(path), find_file(str(path), [], "document").read_bytes())
    document.needs_review = needs_review
    terms = translator.glossary(glossary) if glossary else None
    file.write(formats.translate_document(
        document, str(path), translator, TextOptions(glossary=terms), skip_too_long=skip_too_long,
        report=lambda translations, names: None, progress=progress,
    ))  # fmt: skip
    if document.note:
        warnings.warn(document.note, stacklevel=3)
    return target


def _overrides(overrides: Overrides) -> list[str]:
    """Return overrides in the form section.key=value. Values are JSON, which YAML includes."""
    if isinstance(overrides, Mapping):
        return [f"{key}={json.dumps(value)}" for key, value in overrides.items()]
    return list(overrides)


def _find_corpus(name: str, corpus: CorpusConfig, settings: DataConfig) -> list[TextFile]:
    """Find the files of a further corpus. If it names no file, the file with its name in ``data/`` is used.

    The languages in ``settings`` order the two sides of a folder or archive, unless they are to be exchanged.
    """
    usual = [DATASETS / f"{name}{suffix}" for suffix in (".jsonl.gz", ".tsv.gz")]
    present = [str(file) for file in usual if file.is_file()]
    if not corpus.files and not present:
        raise NotFoundError(
            f"Corpus {name!r} is named without files, and is neither {usual[0]} nor {usual[1]}. Name its files too."
        )
    return find_corpus(corpus.files or present[:1], [DATASETS], "corpora", columns_of(name, settings))


def _by_corpus(files: HeldOutFiles) -> dict[str, list[str]]:
    """Return the names of validation or test files by corpus."""
    by_name = files if isinstance(files, Mapping) else {ORIGINAL: files}
    return {name: _file_names(given) for name, given in by_name.items()}


def _file_names(files: Files) -> list[str]:
    return [str(file) for file in ([files] if isinstance(files, str | Path) else files)]


def _check_agreement(settings: DataConfig, overrides: list[str], required: Mapping[str, Any], argument: str) -> None:
    """Check that no override of section data contradicts the values that an argument requires.

    Raises:
        ConflictError: if an override contradicts them.
    """
    overridden = read_overrides(overrides)
    for key, value in required.items():
        received = getattr(settings, key)
        if f"data.{key}" in overridden and received not in ("auto", value):
            raise ConflictError(
                f"data.{key} is set to {received!r}, but ",
                Argument(argument),
                f" requires {value!r}. Leave out one of the two.",
            )
