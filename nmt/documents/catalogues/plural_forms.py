"""Plural forms of catalogues: the number of forms of a language, and the form of each number of things."""

import gettext
import re
from typing import NamedTuple

_FEW = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20)"
_RULES = {
    "nplurals=1; plural=0;": "bo dz id ja jv km ko lo ms my su th vi wo yo yue za zh",
    "nplurals=2; plural=(n > 1);": "ak am as bn fa fil fr gu hi hy kn ln mg oc pa si ti tl uz wa zu",
    "nplurals=2; plural=(n%10!=1 || n%100==11);": "is mk",
    f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_FEW} ? 1 : 2);": "be bs hr ru sh sr uk",
    f"nplurals=3; plural=(n==1 ? 0 : {_FEW} ? 1 : 2);": "pl szl",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n!=0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2);": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "dsb hsb sl",
    "nplurals=4; plural=(n==1 || n==11 ? 0 : n==2 || n==12 ? 1 : n>2 && n<20 ? 2 : 3);": "gd",
    "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : n%100>10 && n%100<20 ? 2 : 3);": "mt",
    "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4);": "ga",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n==3 ? 3 : n==6 ? 4 : 5);": "cy",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
}
_RULE_OF = {language: rule for rule, languages in _RULES.items() for language in languages.split()}
_OTHERS = "nplurals=2; plural=(n != 1);"
_PLURAL_FORMS = re.compile(r"nplurals\s*=\s*([1-9])\s*;\s*plural\s*=([^;]+)")
_NUMBERS = range(1_001)


class PluralForms(NamedTuple):
    """Plural forms of a language."""

    number: int
    """Number of forms."""
    one: int
    """Form of the number 1; -1 if all numbers have the same form."""
    is_only_one: bool
    """Whether no other number has that form. In Russian, 21 has it too."""

    def form_of_singular(self, *, fits_all: bool) -> int:
        """Return the form that translates the singular; -1 if none does.

        Args:
            fits_all: whether the singular fits other numbers too, as its number is a placeholder.
        """
        return self.one if fits_all or self.is_only_one else -1


def rule_of(language: str) -> str:
    """Return the value of the header field Plural-Forms for a language.

    Sources: the manual of gettext (section Plural forms), and the plural rules of CLDR for whole numbers.
    """
    code = language.lower().replace("-", "_")
    return _RULE_OF.get(code) or _RULE_OF.get(code.partition("_")[0]) or _OTHERS


def plural_forms(header: str) -> PluralForms | None:
    """Return the plural forms that a header declares; None if it declares none."""
    declared = _PLURAL_FORMS.search(header)
    if declared is None:
        return None
    try:
        form_of = gettext.c2py(declared[2])
        forms = [form_of(number) for number in _NUMBERS]
    except (ValueError, ArithmeticError):  # a wrong rule
        return None
    count = int(declared[1])
    return PluralForms(count, forms[1] if count > 1 else -1, forms.count(forms[1]) == 1)
