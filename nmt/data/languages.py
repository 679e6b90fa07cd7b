"""Language codes and English names, and detection of a corpus's languages from file names, columns or a memory."""

import re
from collections.abc import Mapping

from nmt.config.data import LANGUAGE, DataConfig
from nmt.data.manifest import SIDES, Side
from nmt.data.sources.formats import PICKLES
from nmt.data.sources.memories.reading import is_memory, memory_languages
from nmt.data.sources.text_file import TextFile
from nmt.errors import NmtError
from nmt.message import Argument

# Two-letter codes of ISO 639-1 with their ISO 639-3 codes, and three-letter codes without a two-letter code that occur
# in file names of public corpora. A library with all 8,000 languages would take "old", "raw" and "src" for languages.
_TABLE = (
    "aa=aar Afar, ab=abk Abkhazian, ae=ave Avestan, af=afr Afrikaans, ak=aka Akan, am=amh Amharic, an=arg Aragonese, "
    "ar=ara Arabic, as=asm Assamese, ast Asturian, av=ava Avaric, ay=aym Aymara, az=aze Azerbaijani, ba=bak Bashkir, "
    "be=bel Belarusian, bg=bul Bulgarian, bi=bis Bislama, bm=bam Bambara, bn=ben Bengali, bo=bod Tibetan, br=bre "
    "Breton, bs=bos Bosnian, ca=cat Catalan, ce=che Chechen, ceb Cebuano, ch=cha Chamorro, ckb Central Kurdish, "
    "co=cos Corsican, cr=cre Cree, cs=ces Czech, cu=chu Church Slavic, cv=chv Chuvash, cy=cym Welsh, da=dan Danish, "
    "de=deu German, dsb Lower Sorbian, dv=div Dhivehi, dz=dzo Dzongkha, ee=ewe Ewe, el=ell Greek, en=eng English, "
    "eo=epo Esperanto, es=spa Spanish, et=est Estonian, eu=eus Basque, fa=fas Persian, ff=ful Fulah, fi=fin Finnish, "
    "fil Filipino, fj=fij Fijian, fo=fao Faroese, fr=fra French, frr Northern Frisian, fy=fry Western Frisian, ga=gle "
    "Irish, gd=gla Scottish Gaelic, gl=glg Galician, gn=grn Guarani, gsw Swiss German, gu=guj Gujarati, gv=glv Manx, "
    "ha=hau Hausa, he=heb Hebrew, hi=hin Hindi, ho=hmo Hiri Motu, hr=hrv Croatian, hsb Upper Sorbian, ht=hat Haitian "
    "Creole, hu=hun Hungarian, hy=hye Armenian, hz=her Herero, ia=ina Interlingua, id=ind Indonesian, ie=ile "
    "Interlingue, ig=ibo Igbo, ii=iii Sichuan Yi, ik=ipk Inupiaq, io=ido Ido, is=isl Icelandic, it=ita Italian, "
    "iu=iku Inuktitut, ja=jpn Japanese, jv=jav Javanese, ka=kat Georgian, kab Kabyle, kg=kon Kongo, ki=kik Kikuyu, "
    "kj=kua Kuanyama, kk=kaz Kazakh, kl=kal Kalaallisut, km=khm Khmer, kn=kan Kannada, ko=kor Korean, kr=kau Kanuri, "
    "ks=kas Kashmiri, ku=kur Kurdish, kv=kom Komi, kw=cor Cornish, ky=kir Kyrgyz, la=lat Latin, lb=ltz Luxembourgish, "
    "lg=lug Ganda, li=lim Limburgish, lij Ligurian, lmo Lombard, ln=lin Lingala, lo=lao Lao, lt=lit Lithuanian, "
    "lu=lub Luba-Katanga, lv=lav Latvian, mg=mlg Malagasy, mh=mah Marshallese, mi=mri Maori, mk=mkd Macedonian, "
    "ml=mal Malayalam, mn=mon Mongolian, mr=mar Marathi, ms=msa Malay, mt=mlt Maltese, my=mya Burmese, na=nau Nauru, "
    "nb=nob Norwegian Bokmål, nd=nde North Ndebele, nds Low German, ne=nep Nepali, ng=ndo Ndonga, nl=nld Dutch, "
    "nn=nno Norwegian Nynorsk, no=nor Norwegian, nr=nbl South Ndebele, nv=nav Navajo, ny=nya Chichewa, oc=oci "
    "Occitan, oj=oji Ojibwe, om=orm Oromo, or=ori Odia, os=oss Ossetian, pa=pan Punjabi, pi=pli Pali, pl=pol Polish, "
    "ps=pus Pashto, pt=por Portuguese, qu=que Quechua, rm=roh Romansh, rn=run Rundi, ro=ron Romanian, ru=rus Russian, "
    "rw=kin Kinyarwanda, sa=san Sanskrit, sc=srd Sardinian, scn Sicilian, sd=snd Sindhi, se=sme Northern Sami, sg=sag "
    "Sango, sh=hbs Serbo-Croatian, si=sin Sinhala, sk=slk Slovak, sl=slv Slovenian, sm=smo Samoan, sn=sna Shona, "
    "so=som Somali, sq=sqi Albanian, sr=srp Serbian, ss=ssw Swati, st=sot Sesotho, su=sun Sundanese, sv=swe Swedish, "
    "sw=swa Swahili, szl Silesian, ta=tam Tamil, te=tel Telugu, tg=tgk Tajik, th=tha Thai, ti=tir Tigrinya, tk=tuk "
    "Turkmen, tl=tgl Tagalog, tn=tsn Tswana, to=ton Tongan, tr=tur Turkish, ts=tso Tsonga, tt=tat Tatar, tw=twi Twi, "
    "ty=tah Tahitian, ug=uig Uyghur, uk=ukr Ukrainian, ur=urd Urdu, uz=uzb Uzbek, ve=ven Venda, vec Venetian, vi=vie "
    "Vietnamese, vo=vol Volapük, wa=wln Walloon, wo=wol Wolof, xh=xho Xhosa, yi=yid Yiddish, yo=yor Yoruba, yue "
    "Cantonese, za=zha Zhuang, zh=zho Chinese, zu=zul Zulu"
)
NAMES: dict[str, str] = {}
"""English name of each language, by code."""
_CODES: dict[str, str] = {}  # code by two-letter code, three-letter code, and name in lower case
for _codes, _name in (entry.split(" ", 1) for entry in _TABLE.split(", ")):
    _code, _, _long = _codes.partition("=")
    NAMES[_code] = _name
    _CODES |= dict.fromkeys(filter(None, [_code, _long, _name.lower()]), _code)
# Codes that do not name a language pair: English words, as in "how-to-be.tsv", and a language with its region in lower
# case, as in "pt-br.tsv".
_WORDS = frozenset({"am", "an", "as", "be", "he", "ho", "id", "is", "it", "la", "lo", "my", "no", "or", "so", "to"})
_REGIONAL = frozenset({"de-ch", "fr-be", "fr-ca", "fr-ch", "it-ch", "nl-be", "pt-br", "zh-tw"})
_CODE = re.compile(r"([a-z]{2,3})(?:[-_](arab|cyrl|hans|hant|latn))?(?:[-_]([a-z]{2}|419))?", re.IGNORECASE)

MOST_PARTS = 3
"""Number of parts of the longest code: language, script and region."""

Codes = tuple[str | None, str | None]
"""Language codes of source and target; None if unknown."""


def language_code(text: str) -> str | None:
    """Return ``text`` as a BCP 47 language code, or None if it is neither a code nor a name.

    A three-letter code becomes the two-letter code of the language if there is one; an English name becomes its code.

    >>> language_code("deu"), language_code("PT_br"), language_code("German"), language_code("tsv")
    ('de', 'pt-BR', 'de', None)
    """
    if text.lower() in _CODES:
        return _CODES[text.lower()]
    match = _CODE.fullmatch(text)
    language, script, region = match.groups() if match else ("", None, None)
    if language.lower() not in _CODES:
        return None
    return "-".join(filter(None, [_CODES[language.lower()], script and script.title(), region and region.upper()]))


def three_letter_code(code: str) -> str:
    """Return the ISO 639-3 code of a language, without script and region.

    >>> three_letter_code("de"), three_letter_code("ast")
    ('deu', 'ast')
    """
    base = code.partition("-")[0]
    return next((long for long, short in _CODES.items() if short == base and len(long) == 3), base)


def language_name(code: str) -> str:
    """Return the English name of a language, with the region or script in its code."""
    base, _, rest = code.replace("_", "-").partition("-")
    name = NAMES.get(_CODES.get(base.lower(), ""), base)
    return f"{name} ({rest})" if rest else name


def language_pair(text: str) -> tuple[str, str]:
    """Return the two codes in ``text``, such as "en-de", or "en,pt-BR" if a code has a region.

    Raises:
        NmtError: if ``text`` is not a pair of codes.
    """
    codes = [code.strip().partition("-") for code in text.split("," if "," in text else "-")]
    match [f"{language.lower()}{hyphen}{variety}" for language, hyphen, variety in codes]:
        case [source, target] if re.fullmatch(LANGUAGE, source) and re.fullmatch(LANGUAGE, target):
            return source, target
    raise NmtError(
        Argument("languages"),
        f" is {text[:60]!r}. It takes the codes of source and target, two or three letters each, such as "
        "en-de; a code with a region is separated by a comma, as in en,pt-BR. Give two such codes.",
    )


def resolve_languages(files: list[TextFile], config: DataConfig, fallback: DataConfig | None = None) -> DataConfig:
    """Return the configuration with "auto" resolved in the language codes; None if the language is unknown.

    Detected codes are used only if they do not contradict a code that is set for the opposite side.

    Args:
        files: one file of pairs, or two files with one side each.
        config: the section data.
        fallback: settings whose languages are used if the files show none.

    Raises:
        DataError: for a translation memory that cannot be read.
    """
    configured = (config.source_language, config.target_language)
    if "auto" not in configured:
        return config
    detected = _codes_of_two_files(*files) if len(files) == 2 else _codes_of_file(files[0], config)
    if detected == (None, None) and fallback:
        detected = fallback.source_language, fallback.target_language
    sides = list(zip(configured, detected, strict=True))
    if any(code not in {"auto", None} and not _same_language(code, guess) for code, guess in sides):
        sides = [(code, None) for code in configured]
    source, target = (code if code != "auto" else None if guess == "auto" else guess for code, guess in sides)
    return config.model_copy(update={"source_language": source, "target_language": target})


def _same_language(first: str | None, second: str | None) -> bool:
    """Return whether two codes have the same language; script and region do not count."""
    first, second = (str(language_code(code or "") or code).partition("-")[0] for code in (first, second))
    return first == second


def _codes_of_file(file: TextFile, config: DataConfig) -> Codes:
    """Return the codes in a memory or catalogue, in the names of columns, or in the name of a file of pairs."""
    columns = (config.source_column, config.target_column)
    if is_memory(file):  # it states its languages, so unknown codes are accepted
        stated = memory_languages(file, config) or ("", "")
        first, second = (language_code(code) or (code if re.fullmatch(LANGUAGE, code) else None) for code in stated)
        return first, second
    source, target = _pair_in_name(file.own_name)
    if file.suffix in PICKLES:  # their columns are fixed
        return source, target
    if any(isinstance(column, str) for column in columns):
        return language_code(str(columns[0])), language_code(str(columns[1]))
    in_order = int(columns[0] or 1) < int(columns[1] or 2)
    return (source, target) if in_order else (target, source)


def _codes_of_two_files(first: TextFile, second: TextFile) -> Codes:
    """Return the last codes in which the names of two files differ, or None for both.

    Names of archive members are tried before names of archives. A code is at the end of a part between dots:
    "train.en.gz", "train-en.txt", "corpus.en-de.en".
    """
    for names in ((first.own_name, second.own_name), (first.path.name, second.path.name)):
        codes = [list(filter(None, map(_code_at_end, reversed(name.split("."))))) for name in names]
        for source, target in zip(*codes, strict=False):
            if source != target:
                return source, target
    return None, None


def _code_at_end(text: str) -> str | None:
    """Return the longest code at the end of a text, after a hyphen or underscore: pt-BR for "train-pt-br"."""
    parts = re.split("[-_]", text)[-MOST_PARTS:]
    for start in range(len(parts)):
        code = language_code("-".join(parts[start:]))
        if code:
            return code
    return None


def _pair_in_name(name: str) -> Codes:
    """Return two adjacent codes that are the only ones between dots: "wmt14.en-de.tsv", "english-german-both.pkl".

    Three-letter codes and names of archives do not count: "deu-eng.zip" of manythings.org has English first.
    """
    for dotted in reversed(name.split(".")):
        parts = re.split("[-_]", dotted.lower())
        codes = [language_code(part) if len(part) != 3 else None for part in parts]
        match [place for place, code in enumerate(codes) if code]:
            case [first, second] if second == first + 1 and codes[first] != codes[second]:
                pair = parts[first : second + 1]
                if "-".join(pair) not in _REGIONAL and not _WORDS.issuperset(pair):
                    return codes[first], codes[second]
    return None, None


def languages_differ(first: Mapping[Side, str], second: Mapping[Side, str]) -> bool:
    """Return whether the languages of two datasets differ on a side where both are known; regions do not count.

    Args:
        first, second: ``Manifest.languages`` of the two datasets.
    """
    known = [side for side in SIDES if side not in {first[side], second[side]}]
    return any(not _same_language(first[side], second[side]) for side in known)
