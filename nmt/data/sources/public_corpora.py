"""Public corpora and test sets by name and language pair: OPUS, Tatoeba's pairs with English, sacrebleu's test sets.

The interface of OPUS is described at https://opus.nlpl.eu/opusapi/ and in Helsinki-NLP/OpusTools: a query returns
``{"corpora": [...]}``, with the fields of ``OpusCorpus`` in each entry, and ``size`` in KiB.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.languages import three_letter_code
from nmt.data.sources.public import PublicFile, check_size, checked_fields, query, shown_size, size_of
from nmt.data.sources.text_file import first_names, reading
from nmt.errors import ConflictError, DataError, NotFoundError, counted
from nmt.storage.atomic import write_bytes
from nmt.storage.names import check_name, did_you_mean

OPUS = "https://opus.nlpl.eu/opusapi/"
MANYTHINGS = "https://www.manythings.org/anki/"
_TATOEBA_CREDIT = "sentences of Tatoeba (tatoeba.org, CC BY 2.0 FR), paired by manythings.org/anki"
# Tatoeba names individual languages where the two-letter code means a group of languages.
_TATOEBA_CODES = {"zh": "cmn", "fa": "pes", "ms": "zsm", "no": "nob", "lv": "lvs"}
_OPUS_FIELDS: dict[str, type] = {"corpus": str, "version": str, "source": str, "target": str, "url": str, "size": int}


class OpusCorpus(NamedTuple):
    """A corpus of OPUS for a language pair, in Moses format: a zip archive with a text file for each language."""

    corpus: str
    version: str
    source: str
    """Language code of OPUS, such as pt_BR. OPUS sorts the two codes."""
    target: str
    url: str
    pairs: int | None
    size: int
    """Size of the archive in bytes."""

    @property
    def credit(self) -> str:
        """Origin and licence."""
        return (
            f"corpus {self.corpus} {self.version} of OPUS (Tiedemann 2012). OPUS's interface states no licence: read "
            f"README and LICENSE in the archive, and https://opus.nlpl.eu/{self.corpus}"
        )


def opus_corpora(languages: tuple[str, str], corpus: str = "", version: str = "latest") -> list[OpusCorpus]:
    """Return the corpora of OPUS for a pair of languages: one corpus, or all.

    Raises:
        DataError: if OPUS cannot be reached, or answers otherwise than it is documented.
    """
    source, target = (code.replace("-", "_") for code in languages)
    named = {"corpus": corpus} if corpus else {}
    parameters = {**named, "source": source, "target": target, "preprocessing": "moses", "version": version}
    answer = query(OPUS, parameters)
    entries = answer.get("corpora") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        raise DataError(f"{OPUS} answers without a list of corpora. It may have changed. Download the corpus yourself.")
    return [_opus_corpus(entry) for entry in entries]


def _opus_corpus(entry: Any) -> OpusCorpus:
    fields = checked_fields(entry, _OPUS_FIELDS, OPUS)
    pairs = fields.get("alignment_pairs")
    texts = {name: fields[name] for name in ("corpus", "version", "source", "target", "url")}
    return OpusCorpus(**texts, pairs=pairs if isinstance(pairs, int) else None, size=fields["size"] * 1024)


def opus_file(name: str, languages: tuple[str, str], *, large: bool) -> PublicFile:
    """Return the archive of a corpus of OPUS.

    Args:
        name: name of the corpus, or corpus and version with a slash between, such as "Tatoeba/v2023-04-12".
        languages: codes of the two languages.
        large: whether a large download is allowed.

    Raises:
        NotFoundError: if OPUS has no such corpus for these languages; lists the corpora that it has.
        DataError: if OPUS cannot be reached, or the archive is large and ``large`` is false.
    """
    corpus, _, version = name.partition("/")
    corpora = opus_corpora(languages, check_name(corpus, "corpus"), version or "latest")
    if not corpora:
        known = {found.corpus for found in opus_corpora(languages)}
        raise NotFoundError(
            f"OPUS has no corpus {name!r} for {'-'.join(languages)}{did_you_mean(corpus, known)}. It has "
            f"{first_names(sorted(known)) or 'none'}. List them with nmt fetch --list {'-'.join(languages)}."
        )
    found = corpora[0]
    check_size(f"{found.corpus} {found.version}", found.size, found.credit, large=large)
    file_name = check_name(f"{found.corpus}-{found.version}.{found.source}-{found.target}.zip", "file")
    return PublicFile(file_name, found.url, found.credit)


def sides_in(archive: Path, languages: tuple[str, str]) -> list[str]:
    """Return the files of the two languages in an archive of OPUS, as ``nmt prepare`` takes them.

    Raises:
        DataError: if the archive is damaged, or lacks one of them.
    """
    with reading(archive), zipfile.ZipFile(archive) as file:
        members = file.namelist()
    sides = []
    for language in languages:
        suffix = f".{language.replace('-', '_').lower()}"
        matching = [member for member in members if member.lower().endswith(suffix)]
        if len(matching) != 1:
            raise DataError(
                f"{archive} holds {first_names(members)}. An archive of OPUS has one file that ends in {suffix}. Give "
                "nmt prepare two of these files, as ARCHIVE/FILE."
            )
        sides.append(f"{archive}/{matching[0]}")
    return sides


# --- Tatoeba's pairs with English


def tatoeba_file(languages: tuple[str, str], *, large: bool) -> PublicFile:
    """Return the archive of Tatoeba's pairs of English and another language, with English in the first column.

    Raises:
        NotFoundError: if neither language is English.
        DataError: if the server cannot be reached, has no such file, or the file is large and ``large`` is false.
    """
    others = [code for code in languages if code != "en"]
    if len(others) != 1:
        raise NotFoundError(
            f"{MANYTHINGS} has only pairs with English, not {'-'.join(languages)}. For other pairs use: nmt fetch "
            f"opus:Tatoeba {'-'.join(languages)}"
        )
    code = _TATOEBA_CODES.get(others[0]) or three_letter_code(others[0])
    name = f"{code}-eng.zip"
    check_size(name, size_of(MANYTHINGS + name), _TATOEBA_CREDIT, large=large)
    return PublicFile(name, MANYTHINGS + name, _TATOEBA_CREDIT)


# --- sacrebleu's test sets


class ReferenceSet(NamedTuple):
    """A test set of sacrebleu for a language pair."""

    name: str
    """Name as sacrebleu has it, such as wmt20."""
    languages: str
    """Language pair as sacrebleu has it, such as en-de."""
    description: str

    @property
    def credit(self) -> str:
        """Origin and licence."""
        return (
            f"test set {self.name} of sacrebleu: {self.description.rstrip('.')}. sacrebleu states no licence; read the "
            "terms of the shared task"
        )


def sacrebleu_sets(languages: tuple[str, str]) -> Iterator[ReferenceSet]:
    """Yield the test sets of sacrebleu from one language to another."""
    from sacrebleu.dataset import DATASETS  # noqa: PLC0415 - it loads lxml

    pair = "-".join(languages)
    for name, dataset in DATASETS.items():
        if pair in dataset.langpairs:
            yield ReferenceSet(name, pair, dataset.description or "")


def fetch_test_set(
    name: str, languages: tuple[str, str], folder: Path, *, large: bool
) -> tuple[ReferenceSet, list[Path]]:
    """Download a test set with sacrebleu, which verifies its MD5, and write it as two files.

    Returns:
        The test set; paths of the sources and the first references in ``folder``.

    Raises:
        NotFoundError: if sacrebleu has no such test set for these languages.
        ConflictError: if another file has the name of one of the two.
        DataError: if the download fails, or is large and ``large`` is false.
    """
    from sacrebleu.dataset import DATASETS  # noqa: PLC0415 - it loads lxml

    found = next((entry for entry in sacrebleu_sets(languages) if entry.name == name), None)
    if found is None:
        known = [entry.name for entry in sacrebleu_sets(languages)]
        raise NotFoundError(
            f"sacrebleu has no test set {name!r} from {languages[0]} to {languages[1]}{did_you_mean(name, known)}. It "
            f"has {first_names(known) or 'none'}."
        )
    dataset = DATASETS[name]
    downloaded = [path for path in Path(dataset._rawdir).glob("*") if path.suffix != ".lock"]
    if not downloaded:
        sizes = [size_of(address) for address in dataset.data or []]
        known_sizes = [size for size in sizes if size is not None]
        size = sum(known_sizes) if len(known_sizes) == len(sizes) else None
        check_size(name, size, found.credit, large=large)
    try:
        files = [dataset.get_source_file(found.languages), *dataset.get_reference_files(found.languages)[:1]]
        contents = [Path(file).read_bytes() for file in files]
    except (Exception, SystemExit) as error:  # sacrebleu exits if a checksum is wrong
        raise DataError(
            f"sacrebleu could not download {name}: {error}. Delete {dataset._outdir}, and run the same command again."
        ) from error
    paths = [folder / f"{name.replace('/', '_')}.{found.languages}.{code}" for code in languages]
    for path, content in zip(paths, contents, strict=True):
        if path.exists() and path.read_bytes() != content:
            raise ConflictError(
                f"{path} exists already and is not this test set. It has not been changed. Move it away, and run the "
                "same command again."
            )
    for path, content in zip(paths, contents, strict=True):
        if not path.exists():
            write_bytes(path, content)
    return found, paths


# --- lists


def listed(languages: tuple[str, str]) -> Iterator[str]:
    """Yield a line for each public corpus of a language pair, with its size and licence; those of OPUS come last.

    Raises:
        DataError: if OPUS cannot be reached.
    """
    pair = "-".join(languages)
    for entry in sacrebleu_sets(languages):
        yield f"nmt fetch sacrebleu:{entry.name} {pair}  test set: {entry.description}"
    if "en" in languages and len(set(languages)) == 2:
        yield f"nmt fetch tatoeba {pair}  {_TATOEBA_CREDIT}"
    found = sorted(opus_corpora(languages), key=lambda corpus: corpus.pairs or 0, reverse=True)
    for corpus in found:
        pairs = "unknown number of pairs" if corpus.pairs is None else counted(corpus.pairs, "pair")
        yield f"nmt fetch opus:{corpus.corpus} {pair}  {pairs}, {shown_size(corpus.size)}, {corpus.version}"
    if found:
        yield "Licences of OPUS are in each archive (README, LICENSE) and at https://opus.nlpl.eu."
