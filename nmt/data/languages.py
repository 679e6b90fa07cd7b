"""Language codes of both sides of a corpus: from the names of its files and columns, or from a TMX."""

import re
from collections.abc import Mapping

from nmt.config.data import LANGUAGE, DataConfig
from nmt.data.manifest import SIDES, Side
from nmt.data.sources.formats import PICKLES, tmx_languages
from nmt.data.sources.text_file import TextFile
from nmt.errors import NmtError

# The two-letter codes of ISO 639-1, each with its three-letter code of ISO 639-3.
_ISO_639 = (
    "aa=aar ab=abk ae=ave af=afr ak=aka am=amh an=arg ar=ara as=asm av=ava ay=aym az=aze ba=bak be=bel bg=bul bi=bis "
    "bm=bam bn=ben bo=bod br=bre bs=bos ca=cat ce=che ch=cha co=cos cr=cre cs=ces cu=chu cv=chv cy=cym da=dan de=deu "
    "dv=div dz=dzo ee=ewe el=ell en=eng eo=epo es=spa et=est eu=eus fa=fas ff=ful fi=fin fj=fij fo=fao fr=fra fy=fry "
    "ga=gle gd=gla gl=glg gn=grn gu=guj gv=glv ha=hau he=heb hi=hin ho=hmo hr=hrv ht=hat hu=hun hy=hye hz=her ia=ina "
    "id=ind ie=ile ig=ibo ii=iii ik=ipk io=ido is=isl it=ita iu=iku ja=jpn jv=jav ka=kat kg=kon ki=kik kj=kua kk=kaz "
    "kl=kal km=khm kn=kan ko=kor kr=kau ks=kas ku=kur kv=kom kw=cor ky=kir la=lat lb=ltz lg=lug li=lim ln=lin lo=lao "
    "lt=lit lu=lub lv=lav mg=mlg mh=mah mi=mri mk=mkd ml=mal mn=mon mr=mar ms=msa mt=mlt my=mya na=nau nb=nob nd=nde "
    "ne=nep ng=ndo nl=nld nn=nno no=nor nr=nbl nv=nav ny=nya oc=oci oj=oji om=orm or=ori os=oss pa=pan pi=pli pl=pol "
    "ps=pus pt=por qu=que rm=roh rn=run ro=ron ru=rus rw=kin sa=san sc=srd sd=snd se=sme sg=sag sh=hbs si=sin sk=slk "
    "sl=slv sm=smo sn=sna so=som sq=sqi sr=srp ss=ssw st=sot su=sun sv=swe sw=swa ta=tam te=tel tg=tgk th=tha ti=tir "
    "tk=tuk tl=tgl tn=tsn to=ton tr=tur ts=tso tt=tat tw=twi ty=tah ug=uig uk=ukr ur=urd uz=uzb ve=ven vi=vie vo=vol "
    "wa=wln wo=wol xh=xho yi=yid yo=yor za=zha zh=zho zu=zul"
)
_TWO_LETTERS = {long: short for short, long in (pair.split("=") for pair in _ISO_639.split())}
ISO_639_1 = frozenset(_TWO_LETTERS.values())
"""Two-letter codes."""
# Three-letter codes of ISO 639-3 that have no two-letter code and name files of public corpora.
_ONLY_THREE_LETTERS = frozenset(
    {"ast", "ceb", "ckb", "dsb", "fil", "frr", "gsw", "hsb", "kab", "lij", "lmo", "nds", "scn", "szl", "vec", "yue"}
)
# Common languages by their English names.
_LANGUAGE_NAMES = (
    "afrikaans=af albanian=sq arabic=ar armenian=hy azerbaijani=az basque=eu belarusian=be bengali=bn bosnian=bs "
    "bulgarian=bg catalan=ca chinese=zh croatian=hr czech=cs danish=da dutch=nl english=en esperanto=eo estonian=et "
    "finnish=fi french=fr galician=gl georgian=ka german=de greek=el gujarati=gu hebrew=he hindi=hi hungarian=hu "
    "icelandic=is indonesian=id irish=ga italian=it japanese=ja kazakh=kk korean=ko latin=la latvian=lv lithuanian=lt "
    "macedonian=mk malay=ms maltese=mt marathi=mr norwegian=no persian=fa polish=pl portuguese=pt romanian=ro "
    "russian=ru serbian=sr slovak=sk slovenian=sl spanish=es swahili=sw swedish=sv tamil=ta telugu=te thai=th "
    "turkish=tr ukrainian=uk urdu=ur vietnamese=vi welsh=cy"
)
_NAMES = dict(pair.split("=") for pair in _LANGUAGE_NAMES.split())
# Codes that are English words: two of them name no pair, as in "how-to-be.tsv".
_WORDS = frozenset({"am", "an", "as", "be", "he", "ho", "id", "is", "it", "la", "lo", "my", "no", "or", "so", "to"})
# Varieties of one language that look like pairs where the region is in lower case: br is Breton too, tw is Twi.
_VARIETIES = frozenset({"de-ch", "fr-be", "fr-ca", "fr-ch", "it-ch", "nl-be", "pt-br", "zh-tw"})
_CODE = re.compile(r"([a-z]{2,3})(?:[-_](arab|cyrl|hans|hant|latn))?(?:[-_]([a-z]{2}|419))?", re.IGNORECASE)

Codes = tuple[str | None, str | None]
"""Language codes of source and target; None where they are unknown."""


def language_code(text: str) -> str | None:
    """Return the language code that ``text`` is, in the form of BCP 47, or None.

    A three-letter code becomes the two-letter code of the language if there is one; the English name of a common
    language becomes its code.

    >>> language_code("deu"), language_code("PT_br"), language_code("German"), language_code("tsv")
    ('de', 'pt-BR', 'de', None)
    """
    if text.lower() in _NAMES:
        return _NAMES[text.lower()]
    match = _CODE.fullmatch(text)
    if not match:
        return None
    language, script, region = match.groups()
    language = _TWO_LETTERS.get(language.lower(), language.lower())
    if language not in ISO_639_1 | _ONLY_THREE_LETTERS:
        return None
    return "-".join(filter(None, [language, script and script.title(), region and region.upper()]))


def language_pair(text: str) -> tuple[str, str]:
    """Return the two codes of ``text``, such as "en-de", or "en,pt-BR" where a code has a region.

    Raises:
        NmtError: if it is no pair of codes.
    """
    codes = [_lower_language(code.strip()) for code in text.split("," if "," in text else "-")]
    match codes:
        case [source, target] if re.fullmatch(LANGUAGE, source) and re.fullmatch(LANGUAGE, target):
            return source, target
    raise NmtError(
        f"--languages is {text[:60]!r}. It takes the codes of source and target, two or three letters each, such as "
        "en-de; a code with a region is separated by a comma, as in en,pt-BR. Give two such codes."
    )


def _lower_language(code: str) -> str:
    language, hyphen, variety = code.partition("-")
    return f"{language.lower()}{hyphen}{variety}"


def resolve_languages(files: list[TextFile], config: DataConfig, fallback: DataConfig | None = None) -> DataConfig:
    """Return the configuration with "auto" replaced in the language codes, by None where the language is unknown.

    Args:
        files: one file of pairs, or two files with a side each.
        config: the section data.
        fallback: settings whose languages hold where the files tell none.

    Raises:
        DataError: for a TMX file that cannot be read.
    """
    configured = (config.source_language, config.target_language)
    if "auto" not in configured:
        return config
    found = _found(files, config)
    if found == (None, None) and fallback:
        known = (fallback.source_language, fallback.target_language)
        found = tuple(None if code == "auto" else code for code in known)  # type: ignore[assignment]
    source, target = (_resolved(configured, found, side) for side in (0, 1))
    return config.model_copy(update={"source_language": source, "target_language": target})


def _resolved(configured: Codes, found: Codes, side: int) -> str | None:
    """Return the code of a side. A configured code of the other side tells which of the two found codes is left."""
    if configured[side] != "auto":
        return configured[side]
    other = configured[1 - side]
    if other in ("auto", None) or found == (None, None) or _same(other, found[1 - side]):
        return found[side]
    return found[1 - side] if _same(other, found[side]) else None


def _same(first: str | None, second: str | None) -> bool:
    """Return whether two codes are of the same language; script and region do not count."""
    first, second = (str(language_code(code or "") or code).partition("-")[0] for code in (first, second))
    return first == second


def _found(files: list[TextFile], config: DataConfig) -> Codes:
    if len(files) == 2:
        return _of_two_files(files)
    file, columns = files[0], (config.source_column, config.target_column)
    if file.suffix == ".tmx":
        first, second = tmx_languages(file, config) or ("", "")
        return _of_tmx(first), _of_tmx(second)
    if file.suffix in PICKLES:  # whose columns are fixed
        return _pair_in_name(file)
    if any(isinstance(column, str) for column in columns):
        return language_code(str(columns[0])), language_code(str(columns[1]))
    source, target = _pair_in_name(file)
    in_order = int(columns[0] or 1) < int(columns[1] or 2)
    return (source, target) if in_order else (target, source)


def _of_tmx(language: str) -> str | None:
    """Return the code of a language of a TMX file, which states it, so that any code is believed."""
    return language_code(language) or (language if re.fullmatch(LANGUAGE, language) else None)


def _of_two_files(files: list[TextFile]) -> Codes:
    """Return the codes in the names of two files, of members of archives first; both must have one.

    A code is the last dotted part that is one, as in "train.en.gz", or the only part in which the names differ, as in
    "train-en.txt" and "train-de.txt".
    """
    for first, second in ([_own_name(file) for file in files], [file.path.name for file in files]):
        dotted = _last_code(first), _last_code(second)
        parts = re.split("[-_.]", first), re.split("[-_.]", second)
        pairs = zip(*parts, strict=True) if len(parts[0]) == len(parts[1]) else []
        differing = [(language_code(one), language_code(other)) for one, other in pairs if one != other]
        for codes in (dotted, *(differing if len(differing) == 1 else [])):
            if None not in codes and codes[0] != codes[1]:
                return codes
    return None, None


def _own_name(file: TextFile) -> str:
    return (file.member or file.path.name).rsplit("/", 1)[-1]


def _last_code(name: str) -> str | None:
    codes = (language_code(part) for part in reversed(name.split(".")) if not _looks_like_a_pair(part))
    return next(filter(None, codes), None)


def _looks_like_a_pair(part: str) -> bool:
    """Return whether a code with a region, such as "en-de", may be two codes; "pt-BR" may not."""
    first, _, second = part.replace("_", "-").partition("-")
    if _is_variety(first, second):
        return False
    return second.lower() in ISO_639_1


def _is_variety(first: str, second: str) -> bool:
    return f"{first}-{second}".lower() in _VARIETIES or (first.islower() and second.isupper())


def _pair_in_name(file: TextFile) -> Codes:
    """Return the codes in the name of a file of pairs, in its order: "en-de.tsv", "english-german-both.pkl".

    Three-letter codes are left out, and the names of archives: "deu-eng.zip" of manythings.org has English first.
    """
    for part in reversed(_own_name(file).split(".")):
        tokens = re.split("[-_]", part)
        places = [place for place, token in enumerate(tokens) if _code_in_pair(token)]
        if places not in ([0, 1], [len(tokens) - 2, len(tokens) - 1]):
            continue
        first, second = (tokens[place] for place in places)
        codes = _code_in_pair(first), _code_in_pair(second)
        if codes[0] != codes[1] and not _is_variety(first, second) and not {first.lower(), second.lower()} <= _WORDS:
            return codes
    return None, None


def _code_in_pair(token: str) -> str | None:
    return language_code(token) if token.lower() in ISO_639_1 or token.lower() in _NAMES else None


def differ(first: Mapping[Side, str], second: Mapping[Side, str]) -> bool:
    """Return whether the languages of two datasets differ on a side where both are known; regions do not count.

    Args:
        first, second: ``Manifest.languages`` of either.
    """
    return any(not _same(first[side], second[side]) for side in SIDES if side not in {first[side], second[side]})
