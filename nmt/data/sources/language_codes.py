"""Language codes of BCP 47, and the English names of languages."""

import re

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
_CODE = re.compile(r"([a-z]{2,3})(?:[-_](arab|cyrl|hans|hant|latn))?(?:[-_]([a-z]{2}|419))?", re.IGNORECASE)


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


def language_name(code: str) -> str:
    """Return the English name of a language, with the region or script in its code."""
    base, _, rest = code.replace("_", "-").partition("-")
    name = NAMES.get(_CODES.get(base.lower(), ""), base)
    return f"{name} ({rest})" if rest else name
